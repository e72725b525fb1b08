"""The speed of sampling a Python energy beside its own vectorised evaluation, and of a shipped model beside the program.

    python crates/leaps-python/benches/energy.py [PROGRAM]

The share is the time of as many evaluations of the same states in the same batches, alone, over the time of the job.
"""

import json
import subprocess
import sys
import time

import leaps
import numpy as np


def energy(x):
    """Ising spins on a square torus of 16x16 in a field."""
    s = (2 * x.view(np.int8) - 1).reshape(-1, 16, 16)
    bonds = s * np.roll(s, 1, axis=1) + s * np.roll(s, 1, axis=2)
    return 0.1 * s.sum(axis=(1, 2), dtype=np.float64) - bonds.sum(axis=(1, 2), dtype=np.float64)


def seconds(work):
    """Wall and CPU seconds: on a machine that does other things as well the second is the one to compare."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return np.array([time.perf_counter() - wall, time.process_time() - cpu])


def share(name, job, walkers):
    """Run a job that counts its calls; then make the same calls without it."""
    calls = []

    def counted(x):
        calls.append(len(x))
        return energy(x)

    target = leaps.Energy(counted, sites=256, beta=0.4)
    calls.clear()
    took = seconds(lambda: job(target))
    random = np.random.default_rng(1)
    states = {n: random.integers(0, 2, size=(n, 256)).astype(np.uint8) for n in set(calls)}
    alone = seconds(lambda: [energy(states[n]) for n in calls])
    rows = sum(calls)
    wall, cpu = alone / took
    print(
        f"{name:<18} {walkers:>6} walkers {len(calls):>6} calls of {rows // len(calls)}: job {took[0]:.2f} s,"
        f" alone {alone[0]:.2f} s, share {wall:.2f} (CPU time {cpu:.2f})"
    )


def energies():
    for walkers in (100, 1000, 10000):
        intervals = max(2, 20000 // walkers // 4)
        share("ais", lambda target: leaps.ais(target, walkers, intervals=intervals), walkers)
    share("smc", lambda target: leaps.smc(target, 1000, intervals=10), 1000)
    share("mcmc", lambda target: leaps.mcmc(target, 10, chains=1000, burn_in=2), 1000)
    share("mcmc, metropolis", lambda target: leaps.mcmc(target, 10, chains=1000, burn_in=2, kernel="metropolis"), 1000)


def models(walkers=2000, rounds=5):
    """The seconds that the program and the package report for the same walkers, in turn."""
    script = [sys.executable, "-m", "leaps"] if len(sys.argv) < 2 else sys.argv[1:]
    words = ["sample", "--model", "ising-8-critical", "--walkers", str(walkers), "--quiet", "--json"]
    pairs = []
    for _ in range(rounds):
        done = subprocess.run([*script, *words], capture_output=True, text=True, check=True)
        pairs.append((leaps.sample("ising-8-critical", walkers).seconds, json.loads(done.stdout)["seconds"]))
    own, other = np.array(pairs).T
    print(f"sample ising-8-critical, {walkers} walkers, best of {rounds}: Python {own.min():.3f} s, program {other.min():.3f} s")


if __name__ == "__main__":
    print("numpy", np.__version__, "python", sys.version.split()[0])
    energies()
    models()
