"""Ctrl-C: walkers, chains, searches, free energies and trainings in memory return what they have; jobs that have nothing yet raise KeyboardInterrupt."""

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="consoles of Windows have no signals")

# Each script says when its work has begun; then it is sent SIGINT. None of them would end by itself.
SCRIPTS = {
    "chains": """
run = leaps.mcmc(leaps.Ising(size=16), steps=10**8, chains=4, burn_in=10, thin=1000, progress=begun)
print("returned", run.interrupted, run.steps < run.asked == 10**8, run.states.shape[0])
""",
    "minimum": """
import warnings
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    glass = leaps.SpinGlass(size=24, field=0.1)
    run = leaps.minimize(glass, restarts=10**9, method="annealing", sweeps=200, walkers=64, progress=begun)
same = abs(float(glass.energy(run.state)) - run.energy) < 1e-9
print("returned", run.interrupted, run.ended_by, same, any("interrupted after" in str(one.message) for one in heard))
""",
    "walkers": """
target = leaps.Ising(size=(3, 4), field=0.2, beta=0.4)
work = lambda: leaps.ais(target, walkers=4000, intervals=10**6, trace_points=10**4, progress=late)
returned(work, lambda beta: leaps.exact(target.at(beta)).log_z)
""",
    "energy": """
target = leaps.Energy(lambda x: x.sum(axis=1, dtype=float), sites=16, beta=0.7)
work = lambda: leaps.smc(target, walkers=1000, intervals=10**6, trace_points=10**5, progress=late)
returned(work, lambda beta: 16 * np.log(1 + np.exp(-beta)))
""",
    "network": """
target = leaps.Ising(size=(3, 4), field=0.2, beta=0.4)
model = leaps.train(target, steps=20, batch=64, network="mlp", progress=False)
work = lambda: leaps.sample(model, 500, intervals=10**5, sweeps=1, trace_points=10**4, progress=late)
returned(work, lambda beta: leaps.exact(target.at(beta)).log_z)
""",
    "too early": """
try:
    leaps.ais(leaps.Ising(size=32), walkers=20000, intervals=10**6, progress=begun)
except KeyboardInterrupt:
    print("raised")
""",
    "training": """
import warnings
warnings.simplefilter("ignore")
model = leaps.train(leaps.Ising(size=4), steps=10**8, batch=64, network="mlp", progress=begun)
print("returned", 0 < model.description["training"]["steps"] < 10**8)
""",
    "free energies": """
import warnings
warnings.simplefilter("ignore")
kept = lambda label, done, total, note: begun(label, int(done > total / 5000), total, note)
run = leaps.free_energy(leaps.Ising(size=8), [0.3, 0.4], [0.0, 0.1], steps=10**8, thin=10**4, progress=kept)
print("returned", run.interrupted, 0 < len(run) < 4)
""",
}
EXPECTED = {
    "chains": "returned True True 4",
    "minimum": "returned True interrupted True True",
    "walkers": "returned True True True True True True",
    "energy": "returned True True True True True True",
    "network": "returned True True True True True True",
    "too early": "raised",
    "training": "returned True",
    "free energies": "returned True True",
}

# Whoever starts the tests in the background may have SIGINT ignored, which children inherit.
HEAD = """
import leaps, signal, sys, warnings
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)
said = False
def begun(label, done, total, note):
    global said
    if done > 0 and not said:
        said = True
        print("begun", flush=True)
def late(label, done, total, note):
    # Some points of the path have been passed by then.
    begun(label, int(done > total / 2000), total, note)
def returned(work, log_z):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        run = work()
    beta, there = run.reached.beta, run.to_dict()["reached"]
    exact = log_z(beta)
    words = f"for beta = {beta:.6f} "
    said = [any(words in str(one.message) for one in heard), words in repr(run), there["beta"] == beta]
    near = abs(run.log_z.mean - exact) < 5 * run.log_z.error + 1e-9
    print("returned", run.interrupted, 0 < run.reached.t < 1, bool(near), *said)
"""


@pytest.mark.parametrize("name", SCRIPTS)
def test_ctrl_c(name):
    process = subprocess.Popen([sys.executable, "-c", HEAD + SCRIPTS[name]], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().strip() == "begun"
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert rest.strip() == EXPECTED[name]
    assert process.returncode == 0


# The last call of the energy sends the signal and lasts until it is heard: by then all that was asked for is there.
LAST = """
import os, time
calls = 0
last = None
def energy(x):
    global calls
    calls += 1
    if calls == last:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)
    return x.sum(axis=1, dtype=float)
target = leaps.Energy(energy, sites=6)
def run():
    global calls
    calls = 0
    return {job}
whole = run()
last = calls
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    again = run()
same = again.to_dict()["log_z"] == whole.to_dict()["log_z"]
print(same, any("interrupted" in str(one.message) for one in heard))
"""


@pytest.mark.parametrize("job", ["leaps.ais(target, walkers=50, intervals=5)", "leaps.exact(target)"])
def test_a_finished_result_is_not_thrown_away(job):
    words = [sys.executable, "-c", HEAD + LAST.replace("{job}", job)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "True True"
