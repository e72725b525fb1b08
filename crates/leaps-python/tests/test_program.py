"""The program that comes with the package, and the same bytes from both."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig

import leaps
import numpy as np
import pytest


def without_times(record):
    """A result without what differs from run to run."""
    times = ("seconds", "merit", "per_second", "command")
    if isinstance(record, dict):
        return {key: without_times(value) for key, value in record.items() if not any(word in key for word in times)}
    return [without_times(item) for item in record] if isinstance(record, list) else record


ISING = ["ising", "--size", 4, "--beta", 0.4, "--field", 0.1]
TARGET = leaps.Ising(size=4, beta=0.4, field=0.1)
CASES = {
    "ais": (["ais", *ISING, "--walkers", 200], lambda: leaps.ais(TARGET, 200)),
    "smc": (
        ["smc", *ISING, "--walkers", 200, "--seed", 7, "--kernel", "metropolis", "--schedule", "geometric"],
        lambda: leaps.smc(TARGET, 200, seed=7, kernel="metropolis", schedule="geometric"),
    ),
    "mcmc": (["mcmc", *ISING, "--steps", 50, "--chains", 4], lambda: leaps.mcmc(TARGET, 50, chains=4)),
    "sample": (
        ["sample", "--model", "ising-8-critical", "--walkers", 50, "--intervals", 10],
        lambda: leaps.sample("ising-8-critical", 50, intervals=10),
    ),
    "exact": (["exact", *ISING, "--samples", 20], lambda: leaps.exact(TARGET, samples=20)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_seed_gives_the_same_bytes(name, program, tmp_path):
    words, call = CASES[name]
    printed = program(*words, "--out", "samples.npz")
    run = call()
    with np.load(tmp_path / "samples.npz") as file:
        states = file["x"]
        log_weights = file["log_weight"]
        energies = file["energy"]
    assert run.states.tobytes() == states.tobytes()
    assert run.energies.tobytes() == energies.tobytes()
    assert run._run.log_weights.tobytes() == log_weights.tobytes()
    if name != "mcmc":
        assert run.states.shape == states.shape
    assert without_times(run.to_dict()) == without_times(printed)


def test_free_energies_are_the_programs(program):
    printed = program("free-energy", *ISING[:3], "--beta", "0.2,0.4", "--chains", 8, "--steps", 200)
    run = leaps.free_energy(leaps.Ising(size=4, beta=0.4), beta=[0.2, 0.4], chains=8, steps=200)
    assert without_times(run.to_dict()["points"]) == without_times(printed["points"])


def run(*words, **settings):
    return subprocess.run([sys.executable, "-m", "leaps", *words], capture_output=True, text=True, **settings)


def test_exit_codes_are_the_programs(tmp_path):
    assert run("--version").stdout.startswith(f"leaps {leaps.__version__}")
    assert run("exact", "ising", "--size", "4").returncode == 0
    wrong = run("exact", "ising", "--sise", "4")
    assert wrong.returncode == 2 and "--size" in wrong.stderr
    assert run("report", str(tmp_path / "missing")).returncode in (2, 4)
    failed = run("ais", "ising", "--size", "4", "--walkers", "20", "--require-ess", "1")
    assert failed.returncode == 1


@pytest.mark.skipif(os.name == "nt", reason="consoles of Windows have no signals")
def test_signals_end_the_program_as_ever():
    words = ["mcmc", "ising", "--size", "8", "--steps", "1000000000", "--chains", "2", "--thin", "1000"]
    for number, code in [(signal.SIGINT, 130), (signal.SIGTERM, 75)]:
        process = subprocess.Popen(
            [sys.executable, "-m", "leaps", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            # The first line says that the work has begun, and with it that signals are caught.
            assert process.stderr.readline()
            process.send_signal(number)
            process.communicate(timeout=120)
        finally:
            process.kill()
        assert process.returncode == code


def test_the_program_is_installed():
    script = os.path.join(sysconfig.get_path("scripts"), "leaps.exe" if os.name == "nt" else "leaps")
    if shutil.which(script) is None:
        pytest.skip("the package is not installed but used from its folder")
    found = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert found.stdout.startswith(f"leaps {leaps.__version__}")
