"""Targets: what to sample."""

from __future__ import annotations

import json
import math
import operator
from typing import Any, Callable

import numpy as np

from . import _leaps


class Target:
    """What to sample: ``rho(x) ~ exp(-beta E(x))`` over states of ``sites`` values from 0 to ``q - 1``.

    ``Target(kind, **settings)`` is any target of the library by the keys of the section ``[target]`` of a run.toml; the classes
    `Ising`, `Potts`, `SpinGlass`, `BlumeCapel`, `Clock`, `BaxterWu`, `LatticeGas`, `AshkinTeller`, `LatticeModel`, `Rbm`,
    `File`, `MaxCut` and `IndependentSet` name the kinds.

    >>> Target("ising", size=[4, 6], beta=0.3)
    <Target: Ising 4x6 periodic, beta 0.3>
    """

    def __init__(self, kind: str, **settings: Any) -> None:
        field = settings.get("field")
        if isinstance(field, np.ndarray):
            settings["field"] = field.reshape(-1) if field.ndim else float(field)
        self._make("built_in", {"kind": kind, **settings})

    def _make(self, builder: str, *arguments: Any) -> None:
        """Build the problem, and remember how, since that is what a pickle holds."""
        self._problem = getattr(_leaps.Problem, builder)(*arguments)
        self._made: tuple[tuple[Any, ...], ...] = ((builder, *arguments),)

    @classmethod
    def _of(cls, problem: _leaps.Problem, made: tuple[tuple[Any, ...], ...] = ()) -> Target:
        target = Target.__new__(Target)
        target._problem = problem
        target._made = made
        return target

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._made:
            raise TypeError("the target of a model cannot be pickled; pickle the model, or make the target anew")
        more = {name: value for name, value in vars(self).items() if name not in ("_problem", "_made")}
        return _again, (type(self), self._made), more or None

    @property
    def sites(self) -> int:
        """Number of sites."""
        return self._problem.sites

    @property
    def q(self) -> int:
        """Number of values of a site."""
        return self._problem.q

    @property
    def beta(self) -> float:
        """The inverse temperature, which multiplies the whole energy."""
        return self._problem.beta

    @property
    def shape(self) -> tuple[int, ...]:
        """Sides of the lattice; ``(sites,)`` where there is none."""
        return tuple(self._problem.shape)

    @property
    def settings(self) -> dict[str, Any]:
        """The target as results describe it."""
        return json.loads(self._problem.origin)

    @property
    def formula(self) -> str | None:
        """The energy as it is understood, as ``leaps check`` prints it; None for energies that are not the library's own.

        >>> Ising(size=4, beta=0.4, field=0.1).formula
        'E = -1 sum_<ij> s_i s_j + 0.1 sum_i s_i,  rho ~ exp(-0.4 E)'
        """
        return self._problem.formula

    def at(self, beta: float, field: float | None = None) -> Target:
        """The same energy at another inverse temperature and, if one is given, in another uniform field.

        >>> Ising(size=4).at(0.2).beta
        0.2
        """
        moved = type(self).__new__(type(self))
        vars(moved).update(vars(self))
        moved._problem = self._problem.at(beta, field)
        moved._made = (*self._made, ("at", beta, field)) if self._made else ()
        return moved

    def energy(self, x: Any) -> np.ndarray:
        """The energies of states, whose values are the last axes of ``x``: any shape of states, flat or on the lattice.

        Values are numbers from 0; for two values also spins -1 and +1.

        >>> Ising(size=3).energy(np.ones((3, 3), dtype=np.uint8))
        array(-18.)
        """
        states, shape = flattened(self._problem, x)
        return self._problem.energies(states).reshape(shape)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._problem.description}>"


def _again(kind: type[Target], made: tuple[tuple[Any, ...], ...]) -> Target:
    """A target as it was before it was pickled."""
    target = kind.__new__(kind)
    target._make(*made[0])
    for name, *arguments in made[1:]:
        target._problem = getattr(target._problem, name)(*arguments)
    target._made = made
    return target


def flattened(problem: _leaps.Problem, x: Any) -> tuple[np.ndarray, tuple[int, ...]]:
    """States one after the other, without a copy where that is possible, and the shape of what there is one of for each."""
    x = np.asarray(x)
    if x.dtype != np.uint8:
        if problem.q == 2 and (x == -1).any():
            if not np.isin(x, (-1, 1)).all():
                raise ValueError("x: must be values 0 and 1, or spins -1 and +1, not a mixture")
            x = x > 0
        elif not np.array_equal(x, x.astype(np.uint8)):
            raise ValueError(f"x: must be whole numbers from 0 to {problem.q - 1}")
        x = x.astype(np.uint8)
    lattice = tuple(problem.shape)
    for sides in (lattice, (problem.sites,)):
        if x.shape[x.ndim - len(sides) :] == sides:
            return np.ascontiguousarray(x).reshape(-1), x.shape[: x.ndim - len(sides)]
    raise ValueError(f"x: must end in the shape {lattice} or ({problem.sites},), not {x.shape}")


class Ising(Target):
    """Spins on a lattice: ``E = -J sum_<ij> s_i s_j + h sum_i s_i``; value 0 is spin -1, value 1 is spin +1.

    Parameters
    ----------
    size : sites along each axis, 15 or (15, 20); 15 by default
    settings : ``beta`` (critical by default), ``field`` (a number, or one for each site), ``coupling``, ``boundary`` ("periodic"
        or "free"), ``dimensions``, ``lattice`` ("triangular", "fcc", "bcc"), ``j2`` and ``j3`` (couplings of second and third
        neighbours), ``bonds`` (all bonds, in place of couplings): the keys of ``leaps init ising``

    >>> Ising(size=8, beta=0.4, field=0.1)
    <Ising: Ising 8x8 periodic, beta 0.4, h 0.1>
    >>> Ising(size=6, lattice="triangular", coupling=-1.0, beta=0.5)
    <Ising: Ising triangular 6x6 periodic, beta 0.5, J -1>
    >>> anisotropic = [{"offset": [1, 0], "strength": 1.0}, {"offset": [0, 1], "strength": 0.5}]
    >>> Ising(size=8, bonds=anisotropic, beta=0.4)
    <Ising: Ising 8x8 periodic, beta 0.4, bonds 1,0:1 0,1:0.5>
    """

    def __init__(self, size: Any = None, **settings: Any) -> None:
        super().__init__("ising", size=size, **settings)


class Potts(Target):
    """Sites with ``q`` values on a lattice: ``E = -J sum_<ij> [x_i = x_j] + h sum_i [x_i = 0]``.

    >>> Potts(q=3, size=5, beta=0.9).q
    3
    """

    def __init__(self, q: int | None = None, size: Any = None, **settings: Any) -> None:
        super().__init__("potts", q=q, size=size, **settings)


class SpinGlass(Target):
    """Ising spins with random couplings: ``couplings`` "pm1" or "gaussian", of seed ``disorder_seed``, on a lattice or, with
    ``geometry="complete"``, between all pairs.

    >>> SpinGlass(size=6, disorder_seed=3, beta=1.0).sites
    36
    """

    def __init__(self, size: Any = None, **settings: Any) -> None:
        super().__init__("spin-glass", size=size, **settings)


class BlumeCapel(Target):
    """Spins -1, 0, +1 (values 0, 1, 2) on a lattice: ``E = -J sum_<ij> s_i s_j + D sum_i s_i^2 + h sum_i s_i``.

    >>> BlumeCapel(size=4, crystal_field=0.5, field=0.1, beta=0.8)
    <BlumeCapel: Blume-Capel 4x4 periodic, D 0.5, beta 0.8, h 0.1>
    """

    def __init__(self, size: Any = None, **settings: Any) -> None:
        super().__init__("blume-capel", size=size, **settings)


class Clock(Target):
    """Clocks with ``q`` hours on a lattice: ``E = -J sum_<ij> cos(2 pi (x_i - x_j)/q) + h sum_i cos(2 pi x_i/q)``.

    >>> Clock(q=6, size=4, beta=1.1).q
    6
    """

    def __init__(self, q: int | None = None, size: Any = None, **settings: Any) -> None:
        super().__init__("clock", q=q, size=size, **settings)


class BaxterWu(Target):
    """Ising spins on the triangles of a triangular lattice: ``E = -J sum_triangles s_i s_j s_k + h sum_i s_i``.

    >>> float(BaxterWu(size=3).energy(np.ones((3, 3), dtype=np.uint8)))
    -18.0
    """

    def __init__(self, size: Any = None, **settings: Any) -> None:
        super().__init__("baxter-wu", size=size, **settings)


class LatticeGas(Target):
    """Empty (0) and occupied (1) sites of a lattice: ``E = -J sum_<ij> n_i n_j - mu sum_i n_i``.

    >>> float(LatticeGas(size=2, boundary="free", chemical_potential=-1.5).energy([1, 1, 0, 1]))
    2.5
    """

    def __init__(self, size: Any = None, **settings: Any) -> None:
        super().__init__("lattice-gas", size=size, **settings)


class AshkinTeller(Target):
    """Two Ising spins at every site, value ``(1 + s) + (1 + t)/2``: ``E = -J sum_<ij> (s_i s_j + t_i t_j) - K sum_<ij> s_i s_j t_i t_j
    + h sum_i (s_i + t_i)`` with ``K`` as ``four_spin``.

    >>> AshkinTeller(size=4, four_spin=0.5, beta=0.4).q
    4
    """

    def __init__(self, size: Any = None, **settings: Any) -> None:
        super().__init__("ashkin-teller", size=size, **settings)


class LatticeModel(Target):
    """Any energies over clusters of sites, the same all over a lattice.

    Parameters
    ----------
    interactions : a list of dictionaries with ``offsets``, the places of the cluster's sites, and either ``table``, an array with one
        axis for each place, or ``strength``, for ``-strength`` times the product of the spins; ``term`` names the energy term
    settings : ``q``, ``spins`` (the spin of every value), ``size``, ``beta``, ``field``, ``boundary``, ``dimensions``

    >>> V = np.array([[0.0, 1.5], [0.0, 0.0]])  # a 1 to the right of a 0 costs energy
    >>> chain = LatticeModel([{"offsets": [[0], [1]], "table": V}], size=4, dimensions=1, boundary="free")
    >>> float(chain.energy([0, 1, 0, 1]))
    3.0
    """

    def __init__(self, interactions: Any, **settings: Any) -> None:
        super().__init__("lattice-model", interactions=interactions, **settings)


class Rbm(Target):
    """A restricted Boltzmann machine with random weights: ``visible``, ``hidden``, ``weight_scale``, ``disorder_seed``.

    >>> Rbm(visible=6, hidden=3).sites
    9
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__("rbm", **settings)


class File(Target):
    """Couplings and fields from a file of many formats: our own lines "i j J" and "field i h", rudy (G-set), dimod (COO, BQM as JSON),
    qbsolv, MQLib, SciPy (``save_npz``).

    The format is recognised by the contents of the file unless ``format`` names it: ``"edges"``, ``"rudy"``, ``"coo"``,
    ``"coo-spin"``, ``"coo-binary"``, ``"bqm"``, ``"qubo"``, ``"mqlib-qubo"``, ``"npz"`` or ``"npz-qubo"``. Energies are those of the
    file's own Hamiltonian, constants included.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "ring.txt")
    >>> _ = path.write_text("0 1 1.0\\n1 2 1.0\\n2 0 1.0\\nfield 0 0.5\\n")
    >>> float(File(path, beta=0.3).energy([0, 0, 0]))
    -3.5
    """

    def __init__(self, path: Any, **settings: Any) -> None:
        super().__init__("file", path=path, **settings)


class MaxCut(Target):
    """The maximum cut of a graph in a file of rudy's format, as the G-set has it: ``E = -sum_ij w_ij [x_i != x_j]``, minus the weight of the
    cut.

    The file has "vertices edges" in its first line, then one edge a line, ``i j`` or ``i j weight``, vertices numbered from 1.

    >>> import pathlib, tempfile
    >>> graph = pathlib.Path(tempfile.mkdtemp(), "graph.txt")
    >>> _ = graph.write_text("4 4\\n1 2\\n2 3\\n3 4\\n4 1 0.5\\n")
    >>> found = leaps.minimize(MaxCut(graph))
    >>> found.cut, found.proven
    (3.5, True)
    """

    def __init__(self, path: Any, **settings: Any) -> None:
        super().__init__("maxcut", path=path, **settings)


class IndependentSet(Target):
    """The largest set of vertices of a graph that no edge joins, the graph in a file as for `MaxCut`, its weights aside:
    ``E = -sum_i x_i + 2 sum_ij x_i x_j``.

    >>> import pathlib, tempfile
    >>> graph = pathlib.Path(tempfile.mkdtemp(), "graph.txt")
    >>> _ = graph.write_text("5 4\\n1 2\\n2 3\\n3 4\\n2 5\\n")
    >>> found = leaps.minimize(IndependentSet(graph))
    >>> found.set_size, found.energy
    (3, -3.0)
    """

    def __init__(self, path: Any, **settings: Any) -> None:
        super().__init__("independent-set", path=path, **settings)


class Couplings(Target):
    """Couplings and fields from arrays, on any graph.

    The signs are those of the whole library: for Ising spins ``E = -sum_{i<j} J_ij s_i s_j + sum_i h_i s_i``, so that a positive
    coupling favours equal spins and a positive field the spin -1 (value 0). With ``q`` given the values are those of a Potts model,
    ``E = -sum_{i<j} J_ij [x_i = x_j] + sum_i h_i [x_i = 0]``.

    Parameters
    ----------
    couplings : an ``(n, n)`` symmetric matrix with zeros on its diagonal, or an upper or lower triangular one, in which every pair
        counts once; a SciPy sparse matrix of the same kind; or edges as a sequence of ``(i, j, J)``
    fields : a number, or one for each site
    beta : the inverse temperature
    sites : number of sites where edges do not name all of them
    q : number of values, for a Potts model
    shape, boundary : sides of the lattice on which the couplings join nearest neighbours, its sites numbered row by row, "periodic" (the
        default) or "free": states of results have this shape, correlations are measured, and networks for glasses can sample it

    >>> ring = Couplings([(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)], fields=0.5, beta=0.3)
    >>> float(ring.energy([0, 0, 0]))
    -4.5
    >>> J = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0.0]])
    >>> float(Couplings(J, fields=0.5, beta=0.3).energy([0, 0, 0]))
    -4.5
    >>> Couplings([(0, 1, 1.0), (2, 3, -1.0), (0, 2, 0.5)], shape=(2, 2), boundary="free").shape
    (2, 2)
    """

    def __init__(
        self,
        couplings: Any,
        fields: Any = None,
        *,
        beta: float = 1.0,
        sites: int | None = None,
        q: int | None = None,
        shape: tuple[int, ...] | None = None,
        boundary: str = "periodic",
    ) -> None:
        i, j, strength, named, all_named = _edges(couplings)
        if boundary not in ("periodic", "free"):
            raise ValueError(f"boundary = {boundary}: must be periodic or free")
        if shape is not None:
            sides = tuple(operator.index(side) for side in shape)
            lattice = math.prod(sides)
            least, most = (named, named if all_named else lattice) if sites is None else (sites, sites)
            if not least <= lattice <= most:
                raise ValueError(f"shape = {sides}: must be the lattice of all sites, not of {least}")
            sites = lattice
        sites = max(named, 0 if fields is None else np.size(fields) * (np.ndim(fields) > 0)) if sites is None else sites
        if fields is not None:
            fields = np.asarray(fields, dtype=np.float64)
            fields = np.ascontiguousarray(np.broadcast_to(fields, (sites,)) if fields.ndim == 0 else fields.reshape(-1))
        graph = {
            "potts": q is not None,
            "sites": sites,
            "q": 2 if q is None else q,
            "shape": None if shape is None else list(sides),
            "periodic": boundary == "periodic",
            "beta": float(beta),
        }
        self._make("couplings", graph, (i, j, strength), fields)


def _edges(couplings: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, bool]:
    """Pairs of sites, their couplings, how many sites there are, and whether there can be no more."""
    if hasattr(couplings, "tocoo"):
        matrix = couplings.tocoo(copy=True)
        matrix.sum_duplicates()
        rows, columns, values, shape = matrix.row, matrix.col, np.asarray(matrix.data, dtype=np.float64), matrix.shape
    else:
        array = np.asarray(couplings, dtype=np.float64)
        if array.size == 0:
            array = array.reshape(0, 3)
        # A list of triples is edges; only an array of shape (3, 3) could be both, and is a matrix.
        square = array.ndim == 2 and array.shape[0] == array.shape[1]
        if array.shape == (3, 3) and not isinstance(couplings, (np.ndarray, tuple)) and isinstance(couplings[0], list):
            both = "couplings: three lists of three numbers may be a matrix or edges"
            raise ValueError(f"{both}; give an array for a matrix, tuples for edges")
        if array.ndim == 2 and array.shape[1] == 3 and not (square and isinstance(couplings, np.ndarray)):
            ends = array[:, :2]
            if not np.array_equal(ends, ends.astype(np.uint32)):
                raise ValueError("couplings: sites of edges must be whole numbers from 0")
            i, j = (np.ascontiguousarray(column, dtype=np.uint32) for column in ends.T)
            return i, j, np.ascontiguousarray(array[:, 2]), int(ends.max()) + 1 if len(ends) else 0, False
        if not square:
            raise ValueError(f"couplings: must be a square matrix or edges (i, j, J), not of shape {array.shape}")
        rows, columns = np.nonzero(array)
        values, shape = array[rows, columns], array.shape
    if shape[0] != shape[1]:
        raise ValueError(f"couplings: must be a square matrix, not of shape {shape}")
    if (values[rows == columns] != 0).any():
        raise ValueError("couplings: must have zeros on the diagonal; fields are an argument of their own")
    upper = rows < columns
    lower = (rows > columns) & (values != 0)
    above = {(int(a), int(b)): v for a, b, v in zip(rows[upper], columns[upper], values[upper]) if v != 0}
    below = {(int(b), int(a)): v for a, b, v in zip(rows[lower], columns[lower], values[lower])}
    if above and below and above != below:
        raise ValueError("couplings: must be symmetric or triangular; every pair of sites has one coupling")
    pairs = above or below
    ends = np.array(list(pairs), dtype=np.uint32).reshape(-1, 2)
    i, j = (np.ascontiguousarray(column) for column in ends.T)
    return i, j, np.array(list(pairs.values()), dtype=np.float64), int(shape[0]), True


class Energy(Target):
    """A vectorised Python function as an energy.

    Parameters
    ----------
    function : ``energy(x)`` for states ``x``, a new ``uint8`` array of shape ``(B, sites)`` with values from 0 to ``q - 1``;
        returns ``B`` numbers, shape ``(B,)``. It is called with any ``B``, from any thread, with the GIL held, and must give the same
        number for the same state every time. ``inf`` is not allowed in sampling. An exception stops the work and is raised as it is.
    sites, shape : number of sites, or sides of a lattice; states of results have this shape. With ``boundary`` "periodic" (the default)
        or "free" correlations are measured on the lattice.
    q : number of values of a site
    beta : the inverse temperature
    delta : optional ``delta(x, site)``: the changes of the energy when ``site`` becomes 0, 1, ..., q - 1, shape ``(B, q)``; what
        stands at the value in place is not read. Sweeps then need no energies: worth it where a change costs less than ``q - 1`` energies.
    name, version : what it is called in results and models; a trained model is bound to both, and to the energies of 64 fixed states

    Examples
    --------
    Ising spins on a ring:

    >>> def energy(x):
    ...     s = 2.0 * x - 1.0
    ...     return -(s * np.roll(s, 1, axis=1)).sum(axis=1)
    >>> ring = Energy(energy, sites=10, beta=0.5)
    >>> run = leaps.smc(ring, walkers=500)
    >>> exact = np.log((2 * np.cosh(0.5)) ** 10 + (2 * np.sinh(0.5)) ** 10)
    >>> bool(abs(run.log_z.mean - exact) < 5 * run.log_z.error)
    True
    """

    def __init__(
        self,
        function: Callable[[np.ndarray], Any],
        *,
        sites: int | None = None,
        shape: tuple[int, ...] | None = None,
        boundary: str = "periodic",
        q: int = 2,
        beta: float = 1.0,
        delta: Callable[[np.ndarray, int], Any] | None = None,
        name: str | None = None,
        version: str | None = None,
    ) -> None:
        if (sites is None) == (shape is None):
            raise TypeError("give either sites=16 or shape=(4, 4)")
        if boundary not in ("periodic", "free"):
            raise ValueError(f"boundary = {boundary}: must be periodic or free")
        if not 2 <= operator.index(q) <= 255:
            raise ValueError(f"q = {q}: must be from 2 to 255")
        sides = [operator.index(side) for side in ([sites] if shape is None else shape)]
        if min(sides, default=0) < 1:
            raise ValueError(f"{'sites' if shape is None else 'shape'} = {sites or shape}: must be at least 1")
        self.function = function
        self._make(
            "custom",
            function,
            delta,
            np.asarray,
            {
                "shape": sides,
                "lattice": shape is not None,
                "periodic": boundary == "periodic",
                "q": q,
                "beta": float(beta),
                "name": name or getattr(function, "__name__", type(function).__name__),
                "version": version,
            },
        )
