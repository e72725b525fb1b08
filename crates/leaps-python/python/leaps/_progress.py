"""Progress of long work: a bar in a notebook or a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, Union

Show = Callable[[str, int, int, str], None]
Wanted = Union[bool, None, Show]

#: Work that is shorter than this has no bar.
PATIENCE = 0.5


def chosen(progress: Wanted, label: str) -> "Bar | None":
    """What shows the progress of a job called ``label``: by default only where somebody looks."""
    if progress is False:
        return None
    if callable(progress):
        return Own(progress, label)
    if in_notebook():
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return Terminal(label)
        return Tqdm(label, tqdm)
    if progress is True or sys.stderr.isatty():
        return Terminal(label)
    return None


def in_notebook() -> bool:
    """Whether a notebook shows what is printed."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class Bar:
    """Hears of progress, and closes when the work is done."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.start = time.monotonic()

    def __call__(self, label: str, done: int, total: int, note: str) -> None:
        if total > 0 and time.monotonic() - self.start >= PATIENCE:
            self.draw(label or self.label, min(done, total), total, note)

    def draw(self, label: str, done: int, total: int, note: str) -> None:
        """Show it."""

    def close(self) -> None:
        """The work is done."""


class Own(Bar):
    """A function of the user's, called as ``progress(label, done, total, note)`` about ten times a second."""

    def __init__(self, function: Show, label: str) -> None:
        super().__init__(label)
        self.function = function

    def __call__(self, label: str, done: int, total: int, note: str) -> None:
        self.function(label or self.label, done, total, note)


class Terminal(Bar):
    """One line on standard error that is written again and again."""

    WIDTH = 24

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.longest = 0

    def draw(self, label: str, done: int, total: int, note: str) -> None:
        share = done / total
        full = int(share * self.WIDTH)
        seconds = time.monotonic() - self.start
        left = f", {seconds / share - seconds:.0f} s left" if share > 0.01 else ""
        bar = "#" * full + "-" * (self.WIDTH - full)
        line = f"{label} [{bar}] {100 * share:3.0f}%{left}{', ' + note if note else ''}"
        self.longest = max(self.longest, len(line))
        print("\r" + line.ljust(self.longest), end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.longest:
            print("\r" + " " * self.longest + "\r", end="", file=sys.stderr, flush=True)


class Tqdm(Bar):
    """tqdm's bar, which notebooks draw."""

    def __init__(self, label: str, tqdm: Any) -> None:
        super().__init__(label)
        self.tqdm, self.bar = tqdm, None

    def draw(self, label: str, done: int, total: int, note: str) -> None:
        if self.bar is None:
            self.bar = self.tqdm(total=total, desc=label)
        self.bar.total, self.bar.desc = total, label
        self.bar.set_postfix_str(note, refresh=False)
        self.bar.n = done
        self.bar.refresh()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
