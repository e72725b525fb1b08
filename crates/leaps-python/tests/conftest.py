"""Fixtures and helpers that the tests share."""

import json
import subprocess
import sys

import numpy as np
import pytest


@pytest.fixture
def program(tmp_path):
    """Run the program on some words; returns what it prints as JSON."""

    def run(*words):
        command = [sys.executable, "-m", "leaps", *map(str, words), "--json", "--quiet"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    return run


@pytest.fixture
def ising_energy():
    """The energy of the 4x4 torus in the field 0.1, on states of 16 values."""

    def energy(x):
        s = 2.0 * x.reshape(-1, 4, 4) - 1.0
        bonds = s * (np.roll(s, 1, axis=1) + np.roll(s, 1, axis=2))
        return 0.1 * s.sum(axis=(1, 2)) - bonds.sum(axis=(1, 2))

    return energy
