"""The code of docs/python.md, with shorter runs, and that of the README."""

import pathlib
import re

import leaps
import numpy as np
import pytest
import scipy.sparse

README = pathlib.Path(__file__).parents[3] / "README.md"
GUIDE = README.parent / "docs" / "python.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="the guide is in the repository alone")
def test_the_code_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    edges = scipy.sparse.coo_array(([1.0, -1.0], ([0, 1], [1, 2])), shape=(3, 3))
    scipy.sparse.save_npz(tmp_path / "instance.npz", edges)
    x = np.zeros((3, 8, 8), dtype=np.uint8)
    (tmp_path / "graph.txt").write_text("3 2\n1 2\n2 3\n")
    names = {"leaps": leaps, "J": np.ones((4, 4)) - np.eye(4), "h": np.zeros(4), "V": np.eye(2), "x": x, "t": 0.5, "d_out": np.ones(x.shape)}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.S)
    assert len(blocks) >= 4
    for block in blocks:
        for long, short in [("steps=2000", "steps=2, batch=16"), ("walkers=5000", "walkers=20, intervals=4")]:
            block = block.replace(long, short)
        exec(compile(block, str(GUIDE), "exec"), names)
    assert names["out"].shape == x.shape and "residual" in names["rates"]


@pytest.mark.skipif(not README.exists(), reason="the README is in the repository alone")
def test_the_code_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # The file that a command of the README writes before.
    leaps_npz = dict(x=np.ones((3, 4, 4), np.uint8), log_weight=np.zeros(3), energy=np.ones(3))
    np.savez(tmp_path / "samples.npz", **leaps_npz)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, str(README), "exec"), {})
    assert "(500, 8, 8)" in capsys.readouterr().out
