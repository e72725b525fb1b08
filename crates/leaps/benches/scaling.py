"""Time `leaps sample` on square Ising lattices of growing size: what a walker costs must grow with the sites.

    cargo build --release -p leaps-cli
    python3 crates/leaps/benches/scaling.py [--sizes 8,16,24,32,48,64] [--schemes euler,events] [--intervals 50] [--rounds 2] [--walkers N] [--model DIR] [--leaps PROGRAM]

For 128x128, where jumps are many, fewer walkers and intervals do; both networks of docs/benchmarks.md:

    python3 crates/leaps/benches/scaling.py --schemes events --sizes 64,128 --walkers 32 --intervals 10 --rounds 1
    python3 crates/leaps/benches/scaling.py --schemes events --sizes 64,128 --walkers 32 --intervals 10 --rounds 1 --model crates/leaps/models/ising-32-critical

One hollow network with 24 channels and 3 layers, the most that 8x8 allows, is trained for a minute on 16x16 and then
sampled with on every size: its convolutions do not know how large the lattice is. Euler makes one network pass for
every interval; events makes one more for every jump, and jumps grow with the sites, so the cost of a pass stands
beside that of an interval. Times are CPU times, user's only, summed over threads, since those of the wall
mean little on a busy machine; the shortest of `--rounds` runs counts. What the program does before walkers start, such as
checking the network, is measured by runs with one step of euler and taken out. Sixteen walkers share a pass; the one that is drawn at the end has passes of its own,
and counts as sixteen.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
TRAIN = "train ising --size 16 --channels 24 --depth 3 --steps 300 --lr 0.004 --warmup 50 --pool 1024 --validate-every 0"
SHORT = "--set sample.walkers=100 --set sample.intervals=20 --quiet"
SITES_IN_ALL, DRAWN = 1 << 17, 16


def run(program, words):
    """The standard output of the program and the CPU seconds it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([program, *words], check=True, capture_output=True, text=True)
    return done.stdout, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="8,16,24,32,48,64")
    parser.add_argument("--schemes", default="euler,events")
    parser.add_argument("--intervals", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--walkers", type=int, help="so many on every size, in place of a number that falls with the sites; a multiple of 32")
    parser.add_argument("--model", help="sample with this one, trained before")
    parser.add_argument("--leaps", default=str(ROOT / "target/release/leaps"))
    given = parser.parse_args()
    print("| scheme | lattice | walkers | passes per walker | us per walker and interval | per site | us per pass and site |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        model = given.model or str(pathlib.Path(scratch) / "model")
        if not given.model:
            run(given.leaps, [*TRAIN.split(), *SHORT.split(), "--out", model])
        for scheme in given.schemes.split(","):
            for size in map(int, given.sizes.split(",")):
                sites = size * size
                # Enough for a steady time, and whole passes on both cores.
                walkers = given.walkers or max(32, SITES_IN_ALL // sites // 32 * 32)
                words = f"sample --model {model} --set target.size={size} --json --quiet"

                def shortest(scheme, intervals):
                    counts = ["--scheme", scheme, "--walkers", str(walkers), "--intervals", str(intervals)]
                    done = [run(given.leaps, [*words.split(), *counts]) for _ in range(given.rounds)]
                    passes = json.loads(done[0][0])["network_passes_per_walker"]
                    return passes, min(seconds for _, seconds in done)

                (few, start), (passes, end) = shortest("euler", 1), shortest(scheme, given.intervals)
                each = 1e6 * (end - start) / (walkers + DRAWN)
                # The step that was taken out is one of euler's own.
                step = each / (given.intervals - (scheme == "euler"))
                print(
                    f"| {scheme} | {size}x{size} | {walkers} | {passes:.0f} | {step:,.0f} "
                    f"| {step / sites:.2f} | {each / (passes - few) / sites:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
