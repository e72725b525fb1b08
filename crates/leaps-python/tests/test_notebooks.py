"""The notebooks of the book: each is run from top to bottom, and its own assertions compare with exact values."""

import importlib.util
import json
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the notebooks are in the repository alone")


@pytest.fixture
def runner():
    """scripts/notebooks.py."""
    for package in ("nbclient", "ipykernel", "matplotlib", "arviz", "pandas"):
        pytest.importorskip(package, reason=f"{package} is missing: pip install '.[notebooks]'")
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "scripts" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, runner, tmp_path):
    notebook = runner.executed(path, tmp_path)
    assert any(cell.get("outputs") for cell in notebook.cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_saved_with_what_it_showed(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert "ipykernel_" not in text and "/home/" not in text and "/Users/" not in text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {kind for cell in cells for output in cell["outputs"] for kind in output.get("data", {})}
    assert "image/png" in kinds
    assert not any(output["output_type"] == "error" for cell in cells for output in cell["outputs"])
    assert any("assert" in "".join(cell["source"]) for cell in cells)


def test_there_are_three_and_the_book_has_them():
    summary = (ROOT / "docs" / "SUMMARY.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        assert f"(notebooks/{path.stem}.md)" in summary
        assert f"<!-- on the site: {path.name} -->" in path.with_suffix(".md").read_text(encoding="utf-8")
