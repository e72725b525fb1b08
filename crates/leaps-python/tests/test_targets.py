"""Targets against energies written out, and against exact answers."""

import leaps
import numpy as np
import pytest


def all_states(sites, q=2):
    return (np.arange(q**sites)[:, None] // q ** np.arange(sites) % q).astype(np.uint8)


def log_z(energies, beta):
    return np.log(np.exp(-beta * energies).sum())


def test_energies_are_those_of_the_formula(ising_energy):
    target = leaps.Ising(size=4, beta=0.4, field=0.1)
    states = all_states(16)[::97]
    assert np.allclose(target.energy(states), ising_energy(states))
    assert np.allclose(target.energy(states.reshape(-1, 4, 4)), ising_energy(states))
    assert np.allclose(target.energy(2 * states.astype(int) - 1), ising_energy(states))
    assert target.energy(states.reshape(-1, 1, 4, 4)).shape == (len(states), 1)
    potts = leaps.Potts(q=3, size=(2, 3), boundary="free", field=0.5)
    x = np.array([[0, 1, 2], [0, 1, 0]])
    assert float(potts.energy(x)) == -2 + 0.5 * 3


def test_fields_may_differ_from_site_to_site():
    fields = np.linspace(-1, 1, 9).reshape(3, 3)
    target = leaps.Ising(size=3, coupling=0.0, field=fields, beta=0.7)
    assert np.isclose(leaps.exact(target).log_z, np.log(2 * np.cosh(0.7 * fields)).sum())


def test_couplings_from_matrices_edges_and_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    random = np.random.default_rng(3)
    upper = np.triu(random.normal(size=(7, 7)), 1) * (random.random((7, 7)) < 0.6)
    fields = random.normal(size=7)
    states = all_states(7)
    s = 2.0 * states - 1.0
    energies = -np.einsum("bi,ij,bj->b", s, upper, s) + s @ fields
    edges = [(i, j, upper[i, j]) for i, j in zip(*np.nonzero(upper))]
    for couplings in [upper, upper.T, upper + upper.T, sparse.csr_matrix(upper + upper.T), sparse.coo_array(upper), edges]:
        target = leaps.Couplings(couplings, fields, beta=0.5, sites=7)
        assert np.allclose(target.energy(states), energies)
        assert np.isclose(leaps.exact(target).log_z, log_z(energies, 0.5))
    run = leaps.ais(leaps.Couplings(upper, fields, beta=0.5), walkers=2000, seed=2)
    assert abs(run.log_z.z) < 5


def test_potts_couplings():
    target = leaps.Couplings([(0, 1, 1.5), (1, 2, -0.5)], [0.0, 0.0, 2.0], q=3, beta=1.0)
    assert float(target.energy([1, 1, 0])) == -1.5 + 2.0
    assert target.q == 3


def test_couplings_that_mean_nothing_are_refused():
    for couplings, words in [
        (np.eye(3), "diagonal"),
        (np.array([[0, 1.0], [2.0, 0]]), "symmetric or triangular"),
        (np.ones((2, 4)), "square matrix or edges"),
        ([(0, 0, 1.0)], "two different sites"),
        ([(0, 1.5, 1.0)], "whole numbers"),
    ]:
        with pytest.raises(ValueError, match=words):
            leaps.Couplings(couplings)
    with pytest.raises(ValueError, match="one for each of the 2 sites"):
        leaps.Couplings([(0, 1, 1.0)], fields=[1.0, 2.0, 3.0], sites=2)


def test_files(tmp_path):
    path = tmp_path / "ring.txt"
    path.write_text("0 1 1.0\n1 2 1.0\n2 0 1.0\nfield 0 0.5\n")
    target = leaps.File(path, beta=0.3)
    states = all_states(3)
    s = 2.0 * states - 1.0
    energies = -(s * np.roll(s, 1, axis=1)).sum(axis=1) + 0.5 * s[:, 0]
    assert np.isclose(leaps.exact(target).log_z, log_z(energies, 0.3))
    with pytest.raises(FileNotFoundError):
        leaps.File(tmp_path / "missing.txt")


def test_every_key_of_the_library_works_and_others_are_refused():
    assert leaps.Ising(dimensions=3, size=4).shape == (4, 4, 4)
    assert leaps.Target("spin-glass", geometry="complete", size=12).shape == (12,)
    with pytest.raises(TypeError, match="did you mean size"):
        leaps.Ising(sise=4)
    with pytest.raises(ValueError, match="belongs to potts"):
        leaps.Ising(q=3)
    with pytest.raises(ValueError, match="boundary"):
        leaps.Ising(boundary="open")
    with pytest.raises(ValueError, match="shape"):
        leaps.Ising(size=4).energy(np.zeros(5))
    with pytest.raises(ValueError, match="mixture"):
        leaps.Ising(size=2).energy([[-1, 0], [1, 1]])
    with pytest.raises(ValueError, match="below 2"):
        leaps.Ising(size=2).energy(np.full((2, 2), 2, dtype=np.uint8))


def test_another_temperature():
    target = leaps.Ising(size=4, beta=0.4, field=0.1)
    assert leaps.exact(target.at(0.2, 0.3)).log_z == leaps.exact(leaps.Ising(size=4, beta=0.2, field=0.3)).log_z


def test_couplings_given_twice_are_added_and_ambiguous_ones_refused():
    sparse = pytest.importorskip("scipy.sparse")
    twice = sparse.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert leaps.Couplings(twice).energy([1, 1]) == -3.0
    matrix = [[0, 1, 2.0], [1, 0, 3.0], [2, 3, 0]]
    assert leaps.Couplings(np.array(matrix)).sites == 3
    with pytest.raises(ValueError, match="matrix or edges"):
        leaps.Couplings(matrix)
