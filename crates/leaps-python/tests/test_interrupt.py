"""Ctrl-C: chains return what they have, other jobs raise KeyboardInterrupt."""

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
    "walkers": """
try:
    leaps.ais(leaps.Ising(size=32), walkers=20000, intervals=10**6, progress=begun)
except KeyboardInterrupt:
    print("raised")
""",
    "energy": """
try:
    target = leaps.Energy(lambda x: x.sum(axis=1, dtype=float), sites=16)
    leaps.smc(target, walkers=1000, intervals=10**6, progress=begun)
except KeyboardInterrupt:
    print("raised")
""",
    "training": """
try:
    leaps.train(leaps.Ising(size=4), steps=10**8, batch=64, network="mlp", progress=begun)
except KeyboardInterrupt:
    print("raised")
""",
}
EXPECTED = {"chains": "returned True True 4", "walkers": "raised", "energy": "raised", "training": "raised"}

# Whoever starts the tests in the background may have SIGINT ignored, which children inherit.
HEAD = """
import leaps, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
said = False
def begun(label, done, total, note):
    global said
    if done > 0 and not said:
        said = True
        print("begun", flush=True)
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
