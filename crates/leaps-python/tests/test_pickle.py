"""Results, targets and models travel between processes: multiprocessing, joblib and caches pickle them."""

import pickle

import numpy as np
import pytest

import leaps


def ring(x):
    s = 2.0 * x - 1.0
    return -(s * np.roll(s, 1, axis=1)).sum(axis=1) + 0.2 * s[:, 0]


def again(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize(
    "run",
    [
        lambda target: leaps.ais(target, walkers=64),
        lambda target: leaps.mcmc(target, chains=4, steps=50, burn_in=10),
        lambda target: leaps.exact(target, samples=5),
        lambda target: leaps.minimize(target, restarts=2),
        lambda target: leaps.free_energy(target, beta=[0.2, 0.3], chains=8, steps=100),
    ],
    ids=["ais", "mcmc", "exact", "minimize", "free_energy"],
)
def test_results_come_back_as_they_were(run):
    made = run(leaps.Ising(size=(3, 4), beta=0.3, field=0.2))
    back = again(made)
    assert type(back) is type(made)
    assert back.to_dict() == made.to_dict()
    assert back.warnings == made.warnings
    assert repr(back) == repr(made)
    assert back.figures() == made.figures()
    for name in ("states", "energies", "log_weights"):
        if hasattr(made, name):
            np.testing.assert_array_equal(getattr(back, name), getattr(made, name))


@pytest.mark.parametrize(
    "target",
    [
        leaps.Ising(size=(3, 4), beta=0.3, field=np.linspace(-1, 1, 12)),
        leaps.Potts(q=3, size=3, beta=0.7),
        leaps.Couplings([(0, 1, 1.0), (1, 2, -0.5), (2, 3, 0.3)], fields=0.5, beta=0.3),
        leaps.Energy(ring, shape=(2, 3), beta=0.4, name="ring"),
        leaps.Ising(size=(3, 4), beta=0.3).at(0.5, field=0.1).at(0.6),
    ],
    ids=["ising", "potts", "couplings", "energy", "at"],
)
def test_targets_come_back_as_they_were(target):
    back = again(target)
    assert (type(back), repr(back), back.settings, back.beta) == (type(target), repr(target), target.settings, target.beta)
    x = np.random.default_rng(1).integers(0, target.q, (20, target.sites)).astype(np.uint8)
    np.testing.assert_array_equal(back.energy(x), target.energy(x))


def test_a_function_stays_with_its_energy():
    made = leaps.Energy(ring, sites=4)
    for target in (again(made), made.at(0.3), again(made.at(0.3))):
        assert type(target) is leaps.Energy and target.function is ring


def test_a_model_of_an_energy_comes_back_with_it(tmp_path):
    target = leaps.Energy(ring, sites=4, beta=0.4, name="ring")
    leaps.train(target, steps=2, batch=8, network="mlp", pool=32).save(tmp_path / "model")
    model = leaps.load(tmp_path / "model", target)
    run = model.sample(20, intervals=4)
    back = again(model)
    assert back.target.function is ring
    np.testing.assert_array_equal(back.sample(20, intervals=4).states, run.states)
    # Functions of no module stay behind, and pickle says so.
    other = leaps.Energy(lambda x: ring(x), sites=4, beta=0.4, name="ring")
    with pytest.raises((AttributeError, pickle.PicklingError), match="pickle"):
        pickle.dumps(leaps.load(tmp_path / "model", other))


def test_models_come_back_by_their_names():
    model = again(leaps.load("ising-8-critical"))
    assert model.name == "ising-8-critical"
    with pytest.raises(TypeError, match="pickle the model"):
        pickle.dumps(model.target)


def test_a_model_in_memory_says_how_to_keep_it():
    model = leaps.train(leaps.Ising(size=3, beta=0.3), steps=2, batch=8)
    with pytest.raises(TypeError, match=r"leaps.load\(directory\)"):
        pickle.dumps(model)
