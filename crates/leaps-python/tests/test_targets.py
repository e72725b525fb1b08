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


def test_couplings_on_a_lattice():
    random = np.random.default_rng(8)
    for boundary in ["periodic", "free"]:
        ising = leaps.Ising(size=(2, 3), boundary=boundary, beta=0.4)
        ends = [(i, j) for i in range(6) for j in range(i) if couples(ising, i, j)]
        edges = [(i, j, float(random.normal())) for i, j in ends]
        plain = leaps.Couplings(edges, fields=np.arange(6) / 7, beta=0.4)
        placed = leaps.Couplings(edges, fields=np.arange(6) / 7, beta=0.4, shape=(2, 3), boundary=boundary)
        states = all_states(6)
        assert placed.shape == (2, 3) and plain.shape == (6,)
        assert np.allclose(placed.energy(states), plain.energy(states))
        # Bonds may be missing; others than those of the lattice may not be there.
        assert np.allclose(
            leaps.Couplings(edges[1:], sites=6, shape=(2, 3), boundary=boundary).energy(states),
            leaps.Couplings(edges[1:], sites=6).energy(states),
        )
        with pytest.raises(ValueError, match="join nearest neighbours"):
            leaps.Couplings([*edges, (0, 4, 1.0)], shape=(2, 3), boundary=boundary)
    run = leaps.smc(placed, walkers=200)
    assert run.states.shape == (200, 2, 3)
    potts = leaps.Couplings([(0, 1, 1.5), (1, 2, -0.5)], q=3, shape=(3,), boundary="free")
    assert float(potts.energy([1, 1, 0])) == -1.5
    for settings, words in [(dict(shape=(2, 2)), "not of 6"), (dict(shape=(2, 3), boundary="open"), "periodic or free")]:
        with pytest.raises(ValueError, match=words):
            leaps.Couplings(edges, **settings)
    with pytest.raises(ValueError, match="not of 4"):
        leaps.Couplings(np.triu(np.ones((4, 4)), 1), shape=(2, 3))
    assert leaps.Couplings(edges[:1], shape=(2, 3), boundary=boundary).sites == 6


def couples(ising, i, j):
    """Whether two sites of a lattice interact."""
    flat = np.zeros((4, ising.sites))
    flat[1, i] = flat[2, j] = flat[3, [i, j]] = 1
    energies = ising.energy(flat)
    return bool(energies[0] - energies[1] - energies[2] + energies[3])


def test_graphs(tmp_path):
    path = tmp_path / "graph.txt"
    edges = [(0, 1, 2.0), (1, 2, -1.0), (2, 3, 0.5), (0, 4, 1.0), (1, 4, 1.0)]
    path.write_text("5 5\n" + "".join(f"{i + 1} {j + 1} {w}\n" for i, j, w in edges))
    states = all_states(5)
    cuts = sum(w * (states[:, i] != states[:, j]) for i, j, w in edges)
    inside = sum((states[:, i] & states[:, j]).astype(float) for i, j, _ in edges)
    sets = states.sum(axis=1) - 2 * inside
    cut, independent = leaps.MaxCut(path, beta=0.7), leaps.IndependentSet(path, beta=0.7)
    for target, energies in [(cut, -cuts), (independent, -sets)]:
        assert np.allclose(target.energy(states), energies)
        assert np.isclose(leaps.exact(target).log_z, log_z(energies, 0.7))
        assert abs(leaps.ais(target, walkers=500).log_z.z) < 5
    found = leaps.minimize(cut)
    assert (found.cut, found.proven) == (cuts.max(), True)
    best = leaps.minimize(independent, method="annealing", restarts=2)
    assert best.set_size == sets[inside == 0].max() == best.state.sum()
    with pytest.raises(TypeError):
        leaps.MaxCut()
    with pytest.raises(ValueError, match="belongs to"):
        leaps.MaxCut(path, size=4)


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


def test_tables_over_clusters():
    random = np.random.default_rng(4)
    right, three = random.normal(size=(3, 3)), random.normal(size=(3, 3, 3))
    target = leaps.LatticeModel(
        [
            {"offsets": [[0, 0], [0, 1]], "table": right},
            {"offsets": [[0, 0], [0, 1], [1, 0]], "table": three, "term": "three"},
        ],
        q=3,
        size=(2, 3),
        beta=0.7,
    )
    states = all_states(6, 3)
    x = states.reshape(-1, 2, 3)
    along, down = np.roll(x, -1, axis=2), np.roll(x, -1, axis=1)
    energies = (right[x, along] + three[x, along, down]).sum(axis=(1, 2))
    assert np.allclose(target.energy(states), energies)
    assert np.isclose(leaps.exact(target).log_z, log_z(energies, 0.7))
    assert abs(leaps.smc(target, walkers=2000, seed=2).log_z.z) < 5


def test_named_lattice_models():
    spins = all_states(6, 3).reshape(-1, 2, 3).astype(float) - 1.0
    bonds = (spins * (np.roll(spins, -1, axis=1) + np.roll(spins, -1, axis=2))).sum(axis=(1, 2))
    energies = -bonds + (0.4 * spins**2 + 0.1 * spins).sum(axis=(1, 2))
    capel = leaps.BlumeCapel(size=(2, 3), crystal_field=0.4, field=0.1, beta=0.8)
    assert np.allclose(capel.energy(all_states(6, 3)), energies)
    run = leaps.mcmc(capel, chains=8, steps=500, burn_in=50)
    assert 0 < run.observables["quadrupole"].mean < 1
    gas = leaps.LatticeGas(size=(2, 3), chemical_potential=-1.0, beta=0.5)
    assert 0 < leaps.ais(gas, walkers=200).observables["density"].mean < 1
    for target in [leaps.Clock(q=5, size=3), leaps.BaxterWu(size=3), leaps.AshkinTeller(size=2, four_spin=0.3)]:
        assert np.isfinite(leaps.exact(target).log_z)
    with pytest.raises(ValueError, match="interactions"):
        leaps.LatticeModel([{"offsets": [[0, 0], [0, 1]], "table": [1.0, 2.0]}], size=3)


def test_files_of_many_formats(tmp_path):
    states = all_states(3)
    x = states.astype(float)
    s = 2.0 * x - 1.0
    cut = -(3.0 * (s[:, 0] != s[:, 1]) - 2.0 * (s[:, 1] != s[:, 2]))
    qubo = 3.5 * x[:, 0] - 2.0 * x[:, 0] * x[:, 1] + 5.25 * x[:, 1] * x[:, 2]
    spins = -s[:, 0] + s[:, 0] * s[:, 1] - 4.5 * s[:, 1] * s[:, 2]
    for text, settings, energies in [
        ("3 2\n1 2 3\n2 3 -2\n", {}, cut),
        ("p qubo 0 3 1 2\n0 0 3.5\n0 1 -2\n1 2 5.25\n", {}, qubo),
        ("# vartype=SPIN\n0 0 -1\n0 1 1\n1 2 -4.5\n", {}, spins),
        ("0 0 -1\n0 1 1\n1 2 -4.5\n", {"format": "coo-spin"}, spins),
    ]:
        path = tmp_path / "instance.txt"
        path.write_text(text)
        target = leaps.File(path, beta=0.5, **settings)
        assert np.allclose(target.energy(states), energies)
        assert np.isclose(leaps.exact(target).log_z, log_z(energies, 0.5))


def test_matrices_that_scipy_saved(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    upper = np.triu(np.random.default_rng(5).normal(size=(6, 6)), 1)
    states = all_states(6)
    s = 2.0 * states - 1.0
    energies = -np.einsum("bi,ij,bj->b", s, upper, s)
    for matrix in [sparse.csr_matrix(upper), sparse.csc_matrix(upper + upper.T), sparse.coo_matrix(upper.T)]:
        for compressed in [True, False]:
            sparse.save_npz(tmp_path / "j.npz", matrix, compressed=compressed)
            assert np.allclose(leaps.File(tmp_path / "j.npz", beta=0.5).energy(states), energies)
