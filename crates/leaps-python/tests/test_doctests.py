"""The examples in docstrings."""

import doctest
import importlib
import pkgutil

import leaps
import numpy as np
import pytest

MODULES = ["leaps", *(f"leaps.{found.name}" for found in pkgutil.iter_modules(leaps.__path__) if found.name != "__main__")]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, extraglobs={"leaps": leaps, "np": np}, optionflags=OPTIONS)
    assert failed == 0


def test_every_function_has_an_example():
    for name in ["exact", "ais", "smc", "mcmc", "train", "load", "models", "sample", "free_energy", "Ising", "Couplings", "Energy"]:
        assert ">>>" in getattr(leaps, name).__doc__, name
