"""Sample discrete distributions that are known up to a constant, and say how uncertain the answers are.

A target is an energy at an inverse temperature, ``rho(x) ~ exp(-beta E(x))``: one of the library's (`Ising`, `Potts`, `SpinGlass`,
`Rbm`), couplings from arrays (`Couplings`) or from a file (`File`), or a vectorised Python function (`Energy`). The functions are the
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

from ._jobs import ais, exact, free_energy, load, mcmc, minimize, models, sample, smc, train
from ._leaps import __version__
from ._models import Model
from ._results import ChainRun, Estimate, ExactRun, FreeEnergyRun, MinimumRun, Result, WalkerRun
from ._targets import Couplings, Energy, File, Ising, Potts, Rbm, SpinGlass, Target

__all__ = [
    "ChainRun",
    "Couplings",
    "Energy",
    "Estimate",
    "ExactRun",
    "File",
    "FreeEnergyRun",
    "Ising",
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
