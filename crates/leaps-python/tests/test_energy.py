"""Python functions as energies, against the same target of the library's."""

import subprocess
import sys

import leaps
import numpy as np
import pytest

BUILT_IN = leaps.Ising(size=4, beta=0.4, field=0.1)


def delta_of(energy, q=2):
    """Changes by the definition."""

    def delta(x, site):
        changes = np.empty((len(x), q))
        before = energy(x)
        for value in range(q):
            y = x.copy()
            y[:, site] = value
            changes[:, value] = energy(y) - before
        return changes

    return delta


@pytest.mark.parametrize("with_delta", [False, True])
def test_samplers_agree_with_exact_answers(ising_energy, with_delta):
    delta = delta_of(ising_energy) if with_delta else None
    target = leaps.Energy(ising_energy, shape=(4, 4), beta=0.4, delta=delta)
    exact = leaps.exact(BUILT_IN)
    assert leaps.exact(target).log_z == pytest.approx(exact.log_z, abs=1e-10)
    for run in [leaps.ais(target, walkers=1000), leaps.smc(target, walkers=1000, kernel="metropolis")]:
        assert abs(run.log_z.mean - exact.log_z) < 5 * run.log_z.error
        assert run.states.shape == (1000, 4, 4)
        assert np.allclose(BUILT_IN.energy(run.states), run.energies)
    chains = leaps.mcmc(target, steps=200, chains=200, burn_in=50)
    energy = chains.observables.energy_per_site
    assert abs(energy.mean - exact.energy_per_site) < 5 * energy.error
    assert chains.states.shape == (200, 200, 4, 4)


def test_changes_and_energies_lead_to_the_same_states(ising_energy):
    plain = leaps.Energy(ising_energy, sites=16, beta=0.4)
    quick = leaps.Energy(ising_energy, sites=16, beta=0.4, delta=delta_of(ising_energy))
    assert (leaps.ais(plain, 200).states == leaps.ais(quick, 200).states).all()
    assert (leaps.mcmc(plain, 20, chains=10).states == leaps.mcmc(quick, 20, chains=10).states).all()


def test_sweeps_need_one_energy_for_every_other_value():
    evaluated = 0

    def energy(x):
        nonlocal evaluated
        evaluated += len(x)
        return ((x[:, 1:] == x[:, :-1]) * -1.0).sum(axis=1) + 0.3 * (x == 0).sum(axis=1)

    target = leaps.Energy(energy, sites=13, q=3, beta=0.8)
    walkers, intervals = 100, 20
    evaluated = 0
    run = leaps.ais(target, walkers, intervals=intervals)
    sweeps = walkers * intervals * 13 * 2
    assert sweeps <= evaluated < 1.1 * sweeps
    assert abs(run.log_z.mean - leaps.exact(target).log_z) < 5 * run.log_z.error


def test_other_kernels_and_tempering(ising_energy):
    target = leaps.Energy(ising_energy, shape=(4, 4), beta=0.4)
    exact = leaps.exact(BUILT_IN)
    gibbs = leaps.smc(target, walkers=200, intervals=20, kernel="gibbs", sweeps=4)
    assert abs(gibbs.log_z.mean - exact.log_z) < 5 * gibbs.log_z.error
    run = leaps.free_energy(target, beta=[0.2, 0.4], walkers=500)
    assert run.method == "smc"
    for point in run:
        known = leaps.exact(BUILT_IN.at(point.beta)).log_z
        assert abs(point.log_z.mean - known) < 5 * point.log_z.error


def test_exceptions_come_out_as_they_are(ising_energy):
    class Mine(Exception):
        pass

    calls = 0

    def fails_later(x):
        nonlocal calls
        calls += 1
        if calls > 50:
            raise Mine("no more")
        return ising_energy(x)

    target = leaps.Energy(fails_later, sites=16, beta=0.4)
    for job in (leaps.ais, leaps.smc, leaps.mcmc, lambda target: leaps.mcmc(target, 10, kernel="gibbs"), leaps.exact):
        calls = 0 if job is not leaps.exact else 50
        with pytest.raises(Mine, match="no more"):
            job(target)
    # What was raised before is forgotten.
    calls = -(10**9)
    assert leaps.ais(target, 50, intervals=5).walkers == 50

    def fails_at_once(x):
        raise Mine("at once")

    with pytest.raises(Mine, match="at once"):
        leaps.Energy(fails_at_once, sites=4)


def test_answers_of_another_shape_are_refused(ising_energy):
    for energy, words in [
        (lambda x: x, r"energy\(x\) must return numbers of shape \(64,\), not of shape \(64, 4\)"),
        (lambda x: 1.0, r"shape \(64,\)"),
    ]:
        with pytest.raises(ValueError, match=words):
            leaps.Energy(energy, sites=4)
    with pytest.raises((TypeError, ValueError)):
        leaps.Energy(lambda x: ["a"] * len(x), sites=4)
    with pytest.raises(ValueError, match=r"delta\(x, site\) must return numbers of shape \(16, 2\)"):
        leaps.Energy(ising_energy, sites=16, delta=lambda x, site: np.zeros(len(x)))
    with pytest.raises(TypeError):
        leaps.Energy(ising_energy, sites=2.5)
    for wrong in (dict(sites=0), dict(shape=()), dict(sites=4, q=-1)):
        with pytest.raises(ValueError, match="must be"):
            leaps.Energy(ising_energy, **wrong)
    with pytest.raises(FloatingPointError, match="is NaN|is nan"):
        leaps.ais(leaps.Energy(lambda x: np.where(x[:, 0] == 1, np.nan, 0.0), sites=4), 50)
    with pytest.raises(TypeError, match="either sites"):
        leaps.Energy(ising_energy)


def test_the_function_may_keep_what_it_is_given():
    kept = []

    def energy(x):
        kept.append(x)
        return x.sum(axis=1, dtype=float)

    leaps.ais(leaps.Energy(energy, sites=5), 20, intervals=3)
    sums = [x.sum() for x in kept]
    leaps.ais(leaps.Energy(energy, sites=5), 20, intervals=3, seed=9)
    assert [x.sum() for x in kept[: len(sums)]] == sums
    assert all(x.dtype == np.uint8 and x.ndim == 2 and x.shape[1] == 5 for x in kept)


def test_answers_of_other_types_are_taken():
    exact = leaps.exact(leaps.Energy(lambda x: x.sum(axis=1, dtype=float), sites=6)).log_z
    for energy in [
        lambda x: x.sum(axis=1, dtype=np.int64),
        lambda x: x.sum(axis=1, dtype=np.float32),
        lambda x: [float(row.sum()) for row in x],
        lambda x: np.repeat(x.sum(axis=1, dtype=float), 2)[::2],
    ]:
        assert leaps.exact(leaps.Energy(energy, sites=6)).log_z == exact


def test_a_delta_of_another_energy_is_refused():
    def delta(x, site):
        return np.zeros((len(x), 2))

    with pytest.raises(ValueError, match="delta"):
        leaps.Energy(lambda x: x.sum(axis=1), sites=6, delta=delta)


def test_spins_are_of_two_values():
    run = leaps.ais(leaps.Potts(q=3, size=3, beta=0.5), walkers=10, intervals=2, progress=False)
    with pytest.raises(ValueError, match="two values"):
        run.spins


def test_more_threads_than_can_be_are_refused():
    for threads in (0, 1_000_000):
        with pytest.raises(ValueError, match="threads"):
            leaps.ais(leaps.Ising(size=3), walkers=10, intervals=2, threads=threads, progress=False)


def test_models_of_an_energy_belong_to_it(tmp_path):
    def energy(x):
        return x.sum(axis=1) + 0.3 * x[:, 0] * x[:, 1]

    own = leaps.Energy(energy, sites=5, name="own")
    other = leaps.Energy(lambda x: 2.0 * energy(x), sites=5, name="own")
    small = dict(network="mlp", hidden=4, steps=2, batch=16, pool=32, validate_walkers=16, progress=False)
    leaps.train(own, out=tmp_path / "run", **small)
    assert leaps.load(tmp_path / "run", own).rates(np.zeros((1, 5), np.uint8), 0.5)["U"].shape == (1,)
    with pytest.raises(ValueError, match="energies are other"):
        leaps.load(tmp_path / "run", other)
    with pytest.raises(ValueError, match="other energies"):
        leaps.train(other, out=tmp_path / "run", **small)
    # The program has no such energy: it says so, and reports what it can.
    program = [sys.executable, "-m", "leaps"]
    run = dict(capture_output=True, text=True, cwd=tmp_path)
    refused = subprocess.run([*program, "sample", "--model", "run"], **run)
    assert refused.returncode == 2 and "which only its program has" in refused.stderr
    report = subprocess.run([*program, "report", "run"], **run)
    assert report.returncode == 0, report.stderr
