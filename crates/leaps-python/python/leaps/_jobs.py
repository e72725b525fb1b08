"""The functions of the package: the verbs of the program."""

from __future__ import annotations

import os
import warnings
from contextlib import contextmanager
from typing import Any, Iterator, Sequence, Union

import numpy as np

from . import _leaps, _progress
from ._models import Model
from ._results import ChainRun, ExactRun, FreeEnergyRun, MinimumRun, WalkerRun
from ._targets import Target

Named = Union[str, "os.PathLike[str]"]


#: The process that imported the package. Threads do not survive a fork: a child starts its own for every job.
_PROCESS = os.getpid()


@contextmanager
def _placed(label: str, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Where a job runs and who watches it, taken out of its keyword arguments."""
    place = {key: settings.pop(key, None) for key in ("device", "precision", "threads")}
    if place["threads"] is None and os.getpid() != _PROCESS:
        place["threads"] = os.cpu_count() or 1
    bar = _progress.chosen(settings.pop("progress", None), label)
    try:
        yield {**place, "show": bar}
    finally:
        if bar is not None:
            bar.close()


def _walked(run: WalkerRun) -> WalkerRun:
    """A run of walkers, with a warning if Ctrl-C ended it; for functions that users call themselves."""
    if run.interrupted:
        own = (doubt for doubt in run.warnings if doubt.startswith("interrupted"))
        warnings.warn(next(own, "interrupted at the end of the path"), RuntimeWarning, stacklevel=3)
    return run


def _problem(target: Target) -> _leaps.Problem:
    if not isinstance(target, Target):
        raise TypeError(f"target: must be a leaps.Target such as leaps.Ising(size=8), not {type(target).__name__}")
    return target._problem


def exact(target: Target, samples: int | None = None, *, method: str | None = None, **settings: Any) -> ExactRun:
    """The exact answer: log Z, energy, heat capacity and, where enumeration has it, the order.

    By enumeration, transfer matrix or Kaufman's formula, whichever applies; ``method`` asks for one of them ("enumeration",
    "transfer-matrix", "kaufman"). With ``samples`` independent states are drawn as well, from ``seed``.

    >>> solved = leaps.exact(leaps.Ising(size=15, beta=0.4407))
    >>> solved.method, round(solved.log_z, 3)
    ('kaufman', 209.826)
    >>> leaps.exact(leaps.Ising(size=4), samples=100).states.shape
    (100, 4, 4)
    """
    problem = _problem(target)
    with _placed("exact", settings) as place:
        return ExactRun(_leaps.exact(problem, {"method": method, "samples": samples or 0}, settings, place))


def ais(target: Target, walkers: int | None = None, **settings: Any) -> WalkerRun:
    """Annealed importance sampling: walkers that a Markov kernel moves along the path, weighted.

    Settings are those of ``leaps ais``: ``intervals``, ``sweeps``, ``kernel``, ``at_beta``, ``schedule``, ``two_sided``, ...; and
    ``seed``, ``device`` ("auto", "cpu", "cuda", "cuda:1"), ``precision``, ``threads``, ``progress``, as for every function. The same
    seed gives the same states and weights as the program.

    Ctrl-C returns the walkers at the last of the ``trace_points`` (10) of the path that all of them have reached: ``interrupted`` is true then,
    and ``reached`` says at which ``beta`` states, weights and all numbers are. Before the first of them KeyboardInterrupt is raised.

    >>> run = leaps.ais(leaps.Ising(size=4, beta=0.4, field=0.1), walkers=500, intervals=50)
    >>> run.states.shape, run.log_weights.shape
    ((500, 4, 4), (500,))
    >>> abs(run.log_z.z) < 5
    True
    """
    problem = _problem(target)
    with _placed("ais", settings) as place:
        run = WalkerRun(_leaps.ais(problem, {"walkers": walkers, **settings}, place))
    return _walked(run)


def smc(target: Target, walkers: int | None = None, **settings: Any) -> WalkerRun:
    """Sequential Monte Carlo, also called population annealing: `ais` with resampling.

    Settings are those of `ais`, and ``ess_threshold`` and ``resampler``; so is what Ctrl-C leaves.

    >>> leaps.smc(leaps.Potts(q=3, size=4, beta=0.8), walkers=500).resamplings >= 0
    True
    """
    problem = _problem(target)
    with _placed("smc", settings) as place:
        run = WalkerRun(_leaps.smc(problem, {"walkers": walkers, **settings}, place))
    return _walked(run)


def mcmc(target: Target, steps: int | None = None, *, keep: bool = True, **settings: Any) -> ChainRun:
    """Markov chains, independent ones or ladders of temperatures that exchange states.

    Settings are those of ``leaps mcmc``: ``kernel``, ``chains``, ``steps``, ``burn_in``, ``thin``, ``temperatures``, ... With
    ``keep=False`` states are measured and not kept. Ctrl-C ends the chains: the result is that of the steps that were made, and its
    ``interrupted`` is true; before the first kept state KeyboardInterrupt is raised.

    >>> run = leaps.mcmc(leaps.Ising(size=4, beta=0.3), steps=300, chains=4, burn_in=50)
    >>> run.states.shape
    (4, 300, 4, 4)
    >>> run.observables.energy_per_site.r_hat < 1.2
    True
    """
    problem = _problem(target)
    with _placed("mcmc", settings) as place:
        run = ChainRun(_leaps.mcmc(problem, keep, {"steps": steps, **settings}, place))
    if run.interrupted:
        warnings.warn(f"interrupted after {run.steps} of {run.asked} steps", RuntimeWarning, stacklevel=2)
    return run


def train(
    target: Target,
    steps: int | None = None,
    *,
    network: str | None = None,
    out: Named | None = None,
    start_from: Model | Named | None = None,
    **settings: Any,
) -> Model:
    """Train a network to sample a target.

    Settings are those of the sections ``[network]``, ``[train]`` and ``[path]``: ``batch``, ``lr``, ``channels``, ``depth``,
    ``beta_range``, ...; ``network`` is the kind ("hollow", "lec", "mlp", ...). ``start_from`` is a model to start from, whatever the size of
    its lattice: the key ``from``, which Python reserves. With ``out`` the run has a directory: it keeps checkpoints
    there, goes on from them if it is called again, and Ctrl-C (KeyboardInterrupt) loses nothing. Without, training is in memory, and
    Ctrl-C returns the network so far, with a warning.

    >>> model = leaps.train(leaps.Ising(size=4, beta=0.3), steps=20, batch=64, network="mlp")
    >>> model.sample(walkers=200).states.shape
    (200, 4, 4)
    """
    problem = _problem(target)
    if isinstance(start_from, Model):
        if not start_from.name:
            raise ValueError("start_from: must have a name or a directory; save(directory) gives a model in memory one")
        start_from = start_from.name
    settings = {"steps": steps, "kind": network, **({} if start_from is None else {"from": start_from}), **settings}
    with _placed("train", settings) as place:
        model = Model(_leaps.Model.train(problem, out, settings, place), target)
    trained = model.description["training"]
    if out is None and trained["steps"] < trained["settings"]["steps"]:
        words = f"interrupted after {trained['steps']} of {trained['settings']['steps']} steps"
        warnings.warn(words, RuntimeWarning, stacklevel=2)
    return model


def load(name: Named, target: Target | None = None) -> Model:
    """The model of a model directory or a run directory, or one by its name: shipped (`models`) or in ``LEAPS_MODELS``.

    Its `Model.description` says what it was trained for: ``["family"]`` has ranges of beta and field, if it was trained over them,
    ``["training"]["settings"]["instances"]`` random instances. A model of a Python energy needs the energy as ``target``.

    >>> leaps.load("ising-8-critical").target.sites
    64
    >>> leaps.load("ising-16-family").description["family"]
    {'beta': [0.2, 0.6], 'field': [-0.2, 0.2]}
    """
    return Model(_leaps.Model.load(name, None if target is None else _problem(target)), target)


def models() -> list[str]:
    """The names of all models that there are.

    >>> "ising-8-critical" in leaps.models()
    True
    """
    return _leaps.models()


def sample(
    model: Model | Named, walkers: int | None = None, *, target: Target | None = None, **settings: Any
) -> WalkerRun:
    """Weighted walkers that follow a trained network, given by a `Model`, a directory or a name.

    Settings are those of ``leaps sample``: ``scheme``, ``intervals``, ``substeps``, ``sweeps``, ``ess_threshold``, ...; and those of the
    target that the network also knows, such as ``beta``, ``field`` and ``size``. Ctrl-C leaves what it leaves of `ais`.

    A network that was trained over random instances samples any other one: of another ``disorder_seed``, of a file (``path``, at the
    model's temperature), or a ``target`` at a temperature of its own. Weights are exact for all of them.

    >>> run = leaps.sample("ising-8-critical", walkers=200, intervals=30)
    >>> run.states.shape, run.ess > 0.8
    ((200, 8, 8), True)
    >>> glass = leaps.SpinGlass(size=4, beta=0.5)
    >>> model = leaps.train(glass, steps=4, instances=8, batch=16, channels=2)
    >>> leaps.sample(model, walkers=100, intervals=10, disorder_seed=7).states.shape
    (100, 4, 4)
    """
    model = model if isinstance(model, Model) else load(model)
    other = None if target is None else _problem(target)
    with _placed("sample", settings) as place:
        run = WalkerRun(model._inner.sample(other, {"walkers": walkers, **settings}, place))
    return _walked(run)


def convert(
    source: Named,
    destination: Named,
    *,
    from_format: str | None = None,
    to_format: str | None = None,
) -> str:
    """Write the file of an instance in another format, as ``leaps convert`` does; returns what was written, in words.

    ``from_format`` is recognised by the contents of the file, ``to_format`` by the end of the new name; both are as for `File`.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "ring.txt").write_text("0 1 1.0\\n1 2 1.0\\n2 0 1.0\\nfield 0 0.5\\n")
    >>> words = leaps.convert(folder / "ring.txt", folder / "ring.json")
    >>> float(leaps.File(folder / "ring.json").energy([0, 0, 0]))
    -3.5
    """
    return _leaps.convert(source, destination, from_format, to_format)


def _numbers(given: float | Sequence[float] | np.ndarray | None) -> list[float]:
    """Some numbers, or one."""
    return [] if given is None else np.atleast_1d(np.asarray(given, dtype=float)).tolist()


def _strength(field: Any, chemical_potential: Any, crystal_field: Any) -> tuple[str, list[float]]:
    """What varies beside the temperature, and its values."""
    named = {"field": field, "chemical_potential": chemical_potential, "crystal_field": crystal_field}
    given = [name for name, values in named.items() if values is not None]
    if len(given) > 1:
        raise TypeError(f"{given[1]}: must be left out beside {given[0]}; a grid has one of them")
    of = given[0] if given else "field"
    return of, _numbers(named[of])


def free_energy(
    target: Target | Model | Named,
    beta: float | Sequence[float] | np.ndarray | None = None,
    field: float | Sequence[float] | np.ndarray | None = None,
    *,
    chemical_potential: float | Sequence[float] | np.ndarray | None = None,
    crystal_field: float | Sequence[float] | np.ndarray | None = None,
    method: str = "auto",
    **settings: Any,
) -> FreeEnergyRun:
    """Free energy, entropy, energy, heat capacity and order over inverse temperatures and uniform fields, or chemical potentials of a
    lattice gas, or crystal fields of Blume and Capel's model: one of the three.

    ``target`` is a target, or a model by itself, its directory or its name. ``method`` is "network", "ais", "smc" or "tempering"; "auto" takes the
    network if there is one, else tempering, for a Python energy smc.

    >>> run = leaps.free_energy(leaps.Ising(size=4, field=0.1), beta=[0.2, 0.4], chains=8, steps=500)
    >>> [abs(point.log_z.z) < 5 for point in run]
    [True, True]
    >>> gas = leaps.free_energy(leaps.LatticeGas(size=3), [0.5, 1.0], chemical_potential=[-2.5, -1.5], chains=8, steps=300)
    >>> [round(point.log_z.exact, 3) for point in gas] == [
    ...     round(leaps.exact(leaps.LatticeGas(size=3, beta=beta, chemical_potential=mu)).log_z, 3)
    ...     for mu in (-2.5, -1.5) for beta in (0.5, 1.0)]
    True
    """
    of, values = _strength(field, chemical_potential, crystal_field)
    model = target if isinstance(target, Model) else None
    if isinstance(target, (str, os.PathLike)):
        model = load(target)
    problem = _problem(target) if model is None else model._inner.target
    wanted = {
        "betas": _numbers(beta),
        "fields": values,
        "of": of,
        "method": method,
        "model": None if model is None else model._inner,
    }
    with _placed("free energy", settings) as place:
        run = FreeEnergyRun(_leaps.free_energy(problem, wanted, settings, place))
    if run.interrupted:
        warnings.warn(f"interrupted after {len(run)} points", RuntimeWarning, stacklevel=2)
    return run


def minimize(
    target: Target,
    restarts: int | None = None,
    *,
    method: str = "auto",
    walkers: int | None = None,
    sweeps: int | None = None,
    temperatures: int | None = None,
    beta: float | None = None,
    time_limit: float | None = None,
    target_energy: float | None = None,
    model: Model | Named | None = None,
    **settings: Any,
) -> MinimumRun:
    """The lowest energy and a state that has it, by restarts of annealing, tempering, Houdayer moves or a network.

    ``method`` is "exact", "annealing", "tempering", "houdayer" or "network"; "auto" proves the ground state where that is quick. The search ends after
    ``restarts`` (10 if nothing else says when), ``time_limit`` seconds, or at ``target_energy``. Ctrl-C ends it with what was found;
    ``interrupted`` is true then.

    >>> glass = leaps.SpinGlass(size=6, disorder_seed=3, field=0.1)
    >>> found = leaps.minimize(glass, restarts=2, method="annealing", sweeps=100)
    >>> bool(abs(glass.energy(found.state) - found.energy) < 1e-9)
    True
    """
    if isinstance(model, (str, os.PathLike)):
        model = load(model)
    search = {
        "method": method,
        "walkers": walkers,
        "sweeps": sweeps,
        "temperatures": temperatures,
        "beta": beta,
        "restarts": restarts,
        "time_limit": time_limit,
        "target_energy": target_energy,
        "model": None if model is None else model._inner,
    }
    problem = _problem(target)
    with _placed("minimize", settings) as place:
        run = MinimumRun(_leaps.minimize(problem, search, settings, place))
    if run.interrupted:
        warnings.warn(f"interrupted after {run.seconds:.3g} s", RuntimeWarning, stacklevel=2)
    return run
