"""Jobs against exact answers, and what they refuse."""

import os
import subprocess
import sys

import leaps
import numpy as np
import pytest

TARGET = leaps.Ising(size=4, beta=0.4, field=0.1)


def test_exact_samples_and_numbers():
    found = leaps.exact(TARGET, samples=4000, seed=3)
    assert found.method == "enumeration" and found.states.shape == (4000, 4, 4)
    error = found.energies.std() / np.sqrt(4000)
    assert abs(found.energies.mean() / 16 - found.energy_per_site) < 5 * error / 16
    assert leaps.exact(TARGET, method="transfer-matrix").log_z == pytest.approx(found.log_z)
    with pytest.raises(ValueError, match="method = guess: must be one of"):
        leaps.exact(TARGET, method="guess")


@pytest.mark.parametrize("sampler", [leaps.ais, leaps.smc])
def test_walkers(sampler):
    run = sampler(TARGET, walkers=2000, intervals=60, kernel="metropolis", seed=5)
    assert (run.walkers, run.intervals, run.kernel, run.seed) == (2000, 60, "metropolis", 5)
    assert abs(run.log_z.z) < 5
    assert abs(run.observables.energy_per_site.z) < 5
    assert abs(run.observables.magnetization.z) < 5
    assert np.isclose(run.weights.sum(), 1)
    mean = (run.weights * run.energies).sum() / 16
    assert np.isclose(mean, run.observables.energy_per_site.mean)
    assert np.allclose(TARGET.energy(run.states), run.energies)


def test_chains():
    run = leaps.mcmc(TARGET, steps=2000, chains=8, burn_in=200, thin=2, seed=4)
    assert run.states.shape == (8, 1000, 4, 4) and run.energies.shape == (8, 1000)
    assert abs(run.observables.energy_per_site.z) < 5
    assert run.observables.energy_per_site.autocorrelation_time > 0
    assert not run.interrupted
    again = leaps.mcmc(TARGET, steps=2000, chains=8, burn_in=200, thin=2, seed=4, keep=False)
    assert again.states is None and again.observables.energy_per_site == run.observables.energy_per_site


def test_tempering_keeps_states_of_the_target():
    run = leaps.mcmc(TARGET, steps=300, chains=32, kernel="parallel-tempering", temperatures=4, at_beta=[0.2])
    assert run.states.shape == (32, 300, 4, 4)
    assert np.allclose(TARGET.energy(run.states), run.energies)
    assert abs(run.log_z.z) < 5


def test_free_energies():
    run = leaps.free_energy(TARGET, beta=[0.2, 0.4], field=[0.0, 0.3], chains=16, steps=1000)
    assert len(run) == 4 and run.method == "tempering"
    assert all(abs(point.log_z.z) < 5 for point in run)
    assert run.column("beta").tolist() == [0.2, 0.4, 0.2, 0.4]
    assert leaps.free_energy(TARGET, beta=0.4, method="smc", walkers=500).method == "smc"


def test_threads_do_not_change_anything():
    one, two = (leaps.ais(TARGET, walkers=300, threads=threads) for threads in (1, 2))
    assert (one.states == two.states).all() and (one.log_weights == two.log_weights).all()


def test_settings_that_cannot_be_meant():
    for call, words in [
        (lambda: leaps.ais(TARGET, walkrs=5), "walkrs: no such keyword argument; did you mean walkers"),
        (lambda: leaps.ais(TARGET, chains=5), "belongs to mcmc"),
        (lambda: leaps.exact(TARGET, walkers=5), "belongs to ais"),
        (lambda: leaps.ais(TARGET, walkers=object()), "walkers: must be a number"),
        (lambda: leaps.ais("ising"), "must be a leaps.Target"),
    ]:
        with pytest.raises(TypeError, match=words):
            call()
    for call, words in [
        (lambda: leaps.ais(TARGET, walkers=1), "^walkers = 1: must be from 2"),
        (lambda: leaps.ais(TARGET, walkers=-3), "^walkers = -3: must be a whole number"),
        (lambda: leaps.ais(TARGET, kernel="wolf"), "kernel"),
        (lambda: leaps.ais(TARGET, device="gpu"), "device = gpu: must be one of"),
        (lambda: leaps.ais(TARGET, precision="half"), "precision = half: must be one of float32"),
        (lambda: leaps.free_energy(TARGET, method="guess"), "method"),
        (lambda: leaps.free_energy(TARGET, beta=[0.0]), "beta"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()


def test_progress_is_heard_and_its_exceptions_stop_the_work():
    class Enough(Exception):
        pass

    heard = []

    def progress(label, done, total, note):
        heard.append((label, done, total, note))
        if done > 0:
            raise Enough

    # It would take hours.
    with pytest.raises(Enough):
        leaps.ais(leaps.Ising(size=32), walkers=20000, intervals=100000, progress=progress)
    assert heard[-1][0] == "ais" and 0 < heard[-1][1] < heard[-1][2]


def test_results_show_themselves():
    run = leaps.ais(TARGET, walkers=50)
    assert "log_z" in repr(run) and "exact 14.69" in repr(run)
    page = run._repr_html_()
    assert page.count("<svg ") == len(run.figures()) >= 4 and "<table>" in page
    assert run.figures()[0].startswith("<svg xmlns=")
    assert run.to_dict()["schema"] == 2 and "log_z" in dir(run)
    assert run.observables["energy_per_site"] == run.observables.energy_per_site
    assert run.warnings and isinstance(run.warnings[0], str)
    with pytest.raises(AttributeError, match="has no logz"):
        run.logz


def test_free_energies_show_a_table_of_some_points():
    few = leaps.free_energy(TARGET, beta=[0.2, 0.4], field=[0.0, 0.1], chains=4, steps=100)
    page = few._repr_html_()
    assert "<svg" in page and page.count("<tr>") == 1 + len(few) and "more points" not in page
    for point in few:
        assert f"<td>{point.log_z}</td><td>{point.log_z.exact:.6f}</td>" in page
        assert f"<td>{point.observables.energy_per_site}</td>" in page
    many = leaps.free_energy(TARGET, beta=np.linspace(0.01, 0.4, 40), method="smc", walkers=50, intervals=40)
    page = many._repr_html_()
    assert page.count("<tr>") == 1 + 21 and "20 more points" in page
    shown = [str(point.log_z) in page for point in many]
    assert all(shown[:10] + shown[-10:])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_jobs_run_in_a_forked_process():
    code = """if True:
        import multiprocessing
        import leaps
        def work(seed):
            return leaps.ais(leaps.Ising(size=3, field=0.1), walkers=20, intervals=4, seed=seed, progress=False).log_z.mean
        own = work(1)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply(work, (1,)) == own
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_searches_say_how_often_the_lowest_energy_was_found_and_draw_it():
    run = leaps.minimize(leaps.SpinGlass(size=4, field=0.1), restarts=3, method="annealing", walkers=8, sweeps=50)
    found = run.found
    words = f"{found.restarts} of 3 restarts, {found.walkers} of 24 walkers"
    assert found.restarts > 0 and words in repr(run) and words in run._repr_html_()
    restarts, lowest = run.figures()
    assert "What every restart found" in restarts and "The state of lowest energy" in lowest
    assert "found by" not in repr(leaps.minimize(leaps.Ising(size=3), method="exact"))
