"""Compare our cluster updates with the PyPI package peapods (Rust core), one core each.

    python crates/leaps/benches/peers/peapods.py [--side 32] [--updates 4000] [--rounds 12]

peapods is installed into a throw-away virtual environment. It has no cluster-only mode: every sweep is a
Metropolis sweep with measurements, optionally followed by a cluster update. The cluster update's time is
therefore the difference of two runs, with and without it; the ratio of the full steps is printed as well, ours
then being one Metropolis sweep and one cluster update. Runs of the two programs alternate and the best of
several counts, since other work on the machine only ever slows a run down.
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

PEER = """
import json, math, sys, time
import numpy as np
from peapods import Ising

side, sweeps = int(sys.argv[1]), int(sys.argv[2])
temperature = np.array([2 / math.log(1 + math.sqrt(2))])
seconds = {}
for name, options in {
    "metropolis": {},
    "wolff": {"cluster_update_interval": 1, "cluster_mode": "wolff"},
    "swendsen-wang": {"cluster_update_interval": 1, "cluster_mode": "sw"},
}.items():
    model = Ising((side, side), temperatures=temperature)
    model.sample(sweeps // 5, sequential=True, **options)
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        model.sample(sweeps, sequential=True, **options)
        best = min(best, time.perf_counter() - start)
    seconds[name] = best / sweeps
print(json.dumps(seconds))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--updates", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=12)
    arguments = parser.parse_args()
    size = [str(arguments.side), str(arguments.updates)]
    build = ["cargo", "build", "--release", "-p", "leaps", "--example", "cluster_speed"]
    subprocess.run(build, cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = target / "release" / "examples" / "cluster_speed"
    environment = os.environ | {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    theirs, ours = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = pathlib.Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "peapods"], check=True)

        def run(command):
            done = subprocess.run(
                command, env=environment, check=True, stdout=subprocess.PIPE, text=True
            )
            return json.loads(done.stdout)

        for _ in range(arguments.rounds):
            for name, seconds in run([python, "-c", PEER, *size]).items():
                theirs[name] = min(seconds, theirs.get(name, seconds))
            for name, result in run([binary, *size]).items():
                if name != "side":
                    seconds = 1 / result["updates_per_second"]
                    ours[name] = min(seconds, ours.get(name, seconds))
    print(f"critical Ising {arguments.side} x {arguments.side}, microseconds, one core")
    print(f"{'':32}{'peapods':>9}{'leaps':>9}{'ratio':>8}")
    for name in ("wolff", "swendsen-wang"):
        cluster = theirs[name] - theirs["metropolis"]
        rows = {
            name: (cluster, ours[name]),
            f"{name} + Metropolis sweep": (theirs[name], ours[name] + ours["metropolis"]),
        }
        for label, (their, our) in rows.items():
            print(f"{label:32}{their * 1e6:9.2f}{our * 1e6:9.2f}{their / our:8.2f}")
    sweep = (theirs["metropolis"], ours["metropolis"])
    print(f"{'Metropolis sweep':32}{sweep[0] * 1e6:9.2f}{sweep[1] * 1e6:9.2f}{sweep[0] / sweep[1]:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
