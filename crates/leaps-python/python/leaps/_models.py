"""Trained networks."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _leaps
from ._targets import Target, flattened

if TYPE_CHECKING:
    from ._results import WalkerRun


class Model:
    """A trained network with what it was trained for, from `train` or `load`."""

    def __init__(self, inner: _leaps.Model, target: Target | None = None) -> None:
        self._inner = inner
        self._target = target

    @property
    def name(self) -> str:
        """Its name or directory; empty for one that was trained in memory."""
        return self._inner.name

    @property
    def target(self) -> Target:
        """What it was trained on: the target that was given, or that of the model's file."""
        return Target._of(self._inner.target) if self._target is None else self._target

    @property
    def description(self) -> dict[str, Any]:
        """Network, target, path and training, as in model.json."""
        return json.loads(self._inner.description)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the model to a directory, which the program can sample from.

        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp(), "model")
        >>> leaps.train(leaps.Ising(size=3), steps=2, batch=8).save(folder)
        >>> leaps.load(folder).target.shape
        (3, 3)
        """
        self._inner.save(directory)

    def sample(self, walkers: int | None = None, **settings: Any) -> WalkerRun:
        """Weighted walkers that follow the network; see `leaps.sample`."""
        from ._jobs import sample

        return sample(self, walkers, **settings)

    def parameters(self) -> dict[str, np.ndarray]:
        """The network's averaged parameters by name, ``float32``: views of one array.

        >>> parameters = leaps.load("ising-8-critical").parameters()
        >>> sum(array.size for array in parameters.values())
        13409
        """
        named, flat = _leaps.parameters(self._inner)
        return self._split(named, flat)

    @staticmethod
    def _split(named: list[tuple[str, list[int]]], flat: np.ndarray) -> dict[str, np.ndarray]:
        parts, start = {}, 0
        for name, shape in named:
            size = int(np.prod(shape))
            parts[name] = flat[start : start + size].reshape(shape)
            start += size
        return parts

    def _inputs(self, x: Any, t: Any) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
        states, shape = flattened(self._inner.target, x)
        times = np.broadcast_to(np.asarray(t, dtype=np.float64), shape)
        return states, np.ascontiguousarray(times).reshape(-1), shape

    def forward(self, x: Any, t: Any) -> np.ndarray:
        """The raw outputs of the network at states ``x`` and times ``t``: one for every site, for more than two values one for every
        site and value in the last axis. ``x`` is of shape ``[..., *lattice]``, ``t`` is a number or of shape ``[...]``.

        >>> model = leaps.load("ising-8-critical")
        >>> model.forward(np.zeros((5, 8, 8), dtype=np.uint8), 0.5).shape
        (5, 8, 8)
        """
        states, times, shape = self._inputs(x, t)
        each, outputs = _leaps.forward(self._inner, states, times)
        sides = tuple(self._inner.target.shape)
        return outputs.reshape(*shape, *sides, *([each] if each > 1 else []))

    def gradient(self, x: Any, t: Any, d_out: Any) -> dict[str, np.ndarray]:
        """The gradient of ``sum(d_out * forward(x, t))`` with respect to every parameter, by name.

        >>> model = leaps.load("ising-8-critical")
        >>> x = np.zeros((5, 8, 8), dtype=np.uint8)
        >>> gradient = model.gradient(x, 0.5, np.ones((5, 8, 8)))
        >>> gradient.keys() == model.parameters().keys()
        True
        """
        states, times, _ = self._inputs(x, t)
        flat = np.ascontiguousarray(d_out, dtype=np.float32).reshape(-1)
        named, _ = _leaps.parameters(self._inner)
        return self._split(named, _leaps.gradient(self._inner, states, times, flat))

    def rates(self, x: Any, t: Any) -> dict[str, np.ndarray]:
        """What ``leaps rates`` writes, at states ``x`` and times ``t``: for every move ``G`` (the flux), ``out_rates``, ``back_rates`` and
        ``delta_U``, of shape ``[..., *lattice]`` for two values (the flip) and ``[..., q, *lattice]`` for more; for every state ``U``,
        ``dU_dt``, ``dF_dt``, ``K`` (the rate of the log-weight) and ``residual``.

        >>> model = leaps.load("ising-8-critical")
        >>> found = model.rates(np.zeros((5, 8, 8), dtype=np.uint8), 0.5)
        >>> found["out_rates"].shape, found["K"].shape
        ((5, 8, 8), (5,))
        """
        states, times, shape = self._inputs(x, t)
        problem = self._inner.target
        moves = (*shape, *([problem.q] if problem.q > 2 else []), *problem.shape)
        found = _leaps.rates(self._inner, states, times)
        of_moves = ("G", "out_rates", "back_rates", "delta_U")
        return {name: values.reshape(moves if name in of_moves else shape) for name, values in found.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.name:
            raise TypeError("a model in memory cannot be pickled; save(directory) writes it, leaps.load(directory) reads it")
        from ._jobs import load

        # A custom energy comes along, if it can be pickled itself: functions of modules can.
        custom = self.description["target"].get("kind") == "custom"
        return load, (self.name, self._target if custom else None)

    def __repr__(self) -> str:
        described = self.description
        kind = described["network"].get("kind", "network")
        steps = described["training"].get("steps", 0)
        try:
            target = self._inner.target.description
        except ValueError:
            target = described["target"].get("name", "a custom energy")
        return f"<Model {self.name or 'in memory'}: {kind} for {target}, {steps} steps>"
