"""Progress bars: who gets which, and what they draw."""

import os
import subprocess
import sys
import types

import pytest

from leaps import _progress


class Screen:
    """A place to write on that may be a terminal."""

    def __init__(self, terminal):
        self.terminal, self.text = terminal, ""

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.fixture
def screen(monkeypatch):
    """Standard error as a terminal, and no patience."""
    made = Screen(True)
    # Not the name in sys, which pytest sets anew after fixtures.
    monkeypatch.setattr(_progress, "sys", types.SimpleNamespace(stderr=made, modules=sys.modules))
    monkeypatch.setattr(_progress, "PATIENCE", 0.0)
    return made


def notebook(monkeypatch):
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


class Tqdm:
    """What notebooks draw with, as far as it is used."""

    made = []

    def __init__(self, total, desc):
        self.total, self.desc, self.n, self.closed, self.shown = total, desc, 0, False, []
        Tqdm.made.append(self)

    def set_postfix_str(self, note, refresh):
        self.note = note

    def refresh(self):
        self.shown.append((self.desc, self.n, self.total, self.note))

    def close(self):
        self.closed = True


def test_a_terminal_has_a_line_that_is_written_again_and_removed(screen):
    bar = _progress.chosen(None, "ais")
    bar("", 0, 0, "")
    assert screen.text == "", "nothing is known yet"
    bar("", 25, 100, "ESS 0.5")
    first = screen.text.split("\r")[-1]
    assert first.startswith("ais [######------------------]  25%") and first.endswith("ESS 0.5")
    bar("smc", 250, 100, "")
    last = screen.text.split("\r")[-1]
    assert last.startswith("smc [########################] 100%") and len(last) == len(first)
    bar.close()
    assert screen.text.endswith("\r" + " " * len(first) + "\r")


def test_short_work_has_no_bar(screen, monkeypatch):
    monkeypatch.setattr(_progress, "PATIENCE", 60.0)
    bar = _progress.chosen(True, "ais")
    bar("", 50, 100, "")
    bar.close()
    assert screen.text == ""


def test_who_gets_which_bar(screen, monkeypatch):
    assert _progress.chosen(False, "ais") is None
    screen.terminal = False
    assert _progress.chosen(None, "ais") is None
    assert isinstance(_progress.chosen(True, "ais"), _progress.Terminal)
    heard = []
    _progress.chosen(lambda *words: heard.append(words), "ais")("", 3, 4, "note")
    assert heard == [("ais", 3, 4, "note")]
    notebook(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert isinstance(_progress.chosen(None, "ais"), _progress.Terminal)


def test_a_notebook_has_the_bar_of_tqdm(screen, monkeypatch):
    notebook(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace())
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Tqdm))
    Tqdm.made.clear()
    bar = _progress.chosen(None, "train")
    bar("", 10, 100, "loss 1")
    bar("second", 20, 200, "loss 2")
    (drawn,) = Tqdm.made
    assert drawn.shown == [("train", 10, 100, "loss 1"), ("second", 20, 200, "loss 2")]
    bar.close()
    assert drawn.closed and screen.text == ""


@pytest.mark.skipif(os.name == "nt", reason="needs a terminal of Unix")
def test_a_job_in_a_terminal_draws_its_bar():
    script = """
import leaps
from leaps import _progress
_progress.PATIENCE = 0.0
print(leaps.ais(leaps.Ising(size=16), walkers=2000, intervals=2000, trace_points=200).interrupted)
"""
    leader, follower = os.openpty()
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=follower, text=True)
    os.close(follower)
    drawn = b""
    try:
        while part := os.read(leader, 65536):
            drawn += part
    except OSError:
        pass  # Linux says so when nobody holds the other end any more.
    finally:
        os.close(leader)
    answer, _ = process.communicate(timeout=120)
    assert answer.strip() == "False" and process.returncode == 0
    lines = [line for line in drawn.decode().split("\r") if line.strip()]
    assert lines and all(line.startswith("ais [") and "%" in line for line in lines)
    assert drawn.endswith(b" \r")
