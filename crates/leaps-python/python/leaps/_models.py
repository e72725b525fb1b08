"""Trained networks."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _leaps
from ._targets import Target


class Model:
    """A trained network with what it was trained for, from `train` or `load`."""

    def __init__(self, inner: _leaps.Model) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """Its name or directory; empty for one that was trained in memory."""
        return self._inner.name

    @property
    def target(self) -> Target:
        """What it was trained on."""
        return Target._of(self._inner.target)

    @property
    def description(self) -> dict[str, Any]:
        """Network, target, path and training, as in model.json."""
        return json.loads(self._inner.description)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the model to a directory, which the program can sample from."""
        self._inner.save(directory)

    def sample(self, walkers: int | None = None, **settings: Any) -> Any:
        """Weighted walkers that follow the network; see `leaps.sample`."""
        from ._jobs import sample

        return sample(self, walkers, **settings)

    def __repr__(self) -> str:
        described = self.description
        kind = described["network"].get("kind", "network")
        steps = described["training"].get("steps", 0)
        try:
            target = self._inner.target.description
        except ValueError:
            target = described["target"].get("name", "a custom energy")
        return f"<Model {self.name or 'in memory'}: {kind} for {target}, {steps} steps>"
