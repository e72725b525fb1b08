"""Time the hollow convolution written in PyTorch beside `cargo bench -p leaps --bench networks`, on the CPU.

    python crates/leaps/benches/peers/hollow_torch.py [--rounds 3] [--threads 2] [--python PYTHON]

PyTorch is installed into a throw-away virtual environment, unless --python names an interpreter that has it. The
network is that of `crates/leaps/src/net/hollow/mod.rs`, in the usual way: four rotated copies in one batch, circular
padding, Conv2d. Both memory formats are tried and the better one counts. The two programs take turns and
the best of several rounds counts, since other work on the machine only ever slows a run down. Ratios are of wall clock
(all threads) and of CPU time (configurations per second of one core's work).
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parents[4]
CASES = [(24, 6, 15, 2), (24, 6, 15, 3), (16, 3, 8, 2)]
BATCHES = [256, 1024]

PEER = """
import json, math, sys, time
import torch
from torch import nn
from torch.nn import functional as F

channels, depth, side, q, threads = map(int, sys.argv[1:6])
batches = json.loads(sys.argv[6])
inputs = 1 if q == 2 else q
torch.set_num_threads(threads)
torch.manual_seed(0)


class Time(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(9, 32), nn.SiLU(), nn.Linear(32, outputs))

    def forward(self, t):
        features = [t - 0.5] + [torch.cos(math.pi * k * t) for k in range(1, 9)]
        return self.layers(torch.stack(features, 1))[:, :, None, None].chunk(2, 1)


def padded(h):
    return F.pad(F.pad(h, (1, 1, 0, 0), mode="circular"), (0, 0, 2, 0), mode="circular")


class Hollow(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(inputs, channels, 3)
        self.next = nn.ModuleList(nn.Conv2d(channels, channels, 3) for _ in range(depth - 1))
        self.times = nn.ModuleList(Time(2 * channels) for _ in range(depth - 1))
        self.mix = nn.Conv2d(4 * channels, 2 * channels, 1)
        self.hidden = nn.Conv2d(2 * channels, 2 * channels, 1)
        self.out = nn.Conv2d(2 * channels, inputs, 1)
        self.time = Time(4 * channels)

    def forward(self, x, t):
        h = self.first(padded(torch.cat([torch.rot90(x, k, (2, 3)) for k in range(4)])))
        for layer, time_ in zip(self.next, self.times):
            scale, shift = (part.repeat(4, 1, 1, 1) for part in time_(t))
            h = h + layer(padded(F.silu(h * (1 + scale) + shift)))
        turned = h.roll(1, -2).chunk(4)
        h = torch.cat([torch.rot90(turned[k], -k, (2, 3)) for k in range(4)], 1)
        scale, shift = self.time(t)
        h = F.silu(self.mix(F.silu(h)) * (1 + scale) + shift)
        return self.out(F.silu(h + self.hidden(h)))


def best(batch, work):
    work()
    wall = cpu = 0
    until = time.perf_counter() + 8
    while time.perf_counter() < until:
        start, used = time.perf_counter(), time.process_time()
        work()
        wall = max(wall, batch / (time.perf_counter() - start))
        cpu = max(cpu, batch / (time.process_time() - used))
    return wall, cpu


rates = {}
for layout in (torch.contiguous_format, torch.channels_last):
    network = Hollow().to(memory_format=layout)
    for batch in batches:
        x = torch.randint(0, 2, (batch, inputs, side, side)).float().to(memory_format=layout)
        t = torch.rand(batch)
        slope = torch.randn(batch, inputs, side, side)

        def forward():
            with torch.no_grad():
                network(x, t)

        def both():
            network.zero_grad()
            (network(x, t) * slope).sum().backward()

        for name, work in (("forward", forward), ("both", both)):
            key = f"{name} {batch}"
            pair = best(batch, work)
            rates[key] = [max(a, b) for a, b in zip(pair, rates.get(key, (0, 0)))]
print(json.dumps({"version": torch.__version__, "rates": rates}))
"""


def run(command, threads):
    limits = {"RAYON_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        command, env=os.environ | limits, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--python", help="an interpreter that has torch")
    options = parser.parse_args()
    bench = ["cargo", "bench", "-q", "-p", "leaps", "--bench", "networks"]
    subprocess.run([*bench, "--no-run"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as folder:
        python = options.python
        if python is None:
            venv.create(folder, with_pip=True)
            python = str(pathlib.Path(folder) / "bin" / "python")
            install = [python, "-m", "pip", "install", "--quiet", "torch", "numpy"]
            subprocess.run(install, check=True)
        theirs, ours, version = {}, {}, ""
        for _ in range(options.rounds):
            for case in CASES:
                words = [str(number) for number in (*case, options.threads)]
                result = run([python, "-c", PEER, *words, json.dumps(BATCHES)], options.threads)
                version = result["version"]
                for name, rates in result["rates"].items():
                    known = theirs.get((case, name), (0, 0))
                    theirs[case, name] = [max(a, b) for a, b in zip(rates, known)]
            for row in run([*bench, "--", "--json"], options.threads):
                case = (row["channels"], row["depth"], row["side"], row["q"])
                for name in ("forward", "both"):
                    known = ours.get((case, name), (0, 0))
                    rates = (row[name], row[f"{name}_core"])
                    ours[case, name] = [max(a, b) for a, b in zip(rates, known)]
    print(f"PyTorch {version}, {options.threads} threads, configurations/s")
    print(f"{'':44}{'PyTorch':>9}{'leaps':>9}{'ratio':>7}{'a core:':>12}{'':>9}{'ratio':>7}")
    for case in CASES:
        channels, depth, side, q = case
        for name, label in (("forward", "forward"), ("both", "forward + backward")):
            for batch in BATCHES:
                (wall, core), (our_wall, our_core) = theirs[case, f"{name} {batch}"], ours[case, name]
                title = f"{channels}x{depth} {side}x{side} q={q} batch {batch}: {label}"
                print(
                    f"{title:44}{wall:>9.0f}{our_wall:>9.0f}{our_wall / wall:>7.1f}"
                    f"{core:>12.0f}{our_core:>9.0f}{our_core / core:>7.1f}"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
