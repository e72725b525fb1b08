"""Compare `leaps minimize` with the PyPI packages dwave-samplers and openjij, one thread each.

    python crates/leaps/benches/peers/minimize.py [--rounds 3] [--reads 64] [--sweeps 100,1000] [--quick]

The packages are installed into a throw-away virtual environment, unless --python names an interpreter that has them.
Graphs have rudy's published parameters (those of the G-set, and smaller ones) and are made by the example rudy. Every
program anneals the same graph with the same number of sweeps, each with its own default temperatures. Optima are exact
where `leaps minimize --method exact` can prove them; else the best energy that any of the three has met stands for
the optimum, and the table says so.

p is the share of single runs (reads, walkers) that reach the optimum, `each` the seconds of one run, and `tts` the seconds until one
of many runs has reached it with a chance of 99 %: each * ln(0.01) / ln(1 - p). Runs of the programs alternate, each
round has other seeds, and the shortest time of all rounds counts, since other work on the machine only slows a run
down. Reading files, imports and building models do not count.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parents[4]

# Name, arguments of the example rudy, verb's target, whether an exact method can do it.
INSTANCES = [
    ("torus 10x10, +-1", "torus 10x10 pm1 1", "maxcut", True),
    ("torus 100x8, +-1 (as G11)", "torus 100x8 pm1 1", "maxcut", True),
    ("random 60, 10 %, +-1", "random 60 0.1 pm1 1", "maxcut", True),
    ("random 60, 10 %, set", "random 60 0.1 one 2", "independent-set", True),
    ("random 800, 6 %, 1 (as G1)", "random 800 0.06 one 1", "maxcut", False),
    ("random 800, 6 %, +-1 (as G6)", "random 800 0.06 pm1 1", "maxcut", False),
]

PEER = """
import json, sys, time
package, kind, path, reads, sweeps, seed = sys.argv[1:]
reads, sweeps, seed = int(reads), int(sweeps), int(seed)
with open(path) as file:
    n, _ = map(int, next(file).split())
    edges = [(int(i) - 1, int(j) - 1, float(w)) for i, j, w in map(str.split, file)]
# Energies over spins, with their constant: those of the program.
h = {v: 0.0 for v in range(n)}
J, constant = {}, 0.0
if kind == "maxcut":
    for i, j, w in edges:
        J[i, j] = J.get((i, j), 0.0) + w / 2
        constant -= w / 2
else:
    for v in h:
        h[v] -= 0.5
        constant -= 0.5
    for i, j, _ in edges:
        J[i, j] = 0.5
        h[i] += 0.5
        h[j] += 0.5
        constant += 0.5
if package == "dwave":
    from dwave.samplers import SimulatedAnnealingSampler as Sampler
    import dimod
    sampler, model = Sampler(), dimod.BinaryQuadraticModel.from_ising(h, J)
    run = lambda: sampler.sample(model, num_reads=reads, num_sweeps=sweeps, seed=seed)
else:
    import openjij
    sampler = openjij.SASampler()
    # With a seed all of its reads would share their random numbers.
    run = lambda: sampler.sample_ising(h, J, num_reads=reads, num_sweeps=sweeps)
start = time.perf_counter()
answer = run()
seconds = time.perf_counter() - start
energies = []
for datum in answer.data(["energy", "num_occurrences"]):
    energies += [float(datum.energy) + constant] * int(datum.num_occurrences)
print(json.dumps({"seconds": seconds, "energies": energies}))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reads", type=int, default=64)
    parser.add_argument("--sweeps", default="100,1000")
    parser.add_argument("--quick", action="store_true", help="the small graphs, fewer reads")
    parser.add_argument("--python", help="an interpreter that has both packages")
    parser.add_argument("--program", help="the program, with examples/rudy beside it, instead of building them")
    arguments = parser.parse_args()
    instances = INSTANCES[:1] if arguments.quick else INSTANCES
    rounds, reads = (1, 16) if arguments.quick else (arguments.rounds, arguments.reads)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    program = pathlib.Path(arguments.program or target / "leaps")
    if not arguments.program:
        build = ["cargo", "build", "--release", "-p", "leaps", "-p", "leaps-cli", "--bin", "leaps", "--example", "rudy"]
        subprocess.run(build, cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        python = arguments.python
        if not python:
            venv.create(folder / "venv", with_pip=True)
            python = folder / "venv" / "bin" / "python"
            install = [python, "-m", "pip", "install", "--quiet", "dwave-samplers", "openjij"]
            subprocess.run(install, check=True)
        compare(instances, (program, program.parent / "examples" / "rudy", python), folder, (rounds, reads, arguments.sweeps))
    return 0


def output(command):
    one = os.environ | {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=one, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def compare(instances, programs, folder, effort):
    program, rudy, python = programs
    rounds, reads, sweeps = effort
    print("| graph | optimum | sweeps | program | p | each | tts |")
    print("|---|---:|---:|---|---:|---:|---:|", flush=True)
    for name, words, kind, exact in instances:
        path = folder / "graph.txt"
        path.write_text(output([rudy, *words.split()]))
        ours = [program, "--quiet", "--json", "--threads", "1", "minimize", kind, path]
        optimum = None
        if exact:
            optimum = json.loads(output([*ours, "--method", "exact"]))["optimum"]
        met = {}
        for number in range(1, rounds + 1):
            for count in sweeps.split(","):
                found = anneal(ours, reads, count, number)
                met.setdefault((count, "leaps"), []).append(found)
                for package in ("dwave", "openjij"):
                    words = [package, kind, path, reads, count, number]
                    found = json.loads(output([python, "-c", PEER, *map(str, words)]))
                    met.setdefault((count, package), []).append((found["seconds"], found["energies"]))
        best = min(min(energies) for runs in met.values() for _, energies in runs)
        lowest = best if optimum is None else optimum
        assert best >= lowest - 1e-6, f"{best} is below what was proven: {lowest}"
        for (count, package), runs in met.items():
            all_energies = [energy for _, energies in runs for energy in energies]
            share = sum(energy < lowest + 1e-6 for energy in all_energies) / len(all_energies)
            each = min(seconds / len(energies) for seconds, energies in runs)
            many = 1.0 if share == 1.0 else math.log(0.01) / math.log(1 - share) if share else math.inf
            tts = f"{each * max(many, 1.0):.2g} s" if share else f"-, {min(all_energies):g}"
            label = f"{lowest:g}" + ("" if exact else " (best met)")
            print(f"| {name} | {label} | {count} | {package} | {share:.3f} | {each * 1e3:.3g} ms | {tts} |", flush=True)


def anneal(ours, reads, sweeps, seed):
    """Walkers that reach the lowest energy of their restart; of the others only that they did not."""
    words = ["--method", "annealing", "--restarts", "1", "--walkers", reads, "--sweeps", sweeps, "--seed", seed]
    found = json.loads(output([*ours, *map(str, words)]))
    [restart] = found["restarts"]
    energies = [restart["energy"]] * restart["found"] + [math.inf] * (reads - restart["found"])
    return found["seconds_of_restarts"][0], energies


if __name__ == "__main__":
    sys.exit(main())
