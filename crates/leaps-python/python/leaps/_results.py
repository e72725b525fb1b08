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


def printed(value: Any) -> str:
    """A number or a word in a table."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Result:
    """What a job found. Every name of the program's ``--json`` is an attribute; `to_dict` has all of them as they are printed."""

    #: What is shown first.
    _shown: tuple[str, ...] = ()
    #: The widest that a figure is shown in a notebook.
    _figure_width = "26em"

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
            lines.append(f"  {name:<26} {printed(value)}{beside}")
        lines += [f"  warning: {doubt}" for doubt in self.warnings]
        return "\n".join(lines)

    def _html_table(self) -> str:
        cells = []
        for name, value in self._rows():
            exact = f"{value.exact:.6g}" if isinstance(value, Estimate) and value.exact is not None else ""
            cells.append(f"<tr><th>{html.escape(name)}</th><td>{html.escape(printed(value))}</td><td>{exact}</td></tr>")
        return f"<table><tr><th></th><th></th><th>exact</th></tr>{''.join(cells)}</table>"

    def _repr_html_(self) -> str:
        doubts = "".join(f"<p>warning: {html.escape(doubt)}</p>" for doubt in self.warnings)
        figures = "".join(f'<div style="max-width: {self._figure_width}; flex: 1 1 20em">{svg}</div>' for svg in self.figures())
        head = f"<b>{type(self).__name__}</b>"
        return f'{head}{self._html_table()}{doubts}<div style="display: flex; flex-wrap: wrap">{figures}</div>'


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
        """The states with what is known about each as an ``xarray.Dataset``; needs xarray.

        >>> leaps.ais(leaps.Ising(size=4), walkers=100).to_xarray().x.dims
        ('walker', 'axis_0', 'axis_1')
        """
        xarray = needed("xarray", "to_xarray()")
        states = self._kept("to_xarray()")
        sides = [f"axis_{k}" for k in range(states.ndim - len(self._axes))]
        columns = {name: (self._axes, values) for name, values in self._columns().items()}
        attributes = {name: self._record[name] for name in ("version", "seed", "scheme", "kernel") if name in self._record}
        if reached := self._record.get("reached"):
            # Other places of the path than its end are said with the states.
            attributes["reached_t"] = reached["t"]
            attributes["reached_beta"] = math.nan if reached["beta"] is None else reached["beta"]
        return xarray.Dataset({"x": ([*self._axes, *sides], states), **columns}, attrs=attributes)

    def to_pandas(self) -> Any:
        """One row for every state, with its energy and weight, as a ``pandas.DataFrame``; needs pandas.

        >>> leaps.ais(leaps.Ising(size=4), walkers=100).to_pandas().columns.tolist()
        ['energy', 'log_weight', 'weight']
        """
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
        or give them to the functions that take them. Energies are called ``state_energy``: ArviZ' own ``energy`` is that of Hamiltonian Monte
        Carlo, and its plots would take ours for it.

        >>> stats = leaps.ais(leaps.Ising(size=4), walkers=100).to_arviz()["sample_stats"]
        >>> sorted(str(name) for name in stats.data_vars), stats["weight"].shape
        (['log_weight', 'state_energy', 'weight'], (1, 100))
        """
        arviz = needed("arviz", "to_arviz()")
        states = self._kept("to_arviz()")
        chains = (lambda values: values[None]) if len(self._axes) == 1 else (lambda values: values)
        posterior = {"x": chains(states)}
        named = {"energy": "state_energy"}
        stats = {named.get(name, name): chains(values) for name, values in self._columns().items()}
        import inspect

        if "posterior" in inspect.signature(arviz.from_dict).parameters:
            return arviz.from_dict(posterior=posterior, sample_stats=stats)
        return arviz.from_dict({"posterior": posterior, "sample_stats": stats})


class WalkerRun(_Sampled):
    """Weighted walkers, from `ais`, `smc` and `sample`: ``states`` shaped ``[walker, *lattice]``.

    >>> run = leaps.ais(leaps.Ising(size=3, beta=0.4, field=0.1), walkers=500)
    >>> run.scheme, run.kernel, run.walkers
    ('ais', 'heat-bath', 500)
    >>> round(run.log_z.exact, 3), abs(run.log_z.z) < 5
    (8.503, True)
    """

    _shown = ("scheme", "walkers", "ess", "log_z", "free_energy_per_site", "entropy_per_site", "seconds")
    _axes = ("walker",)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the work before all of it was done."""
        return bool(self._record.get("interrupted", False))

    @property
    def reached(self) -> Record | None:
        """Where on the path the walkers are that Ctrl-C kept from its end: ``beta`` (None if energy terms have schedules of their own),
        ``t`` and ``lambda``, the weights of the energy terms. States, weights and all numbers are for there. None if they have arrived.

        >>> leaps.ais(leaps.Ising(size=3), walkers=100).reached is None
        True
        """
        return seen(self._record.get("reached"))

    def _rows(self) -> list[tuple[str, Any]]:
        rows = super()._rows()
        if (reached := self.reached) is not None:
            beta = "" if reached.beta is None else f"beta {reached.beta:.6g}, "
            rows.insert(0, ("interrupted at", f"{beta}t {reached.t:.4g}"))
        return rows

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
    """Markov chains, from `mcmc`: ``states`` shaped ``[chain, draw, *lattice]``.

    >>> run = leaps.mcmc(leaps.Ising(size=3, beta=0.3), steps=200, chains=8)
    >>> run.states.shape, run.observables.energy_per_site.autocorrelation_time > 0
    ((8, 200, 3, 3), True)
    """

    _shown = ("kernel", "chains", "steps", "ess", "r_hat", "acceptance", "log_z", "seconds")
    _axes = ("chain", "draw")

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the chains before all steps were made."""
        return bool(self._record.get("interrupted", False))


class ExactRun(_Sampled):
    """The exact answer, from `exact`, with independent samples if any were asked for.

    >>> leaps.exact(leaps.Ising(size=3, beta=0.4, field=0.1))
    ExactRun
      method                     enumeration
      log_z                      8.503...
      ...
    """

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
    """The lowest energy that was found, from `minimize`; ``states`` has what every restart found.

    >>> run = leaps.minimize(leaps.SpinGlass(size=3, field=0.1), restarts=3, method="annealing")
    >>> len(run.states), run.found.restarts
    (3, 3)
    """

    _shown = ("method", "ended_by", "energy", "proven", "optimum", "cut", "set_size", "seconds_to_best", "seconds")
    _axes = ("restart",)

    def _rows(self) -> list[tuple[str, Any]]:
        rows = [(name, getattr(self, name, None)) for name in self._shown]
        rows = [(name, value) for name, value in rows if value is not None]
        if self._record["ended_by"] != "exact":
            restarts, found = len(self._record["restarts"]), self._record["found"]
            words = f"{found['restarts']} of {restarts} restarts, {found['walkers']} of {found['of_walkers']} walkers"
            rows.insert(3, ("found by", words))
        return rows

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search."""
        return self._record["ended_by"] == "interrupted"

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
    """Free energies over a grid of temperatures and fields, from `free_energy`.

    >>> run = leaps.free_energy(leaps.Ising(size=3), beta=[0.2, 0.4], field=[0.0, 0.1], chains=8, steps=200)
    >>> len(run), [point.field for point in run]
    (4, [0.0, 0.0, 0.1, 0.1])
    """

    _shown = ("method", "seconds")
    # Six panels.
    _figure_width = "52em"
    #: Columns of the table in a notebook.
    _table_columns = (
        "beta",
        "field",
        "ess",
        "log_z",
        "free_energy_per_site",
        "entropy_per_site",
        "energy_per_site",
        "heat_capacity_per_site",
        "abs_magnetization",
    )
    #: Most points that it shows; it leaves out those in the middle.
    _table_rows = 20

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the work before all points were there."""
        return bool(self._record.get("interrupted", False))

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

    def _html_table(self) -> str:
        points = [{**point, **point.get("observables", {})} for point in self._record["points"]]
        names = [name for name in self._table_columns if any(point.get(name) is not None for point in points)]
        head = "".join(f"<th>{name}</th>" + "<th>exact</th>" * (name == "log_z") for name in names)
        rows = [f"<tr>{''.join(self._html_cells(point, names))}</tr>" for point in points]
        if (more := len(rows) - self._table_rows) > 0:
            half = self._table_rows // 2
            left_out = f'<tr><td colspan="{len(names) + 1}">{more} more points: see to_pandas()</td></tr>'
            rows = [*rows[:half], left_out, *rows[-half:]]
        words = f"<p>by {html.escape(self.method)}, {len(self)} points, {self.seconds:.3g} s</p>"
        return f'{words}<div style="overflow-x: auto"><table><tr>{head}</tr>{"".join(rows)}</table></div>'

    @staticmethod
    def _html_cells(point: dict[str, Any], names: list[str]) -> Iterator[str]:
        for name in names:
            value = seen(point.get(name))
            yield f"<td>{'' if value is None else html.escape(printed(value))}</td>"
            if name == "log_z":
                yield f"<td>{'' if value.exact is None else f'{value.exact:.6f}'}</td>"

    def to_pandas(self) -> Any:
        """One row for every point as a ``pandas.DataFrame``; needs pandas.

        >>> run = leaps.free_energy(leaps.Ising(size=3), beta=[0.2, 0.4], chains=8, steps=200)
        >>> run.to_pandas()["beta"].tolist()
        [0.2, 0.4]
        """
        return needed("pandas", "to_pandas()").DataFrame(self._table())

    def to_xarray(self) -> Any:
        """The points as an ``xarray.Dataset`` along ``beta`` and, if there are several, ``field`` (or ``chemical_potential``,
        ``crystal_field``); along ``point`` if Ctrl-C left a part of the grid. Needs xarray.

        >>> run = leaps.free_energy(leaps.Ising(size=3), beta=[0.2, 0.4], field=[0.0, 0.1], chains=8, steps=200)
        >>> grid = run.to_xarray()
        >>> grid.log_z.dims, float(grid.log_z.sel(beta=0.4, field=0.1)) == run.points[3].log_z.mean
        (('beta', 'field'), True)
        """
        xarray, table = needed("xarray", "to_xarray()"), self._table()
        axes = {"beta": np.unique(table["beta"])}
        if "field" in table:
            axes[self._record.get("of", "field")] = np.unique(table["field"])
        shape = tuple(len(values) for values in axes.values())
        if len(self) != math.prod(shape):
            return xarray.Dataset({name: ("point", values) for name, values in table.items()})
        # Field by field, from hot to cold.
        keys = (table["beta"], table["field"]) if "field" in table else (table["beta"],)
        order = np.lexsort(keys[::-1])
        columns = {name: values[order].reshape(shape) for name, values in table.items() if name not in ("beta", "field")}
        return xarray.Dataset({name: (tuple(axes), values) for name, values in columns.items()}, coords=axes)

    def __repr__(self) -> str:
        lines = [f"FreeEnergyRun by {self.method}, {len(self)} points"]
        for point in self.points:
            field = f", field {point['field']}" if point.get("field") is not None else ""
            lines.append(f"  beta {point['beta']}{field}: log Z {point['log_z']}, F/N {point['free_energy_per_site']}")
        lines += [f"  warning: {doubt}" for doubt in self.warnings]
        return "\n".join(lines)
