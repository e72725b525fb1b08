"""Networks that were trained over random instances, on instances that they never saw."""

import json
import subprocess
import sys

import leaps
import numpy as np
import pytest

BETA = 0.6
HOW = dict(intervals=60, sweeps=1, seed=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of a small network, hardly trained: weights have to make up for it."""
    glass = leaps.SpinGlass(size=4, beta=BETA)
    model = leaps.train(glass, steps=20, instances=64, batch=32, channels=4, seed=2, progress=False)
    assert model.description["training"]["settings"]["instances"] == 64
    folder = tmp_path_factory.mktemp("glass") / "model"
    model.save(folder)
    return folder


@pytest.fixture(scope="module")
def bonds():
    """Gaussian couplings on the free 4x4 lattice, as edges."""
    random = np.random.default_rng(6)
    right = [(4 * row + column, 4 * row + column + 1) for row in range(4) for column in range(3)]
    down = [(site, site + 4) for site in range(12)]
    return [(i, j, float(random.normal())) for i, j in right + down]


def program(folder, *words):
    command = [sys.executable, "-m", "leaps", "sample", "--model", str(folder), *words, "--json", "--quiet"]
    command += [f"--{key}={value}" for key, value in HOW.items()] + ["--walkers=400"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_another_seed_of_the_disorder(folder):
    run = leaps.sample(folder, 400, disorder_seed=7, **HOW)
    glass = leaps.SpinGlass(size=4, beta=BETA, disorder_seed=7)
    assert np.allclose(glass.energy(run.states), run.energies)
    assert run.log_z.exact == pytest.approx(leaps.exact(glass).log_z) and abs(run.log_z.z) < 5
    assert program(folder, "--set", "target.disorder_seed=7")["log_z"] == run.to_dict()["log_z"]
    own = leaps.sample(folder, 400, **HOW)
    assert own.log_z.exact != run.log_z.exact
    larger = leaps.load(folder).sample(400, size=6, disorder_seed=7, **HOW)
    assert larger.states.shape == (400, 6, 6) and abs(larger.log_z.z) < 5


def test_a_target_given_directly_is_the_same_as_its_settings(folder):
    glass = leaps.SpinGlass(size=4, beta=BETA, disorder_seed=7)
    given = leaps.sample(folder, 400, target=glass, **HOW)
    named = leaps.sample(folder, 400, disorder_seed=7, **HOW)
    assert (given.states == named.states).all() and (given.log_weights == named.log_weights).all()
    # It has a temperature of its own.
    warm = leaps.load(folder).sample(400, target=glass.at(0.3), **HOW)
    assert warm.log_z.exact == pytest.approx(leaps.exact(glass.at(0.3)).log_z) and abs(warm.log_z.z) < 5


def test_a_file_keeps_the_temperature_of_the_model(folder, bonds, tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("lattice 4x4 free\n" + "".join(f"{i} {j} {strength!r}\n" for i, j, strength in bonds))
    run = leaps.sample(folder, 400, path=path, **HOW)
    exact = leaps.exact(leaps.File(path, beta=BETA)).log_z
    assert run.log_z.exact == pytest.approx(exact) and abs(run.log_z.z) < 5
    assert program(folder, "--target-file", str(path))["log_z"] == run.to_dict()["log_z"]
    with pytest.raises(ValueError, match="size"):
        leaps.sample(folder, 400, path=path, size=4)


def test_couplings_from_arrays(folder, bonds, tmp_path):
    target = leaps.Couplings(bonds, beta=BETA, shape=(4, 4), boundary="free")
    run = leaps.sample(folder, 400, target=target, **HOW)
    assert run.states.shape == (400, 4, 4)
    assert np.allclose(target.energy(run.states), run.energies)
    exact = leaps.exact(leaps.Couplings(bonds, beta=BETA)).log_z
    assert abs(run.log_z.mean - exact) < 5 * run.log_z.error
    path = tmp_path / "mine.txt"
    path.write_text("lattice 4x4 free\n" + "".join(f"{i} {j} {strength!r}\n" for i, j, strength in bonds))
    assert (leaps.sample(folder, 400, path=path, **HOW).states == run.states).all()


def test_what_does_not_fit_is_refused(folder, bonds):
    for target, words in [
        (leaps.Couplings(bonds), "shape=\\(8, 8\\)"),
        (leaps.Couplings(bonds, fields=0.1, shape=(4, 4), boundary="free"), "field"),
        (leaps.Potts(q=3, size=4), "spin"),
    ]:
        with pytest.raises(ValueError, match=words):
            leaps.sample(folder, 100, target=target)
    with pytest.raises(ValueError, match="give them to the target itself"):
        leaps.sample(folder, 100, target=leaps.SpinGlass(size=4), disorder_seed=7)
    with pytest.raises(TypeError, match="must be a leaps.Target"):
        leaps.sample(folder, 100, target="mine.txt")


def test_a_network_of_one_energy_is_not_for_couplings(bonds):
    with pytest.raises(ValueError, match="it was trained on"):
        leaps.sample("ising-8-critical", 50, target=leaps.Couplings(bonds, shape=(4, 4), boundary="free"))
