"""Results for other packages."""

import sys

import leaps
import numpy as np
import pytest

TARGET = leaps.Ising(size=4, beta=0.4)
WALKERS = leaps.ais(TARGET, 100)
CHAINS = leaps.mcmc(TARGET, 30, chains=3)


def test_xarray():
    pytest.importorskip("xarray")
    found = WALKERS.to_xarray()
    assert found.x.dims == ("walker", "axis_0", "axis_1") and found.log_weight.dims == ("walker",)
    assert np.shares_memory(found.x.values, WALKERS.states)
    assert np.isclose(float((found.weight * found.energy).sum()) / 16, WALKERS.observables.energy_per_site.mean)
    assert CHAINS.to_xarray().x.dims == ("chain", "draw", "axis_0", "axis_1")
    grid = leaps.free_energy(TARGET, beta=[0.2, 0.4], chains=4, steps=50).to_xarray()
    assert grid.log_z.sizes == {"beta": 2}
    run = leaps.free_energy(TARGET, beta=[0.2, 0.3, 0.4], field=[0.1, 0.0], chains=4, steps=50)
    grid = run.to_xarray()
    assert grid.log_z.dims == ("beta", "field") and grid.log_z_error.shape == (3, 2)
    for point in run:
        assert float(grid.log_z.sel(beta=point.beta, field=point.field)) == point.log_z.mean
    run._record["points"].pop()
    assert run.to_xarray().log_z.dims == ("point",)
    gas = leaps.free_energy(leaps.LatticeGas(size=3), [0.5, 1.0], chemical_potential=[-2.5, -1.5], chains=4, steps=50)
    assert gas.to_xarray().log_z.dims == ("beta", "chemical_potential")
    with pytest.raises(TypeError, match="one of them"):
        leaps.free_energy(leaps.LatticeGas(size=3), 0.5, field=0.1, chemical_potential=-1.0)


def test_pandas():
    pytest.importorskip("pandas")
    found = WALKERS.to_pandas()
    assert list(found.columns) == ["energy", "log_weight", "weight"] and len(found) == 100
    assert np.isclose(found.weight.sum(), 1)
    chains = CHAINS.to_pandas()
    assert chains.index.names == ["chain", "draw"] and len(chains) == 90
    assert chains.loc[(2, 29), "energy"] == CHAINS.energies[2, 29]
    grid = leaps.free_energy(TARGET, beta=[0.2, 0.4], chains=4, steps=50).to_pandas()
    assert {"beta", "log_z", "log_z_error", "log_z_exact", "energy_per_site"} <= set(grid.columns)


@pytest.mark.filterwarnings("ignore")
def test_arviz():
    arviz = pytest.importorskip("arviz")
    found = WALKERS.to_arviz()
    assert type(found).__name__ == ("InferenceData" if int(arviz.__version__.split(".")[0]) < 1 else "DataTree")
    assert found["posterior"]["x"].shape == (1, 100, 4, 4)
    assert np.allclose(found["sample_stats"]["log_weight"].values[0], WALKERS.log_weights)
    assert np.isclose(float(found["sample_stats"]["weight"].sum()), 1)
    # ArviZ' own "energy" is that of Hamiltonian Monte Carlo.
    assert "energy" not in found["sample_stats"]
    assert np.allclose(found["sample_stats"]["state_energy"].values[0], WALKERS.energies)
    assert CHAINS.to_arviz()["posterior"]["x"].shape == (3, 30, 4, 4)


def test_packages_that_are_missing_are_named(monkeypatch):
    for name, method in [("arviz", "to_arviz"), ("pandas", "to_pandas"), ("xarray", "to_xarray")]:
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"pip install {name}"):
            getattr(WALKERS, method)()
    with pytest.raises(ValueError, match="none were kept"):
        monkeypatch.undo()
        leaps.mcmc(TARGET, 30, chains=3, keep=False).to_pandas()
