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
import zlib

import leaps
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[3]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
CHROMIUM = os.environ.get("LEAPS_CHROMIUM")
# What Chromium writes where a page complains, or asks for what it cannot have.
COMPLAINT = re.compile(r"CONSOLE.*|net::ERR.*")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: set LEAPS_CHROMIUM")


def drawn_lines(picture, size):
    """How many of the lines of a PNG picture of this size are other than the one before."""
    assert struct.unpack(">II", picture[16:24]) == size
    at, packed = 8, b""
    while at < len(picture):
        (length,) = struct.unpack(">I", picture[at : at + 4])
        if picture[at + 4 : at + 8] == b"IDAT":
            packed += picture[at + 8 : at + 8 + length]
        at += length + 12
    colours = {2: 3, 6: 4}[picture[25]]
    data, wide = zlib.decompress(packed), colours * size[0]
    assert picture[24] == 8 and len(data) == (wide + 1) * size[1]
    before, changes = bytes(wide), 0
    for start in range(0, len(data), wide + 1):
        kind, line = data[start], bytearray(data[start + 1 : start + 1 + wide])
        for k, byte in enumerate(line if kind else ()):
            left, above = line[k - colours] if k >= colours else 0, before[k]
            corner = before[k - colours] if k >= colours else 0
            near = min((left, above, corner), key=lambda value: abs(left + above - corner - value))
            line[k] = (byte + (0, left, above, (left + above) // 2, near)[kind]) & 255
        changes += start > 0 and bytes(line) != before
        before = bytes(line)
    return changes


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
    assert drawn_lines(shot.read_bytes(), (1000, 1400)) > 5
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", seen.stdout)).split())
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


def test_blank_pages_are_seen(tmp_path):
    with pytest.raises(AssertionError, match="> 5"):
        look("", tmp_path, "blank")


def test_complaints_are_heard(tmp_path):
    assert look("<script>console.error('broken')</script><h1>Broken</h1>", tmp_path, "broken")[1]


def test_results_show_their_numbers(tmp_path):
    target = leaps.Ising(size=4, beta=0.4, field=0.1)
    run = leaps.ais(target, walkers=200, intervals=20, progress=False)
    grid = leaps.free_energy(target, beta=[0.2, 0.4], steps=200, progress=False)
    text, complaints = look(run._repr_html_() + grid._repr_html_(), tmp_path, "results")
    assert not complaints
    assert str(run.log_z) in text and f"{run.log_z.exact:.6g}" in text
    assert str(run.observables.energy_per_site) in text
    for point in grid:
        assert f"{point.log_z} {point.log_z.exact:.6f}" in text
    search = leaps.minimize(leaps.SpinGlass(size=4, field=0.1), restarts=2, method="annealing", progress=False)
    text, complaints = look(search._repr_html_(), tmp_path, "search")
    assert not complaints
    assert "found by 2 of 2 restarts" in text and "The state of lowest energy" in text


def missing(numbers, text):
    """Those of some numbers that a text does not have."""
    return [number for number in numbers if number not in text]


def own_energy():
    def energy(x):
        s = x.reshape(-1, 3, 4) - 1.0
        bonds = s * (np.roll(s, 1, axis=1) + np.roll(s, 1, axis=2))
        diagonals = s * np.roll(s, (1, 1), axis=(1, 2))
        return (-bonds + 0.6 * diagonals + 0.4 * s**2 + 0.25 * s).sum(axis=(1, 2))

    target = leaps.Energy(energy, shape=(3, 4), q=3, beta=0.8)
    run = leaps.ais(target, walkers=3000, intervals=60, seed=1, progress=False)
    return [f"{leaps.exact(target).log_z:.12f}"[:12], f"log_z {run.log_z}", f"energy_per_site {run.observables.energy_per_site}"]


def phase_diagram():
    solved, between = (leaps.exact(leaps.Ising(size=6, beta=beta, field=field)) for beta, field in [(0.35, 0.05), (0.47, -0.03)])
    return [f"log_z {solved.log_z:.6g}", f"entropy_per_site {solved.entropy_per_site:.6g}", f"exact {between.log_z:.4f}"]


def spin_glass():
    glass = leaps.SpinGlass(size=8, couplings="gaussian", disorder_seed=3, beta=1.5, field=0.1)
    run = leaps.smc(glass, walkers=1000, intervals=100, seed=1, progress=False)
    other = leaps.SpinGlass(size=8, disorder_seed=7, beta=1.0)
    exact = [f"log_z {leaps.exact(glass).log_z:.6g}", f"exact {leaps.exact(other).log_z:.4f}"]
    return [*exact, f"{run.log_z.mean:.4f} +- {run.log_z.error:.4f}"]


@pytest.fixture(scope="module")
def numbers():
    """What every notebook must show, computed anew: exact numbers, and runs whose numbers follow from the seed."""
    return {"own-energy": own_energy(), "phase-diagram": phase_diagram(), "spin-glass": spin_glass()}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_their_numbers(path, tmp_path, numbers):
    text, complaints = look("".join(cells(path)), tmp_path, path.stem)
    assert not complaints
    assert missing(numbers[path.stem], text) == []
    # Numbers of another notebook would be missed.
    others = [number for stem, own in numbers.items() if stem != path.stem for number in own]
    assert missing(others, text) == others
