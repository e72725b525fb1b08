"""Sample discrete distributions that are known up to a constant, and say how uncertain the answers are.

A target is an energy at an inverse temperature, ``rho(x) ~ exp(-beta E(x))``: one of the library's (`Ising`, `Potts`, `SpinGlass`,
`Rbm`, `BlumeCapel`, `Clock`, `BaxterWu`, `LatticeGas`, `AshkinTeller`, any tables by `LatticeModel`), couplings from arrays
(`Couplings`) or from a file (`File`), the maximum cut or independent set of a graph (`MaxCut`, `IndependentSet`), or a vectorised
Python function (`Energy`). The functions are the
verbs of the program ``leaps`` and take its settings by the same names:

>>> import leaps
>>> target = leaps.Ising(size=4, beta=0.4, field=0.1)
>>> leaps.exact(target).log_z
14.69...
>>> run = leaps.ais(target, walkers=500)
>>> run.states.shape
(500, 4, 4)
>>> abs(run.log_z.z) < 5
True

See docs/python.md in the repository for a guide.
"""

from ._jobs import ais, convert, exact, free_energy, load, mcmc, minimize, models, sample, smc, train
from ._leaps import __version__
from ._models import Model
from ._results import ChainRun, Estimate, ExactRun, FreeEnergyRun, MinimumRun, Result, WalkerRun
from ._targets import (
    AshkinTeller,
    BaxterWu,
    BlumeCapel,
    Clock,
    Couplings,
    Energy,
    File,
    IndependentSet,
    Ising,
    LatticeGas,
    LatticeModel,
    MaxCut,
    Potts,
    Rbm,
    SpinGlass,
    Target,
)

__all__ = [
    "AshkinTeller",
    "BaxterWu",
    "BlumeCapel",
    "ChainRun",
    "Clock",
    "Couplings",
    "Energy",
    "Estimate",
    "ExactRun",
    "File",
    "FreeEnergyRun",
    "IndependentSet",
    "Ising",
    "LatticeGas",
    "LatticeModel",
    "MaxCut",
    "MinimumRun",
    "Model",
    "Potts",
    "Rbm",
    "Result",
    "SpinGlass",
    "Target",
    "WalkerRun",
    "__version__",
    "ais",
    "convert",
    "exact",
    "free_energy",
    "load",
    "mcmc",
    "minimize",
    "models",
    "sample",
    "smc",
    "train",
]
