"""Results: what jobs find, with the names that the program prints."""

from __future__ import annotations

import html
import importlib
import json
import math
from typing import Any, Iterator, Mapping

import numpy as np

from . import _leaps


def needed(module: str, method: str) -> Any:
    """An optional package, or an ImportError that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{method} needs the package {module}: pip install {module}") from error


class Estimate:
    """A number with its standard error and, where it is known, the exact value.

    >>> Estimate(209.8291, 0.0042, 209.8261)
    209.829(4)
    >>> round(Estimate(209.8291, 0.0042, 209.8261).z, 2)
    0.71
    """

    __slots__ = ("error", "exact", "mean", "more")

    def __init__(self, mean: float, error: float, exact: float | None = None, **more: Any) -> None:
        self.mean = math.nan if mean is None else mean
        self.error = math.inf if error is None else error
        self.exact = exact
        self.more = more

    @property
    def z(self) -> float | None:
        """The distance from the exact value in standard errors; None where that is not known."""
        if self.exact is None:
            return None
        return (self.mean - self.exact) / self.error if self.error else math.copysign(math.inf, self.mean - self.exact)

    def __getattr__(self, name: str) -> Any:
        # Chains know more: autocorrelation_time, r_hat.
        try:
            return object.__getattribute__(self, "more")[name]
        except (AttributeError, KeyError):
            raise AttributeError(f"an estimate has no {name}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.more]

    def __float__(self) -> float:
        return float(self.mean)

    def __format__(self, spec: str) -> str:
        return format(self.mean, spec) if spec else repr(self)

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Estimate)
        return same and (self.mean, self.error, self.exact) == (other.mean, other.error, other.exact)

    def __hash__(self) -> int:
        return hash((self.mean, self.error, self.exact))

    def __repr__(self) -> str:
        return _leaps.with_error(self.mean, self.error)


class Record(Mapping[str, Any]):
    """A part of a result: names as keys and as attributes."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self._entries = entries

    def __getitem__(self, name: str) -> Any:
        return seen(self._entries[name])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._entries:
            raise AttributeError(f"there is no {name}; there are {', '.join(self._entries)}")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._entries]

    def __repr__(self) -> str:
        return "\n".join(f"{name:<28} {self[name]}" for name in self if not isinstance(self._entries[name], list))


def seen(value: Any) -> Any:
    """A value of a result as people meet it."""
    if isinstance(value, dict):
        return Estimate(**value) if {"mean", "error"} <= value.keys() else Record(value)
    if isinstance(value, list):
        return [seen(item) for item in value]
    return value


class Result:
    """What a job found. Every name of the program's ``--json`` is an attribute; `to_dict` has all of them as they are printed."""

    #: What is shown first.
    _shown: tuple[str, ...] = ()

    def __init__(self, run: _leaps.Run) -> None:
        self._run = run
        self._record = json.loads(run.record)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._record:
            raise AttributeError(f"{type(self).__name__} has no {name}; see to_dict()")
        return seen(self._record[name])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._record]

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the numbers, in words."""
        return list(self._run.doubts)

    def to_dict(self) -> dict[str, Any]:
        """The result as the program prints it with ``--json``."""
        return json.loads(self._run.record)

    def figures(self) -> list[str]:
        """The figures of the result, as SVG text."""
        return [svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) for svg in self._run.figures()]

    def _rows(self) -> list[tuple[str, Any]]:
        rows = [(name, getattr(self, name)) for name in self._shown if self._record.get(name) is not None]
        observables = self._record.get("observables", {})
        rows += [(name, seen(value)) for name, value in observables.items() if isinstance(value, dict)]
        return rows

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}"]
        for name, value in self._rows():
            beside = f"   exact {value.exact:.6g}" if isinstance(value, Estimate) and value.exact is not None else ""
            value = f"{value:.6g}" if isinstance(value, float) else value
            lines.append(f"  {name:<26} {value}{beside}")
        lines += [f"  warning: {doubt}" for doubt in self.warnings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = []
        for name, value in self._rows():
            exact = f"{value.exact:.6g}" if isinstance(value, Estimate) and value.exact is not None else ""
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            cells.append(f"<tr><th>{html.escape(name)}</th><td>{html.escape(shown)}</td><td>{exact}</td></tr>")
        doubts = "".join(f"<p>warning: {html.escape(doubt)}</p>" for doubt in self.warnings)
        figures = "".join(f'<div style="max-width: 26em; flex: 1 1 20em">{svg}</div>' for svg in self.figures())
        head = f"<b>{type(self).__name__}</b>"
        table = f"<table><tr><th></th><th></th><th>exact</th></tr>{''.join(cells)}</table>"
        return f'{head}{table}{doubts}<div style="display: flex; flex-wrap: wrap">{figures}</div>'


class _Sampled(Result):
    """What has states."""

    #: The axes before those of a state.
    _axes: tuple[str, ...] = ()

    @property
    def states(self) -> np.ndarray | None:
        """The states, ``uint8``; the memory is the library's own, not a copy. None if they were not kept."""
        return self._run.states

    @property
    def energies(self) -> np.ndarray | None:
        """The energy of every state."""
        return self._run.energies

    @property
    def spins(self) -> np.ndarray | None:
        """The states of two values as spins -1 and +1, ``int8``. Raises ValueError for more values."""
        states = self.states
        if self._run.q != 2:
            raise ValueError(f"spins: must be of states with two values, not {self._run.q}; use states")
        return None if states is None else (2 * states.view(np.int8) - 1)

    def _kept(self, method: str) -> np.ndarray:
        if self.states is None:
            raise ValueError(f"{method} needs states, and none were kept")
        return self.states

    def _columns(self) -> dict[str, np.ndarray]:
        return {"energy": self.energies}

    def to_xarray(self) -> Any:
        """The states with what is known about each as an ``xarray.Dataset``; needs xarray."""
        xarray = needed("xarray", "to_xarray()")
        states = self._kept("to_xarray()")
        sides = [f"axis_{k}" for k in range(states.ndim - len(self._axes))]
        columns = {name: (self._axes, values) for name, values in self._columns().items()}
        attributes = {name: self._record[name] for name in ("version", "seed", "scheme", "kernel") if name in self._record}
        return xarray.Dataset({"x": ([*self._axes, *sides], states), **columns}, attrs=attributes)

    def to_pandas(self) -> Any:
        """One row for every state, with its energy and weight, as a ``pandas.DataFrame``; needs pandas."""
        pandas = needed("pandas", "to_pandas()")
        self._kept("to_pandas()")
        columns = {name: values.reshape(-1) for name, values in self._columns().items()}
        index = pandas.MultiIndex.from_product([range(n) for n in self.energies.shape], names=self._axes)
        if len(self._axes) == 1:
            index = pandas.RangeIndex(len(self.energies), name=self._axes[0])
        return pandas.DataFrame(columns, index=index)

    def to_arviz(self) -> Any:
        """The states for ArviZ, with weights and energies in ``sample_stats``; needs arviz.

        An ``InferenceData`` with ArviZ 0.2x, a ``DataTree`` with ArviZ 1.x. ArviZ does not use weights by itself: for weighted walkers resample,
        or give them to the functions that take them.
        """
        arviz = needed("arviz", "to_arviz()")
        states = self._kept("to_arviz()")
        chains = (lambda values: values[None]) if len(self._axes) == 1 else (lambda values: values)
        posterior = {"x": chains(states)}
        stats = {name: chains(values) for name, values in self._columns().items()}
        import inspect

        if "posterior" in inspect.signature(arviz.from_dict).parameters:
            return arviz.from_dict(posterior=posterior, sample_stats=stats)
        return arviz.from_dict({"posterior": posterior, "sample_stats": stats})


class WalkerRun(_Sampled):
    """Weighted walkers, from `ais`, `smc` and `sample`: ``states`` shaped ``[walker, *lattice]``."""

    _shown = ("scheme", "walkers", "ess", "log_z", "free_energy_per_site", "entropy_per_site", "seconds")
    _axes = ("walker",)

    @property
    def log_weights(self) -> np.ndarray:
        """Log-weights against the uniform distribution: without resampling ``log Z = sites log q + log mean exp(log_weights)``.

        >>> run = leaps.ais(leaps.Ising(size=4, beta=0.3), walkers=200)
        >>> log_z = 16 * np.log(2) + np.log(np.mean(np.exp(run.log_weights)))
        >>> bool(abs(log_z - run.log_z.mean) < 1e-9)
        True
        """
        return self._run.log_weights

    @property
    def weights(self) -> np.ndarray:
        """Weights that add up to 1."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum()

    def _columns(self) -> dict[str, np.ndarray]:
        return {"energy": self.energies, "log_weight": self.log_weights, "weight": self.weights}

    def resample(self, samples: int, seed: int = 1) -> np.ndarray:
        """States of equal weight, drawn with replacement by their weights.

        >>> leaps.ais(leaps.Ising(size=4), walkers=100).resample(10).shape
        (10, 4, 4)
        """
        chosen = np.random.default_rng(seed).choice(len(self.weights), size=samples, p=self.weights)
        return self.states[chosen]


class ChainRun(_Sampled):
    """Markov chains, from `mcmc`: ``states`` shaped ``[chain, draw, *lattice]``."""

    _shown = ("kernel", "chains", "steps", "ess", "r_hat", "acceptance", "log_z", "seconds")
    _axes = ("chain", "draw")

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the chains before all steps were made."""
        return bool(self._record.get("interrupted", False))


class ExactRun(_Sampled):
    """The exact answer, from `exact`, with independent samples if any were asked for."""

    _shown = (
        "method",
        "log_z",
        "free_energy_per_site",
        "entropy_per_site",
        "energy_per_site",
        "heat_capacity_per_site",
        "abs_magnetization",
    )
    _axes = ("sample",)


class MinimumRun(_Sampled):
    """The lowest energy that was found, from `minimize`; ``states`` has what every restart found."""

    _shown = ("method", "energy", "proven", "optimum", "cut", "set_size", "seconds_to_best", "seconds")
    _axes = ("restart",)

    def _rows(self) -> list[tuple[str, Any]]:
        rows = [(name, getattr(self, name, None)) for name in self._shown]
        return [(name, value) for name, value in rows if value is not None]

    @property
    def energy(self) -> float:
        """The lowest energy."""
        return self._record["lowest"]["energy"]

    @property
    def state(self) -> np.ndarray:
        """A state that has it, shaped as the lattice."""
        text = self._record["lowest"]["state"]
        values = text.split(",") if "," in text else list(text)
        return np.array(values, dtype=np.uint8).reshape(self._kept("state").shape[1:])


class FreeEnergyRun(Result):
    """Free energies over a grid of temperatures and fields, from `free_energy`."""

    _shown = ("method", "seconds")

    def __len__(self) -> int:
        return len(self._record["points"])

    def __iter__(self) -> Iterator[Record]:
        return iter(self.points)

    def column(self, name: str) -> np.ndarray:
        """A number of every point: ``beta``, ``field``, or the mean of an estimate such as ``log_z``.

        >>> run = leaps.free_energy(leaps.Ising(size=4), beta=[0.2, 0.4], chains=8, steps=200)
        >>> run.column("beta").tolist()
        [0.2, 0.4]
        """
        return self._table()[name]

    def _table(self) -> dict[str, np.ndarray]:
        rows = []
        for point in self._record["points"]:
            row: dict[str, Any] = {}
            for name, value in [*point.items(), *point.get("observables", {}).items()]:
                if isinstance(value, dict) and {"mean", "error"} <= value.keys():
                    estimate = Estimate(**value)
                    row[name], row[f"{name}_error"] = estimate.mean, estimate.error
                    if estimate.exact is not None:
                        row[f"{name}_exact"] = estimate.exact
                elif isinstance(value, (int, float)):
                    row[name] = value
            rows.append(row)
        names = list(dict.fromkeys(name for row in rows for name in row))
        return {name: np.array([row.get(name, math.nan) for row in rows]) for name in names}

    def to_pandas(self) -> Any:
        """One row for every point as a ``pandas.DataFrame``; needs pandas."""
        return needed("pandas", "to_pandas()").DataFrame(self._table())

    def to_xarray(self) -> Any:
        """The points as an ``xarray.Dataset`` along ``point``; needs xarray."""
        table = {name: ("point", values) for name, values in self._table().items()}
        return needed("xarray", "to_xarray()").Dataset(table)

    def __repr__(self) -> str:
        lines = [f"FreeEnergyRun by {self.method}, {len(self)} points"]
        for point in self.points:
            field = f", field {point['field']}" if point.get("field") is not None else ""
            lines.append(f"  beta {point['beta']}{field}: log Z {point['log_z']}, F/N {point['free_energy_per_site']}")
        lines += [f"  warning: {doubt}" for doubt in self.warnings]
        return "\n".join(lines)
