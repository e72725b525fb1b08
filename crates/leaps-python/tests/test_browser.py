"""Results and notebooks in a browser: nothing complains, and the numbers are those of the results.

Needs Chromium, named by ``LEAPS_CHROMIUM``; is skipped without it. Screenshots are left in ``LEAPS_SCREENSHOTS``.
"""

import html
import importlib.util
import json
import os
import pathlib
import re
import struct
import subprocess

import leaps
import pytest

ROOT = pathlib.Path(__file__).parents[3]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
CHROMIUM = os.environ.get("LEAPS_CHROMIUM")
# What Chromium writes where a page complains, or asks for what it cannot have.
COMPLAINT = re.compile(r"CONSOLE.*|net::ERR.*")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: set LEAPS_CHROMIUM")


def look(body, folder, name):
    """The page with this body as the browser has it: its text, and what it complained about."""
    page = folder / f"{name}.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><title>{name}</title><body>{body}</body>", encoding="utf-8")
    shots = pathlib.Path(os.environ.get("LEAPS_SCREENSHOTS", folder))
    shots.mkdir(parents=True, exist_ok=True)
    shot = shots / f"{name}.png"
    base = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    base += [f"--user-data-dir={folder / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"]
    base += ["--window-size=1000,1400", "--virtual-time-budget=2000"]
    run = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=True)
    seen = subprocess.run([*base, "--dump-dom", page.as_uri()], **run)
    subprocess.run([*base, f"--screenshot={shot}", page.as_uri()], **run)
    width, height = struct.unpack(">II", shot.read_bytes()[16:24])
    assert (width, height) == (1000, 1400)
    text = html.unescape(re.sub(r"<[^>]*>", " ", seen.stdout))
    return text, COMPLAINT.findall(seen.stderr)


def cells(path):
    """The outputs of a saved notebook as HTML."""
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "scripts" / "book" / "notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            shown = module.shown(output)
            yield shown if shown.startswith("<") else f"<pre>{html.escape(shown)}</pre>"


def test_complaints_are_heard(tmp_path):
    assert look("<script>console.error('broken')</script>", tmp_path, "broken")[1]


def test_results_show_their_numbers(tmp_path):
    target = leaps.Ising(size=4, beta=0.4, field=0.1)
    run = leaps.ais(target, walkers=200, intervals=20, progress=False)
    grid = leaps.free_energy(target, beta=[0.2, 0.4], steps=200, progress=False)
    text, complaints = look(run._repr_html_() + grid._repr_html_(), tmp_path, "results")
    assert not complaints
    assert str(run.log_z) in text and f"{run.log_z.exact:.6g}" in text
    assert str(run.observables.energy_per_site) in text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_shown(path, tmp_path):
    text, complaints = look("".join(cells(path)), tmp_path, path.stem)
    assert not complaints
    assert "log Z" in text or "log_z" in text
