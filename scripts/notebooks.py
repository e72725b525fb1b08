"""Runs the notebooks of the book from top to bottom; `--write` keeps what they showed.

python3 scripts/notebooks.py [--write] [NOTEBOOK ...]      # needs the package and `pip install '.[notebooks]'`
"""

import argparse
import pathlib
import tempfile
import time

import nbclient
import nbformat

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "docs" / "notebooks"
#: The most seconds that a cell may take.
PATIENCE = 600


def executed(path, folder):
    """The notebook at `path` with new outputs, run in `folder`; an error of a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=PATIENCE, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return plain(notebook)


def plain(notebook):
    """A notebook without versions, times of cells and bars of progress."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = joined(output for output in cell.outputs if not is_bar(output))
    return notebook


def joined(outputs):
    """Outputs of which those that go on printing are one."""
    kept = []
    for output in outputs:
        if kept and output.output_type == kept[-1].output_type == "stream":
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


def is_bar(output):
    """Whether an output is a bar of progress, of which a page would show the last state for ever."""
    return output.get("name") == "stderr" or "application/vnd.jupyter.widget-view+json" in output.get("data", {})


def paths_of_machine(text):
    """Paths of this machine that a notebook names; there should be none."""
    folders = [FOLDER.parents[1], pathlib.Path.home(), pathlib.Path(tempfile.gettempdir()) / "ipykernel"]
    return [str(folder) for folder in folders if str(folder) in text]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=pathlib.Path, help="files; all of docs/notebooks by default")
    parser.add_argument("--write", action="store_true", help="write the outputs into the files")
    given = parser.parse_args()
    for path in given.notebooks or sorted(FOLDER.glob("*.ipynb")):
        start = time.monotonic()
        notebook = executed(path, path.parent)
        print(f"{path.name}: {time.monotonic() - start:.0f} s", flush=True)
        if given.write:
            if found := paths_of_machine(nbformat.writes(notebook)):
                raise SystemExit(f"{path}: the outputs name paths of this machine: {found}")
            nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
