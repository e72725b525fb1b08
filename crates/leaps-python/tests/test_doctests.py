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
    jobs = ["exact", "ais", "smc", "mcmc", "train", "load", "models", "sample", "free_energy", "minimize", "convert"]
    runs = ["WalkerRun", "ChainRun", "ExactRun", "FreeEnergyRun", "MinimumRun", "Estimate"]
    methods = [leaps.WalkerRun.to_xarray, leaps.WalkerRun.to_pandas, leaps.WalkerRun.to_arviz, leaps.FreeEnergyRun.to_xarray]
    for method in [*methods, leaps.FreeEnergyRun.to_pandas, leaps.Model.save]:
        assert ">>>" in method.__doc__, method
    targets = {name for name in leaps.__all__ if isinstance(getattr(leaps, name), type) and issubclass(getattr(leaps, name), leaps.Target)}
    for name in [*jobs, *runs, *sorted(targets)]:
        assert ">>>" in getattr(leaps, name).__doc__, name
