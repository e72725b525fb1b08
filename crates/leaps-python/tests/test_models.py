"""Networks: training, sampling, outputs and gradients."""

import json
import struct
import subprocess
import sys

import leaps
import numpy as np
import pytest
from blake3 import blake3

SHIPPED = leaps.load("ising-8-critical")


def test_training_saving_and_sampling(tmp_path):
    target = leaps.Ising(size=4, beta=0.3, field=0.1)
    model = leaps.train(target, steps=60, batch=64, network="mlp", seed=3)
    # Sweeps make up for a network that is hardly trained.
    run = model.sample(500, intervals=40, sweeps=2)
    assert abs(run.log_z.z) < 5 and run.scheme == "events"
    model.save(tmp_path / "model")
    again = leaps.sample(tmp_path / "model", 500, intervals=40, sweeps=2)
    assert (again.states == run.states).all() and (again.log_weights == run.log_weights).all()
    assert "mlp" in repr(model) and model.description["training"]["steps"] == 60


def test_a_run_directory_goes_on_and_is_the_programs(tmp_path):
    target = leaps.Ising(size=4, beta=0.3)
    first = leaps.train(target, steps=10, batch=32, network="mlp", decay="none", out=tmp_path / "run", seed=5)
    more = leaps.train(target, steps=20, batch=32, network="mlp", decay="none", out=tmp_path / "run", seed=5)
    assert (first.description["training"]["steps"], more.description["training"]["steps"]) == (10, 20)
    words = ["sample", "--model", str(tmp_path / "run"), "--walkers", "50", "--intervals", "10", "--json", "--quiet"]
    done = subprocess.run([sys.executable, "-m", "leaps", *words], capture_output=True, text=True, check=True)
    run = leaps.sample(tmp_path / "run", 50, intervals=10)
    assert json.loads(done.stdout)["log_z"] == run.to_dict()["log_z"]
    with pytest.raises(ValueError):
        leaps.train(leaps.Ising(size=4, beta=0.2), steps=30, batch=32, network="mlp", out=tmp_path / "run")
    assert (more.sample(50, intervals=10).states == run.states).all()


def test_training_from_a_model(tmp_path):
    target = leaps.Ising(size=4, beta=0.3)
    leaps.train(target, steps=5, batch=32, network="mlp").save(tmp_path / "model")
    cold = leaps.train(target, steps=5, batch=32, network="mlp", seed=2)
    for start in (tmp_path / "model", leaps.load(tmp_path / "model")):
        warm = leaps.train(target, steps=5, batch=32, network="mlp", seed=2, start_from=start)
        assert warm.description["training"]["from"]
        assert any((warm.parameters()[name] != part).any() for name, part in cold.parameters().items())
    with pytest.raises(ValueError, match="save"):
        leaps.train(target, steps=5, batch=32, network="mlp", start_from=cold)


def test_a_python_energy_is_trained_on_and_bound_to_its_model(tmp_path, ising_energy):
    target = leaps.Energy(ising_energy, shape=(4, 4), beta=0.3, name="mine", version="1")
    model = leaps.train(target, steps=4, batch=16, network="mlp", pool=64)
    run = model.sample(50, intervals=8)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="mine"):
        leaps.sample(tmp_path / "model", 50)
    assert "mine" in repr(leaps.load(tmp_path / "model"))
    bound = leaps.load(tmp_path / "model", target)
    assert (bound.sample(50, intervals=8).states == run.states).all()
    other = leaps.Energy(lambda x: 2 * ising_energy(x), shape=(4, 4), beta=0.3, name="mine", version="1")
    with pytest.raises(ValueError, match="energies are other"):
        leaps.load(tmp_path / "model", other).sample(50)
    newer = leaps.Energy(ising_energy, shape=(4, 4), beta=0.3, name="mine", version="2")
    with pytest.raises(ValueError, match="version is another"):
        leaps.load(tmp_path / "model", newer).sample(50)


def test_the_target_of_a_model_can_be_changed():
    run = SHIPPED.sample(100, intervals=20, size=10)
    assert run.states.shape == (100, 10, 10)
    run = leaps.free_energy("ising-8-critical", beta=[0.3, 0.4407], walkers=200, intervals=20)
    assert run.method == "network" and all(abs(point.log_z.z) < 5 for point in run)
    with pytest.raises(TypeError, match="belongs to train"):
        SHIPPED.sample(100, batch=3)


def moved(folder, name, at, by):
    """The model of a directory with one entry of one parameter changed, its checksums made anew."""
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    start, _ = json.loads(data[8 : 8 + length])[f"net.{name}"]["data_offsets"]
    place = 8 + length + start + 4 * at
    (value,) = struct.unpack("<f", data[place : place + 4])
    data[place : place + 4] = struct.pack("<f", value + by)
    other = folder.parent / f"{folder.name}-{by}"
    other.mkdir(exist_ok=True)
    (other / "model.safetensors").write_bytes(data)
    text = (folder / "model.json").read_text()
    sums = [blake3(contents).hexdigest() for contents in (file.read_bytes(), bytes(data))]
    head = text.replace(*sums).split('  "checksum": ')[0]
    seal = blake3(head.encode()).hexdigest()
    (other / "model.json").write_text(f'{head}  "checksum": "{seal}"\n}}\n')
    return leaps.load(other)


def test_gradients_are_slopes(tmp_path):
    """Against differences of outputs, computed from model files with other parameters."""
    SHIPPED.save(tmp_path / "model")
    random = np.random.default_rng(3)
    x = random.integers(0, 2, size=(4, 8, 8)).astype(np.uint8)
    t = np.array([0.2, 0.5, 0.8, 0.9])
    d_out = random.normal(size=(4, 8, 8))
    gradient, step = SHIPPED.gradient(x, t, d_out), 1e-2
    for name, part in gradient.items():
        # The largest entry, so that roundings of single precision are small beside it.
        at = int(np.abs(part).argmax())
        ends = [np.sum(d_out * moved(tmp_path / "model", name, at, by).forward(x, t)) for by in (-step, step)]
        slope = (ends[1] - ends[0]) / (2 * step)
        assert part.reshape(-1)[at] == pytest.approx(slope, rel=0.02, abs=1e-3), name


def test_outputs_do_not_depend_on_the_value_in_place_and_gradients_are_linear():
    random = np.random.default_rng(1)
    x = random.integers(0, 2, size=(3, 8, 8)).astype(np.uint8)
    t = np.array([0.2, 0.5, 0.9])
    out = SHIPPED.forward(x, t)
    flipped = x.copy()
    flipped[:, 2, 3] ^= 1
    assert (SHIPPED.forward(flipped, t)[:, 2, 3] == out[:, 2, 3]).all()
    d_out = random.normal(size=out.shape)
    gradient = SHIPPED.gradient(x, t, d_out)
    assert all(part.shape == SHIPPED.parameters()[name].shape for name, part in gradient.items())
    # The gradient is linear in d_out.
    twice = SHIPPED.gradient(x, t, 2 * d_out)
    assert all(np.allclose(2 * part, twice[name], rtol=1e-4, atol=1e-5) for name, part in gradient.items())
    assert any(np.abs(part).max() > 0 for part in gradient.values())


def test_rates_belong_to_the_potential():
    random = np.random.default_rng(2)
    x = random.integers(0, 2, size=(4, 8, 8)).astype(np.uint8)
    found = SHIPPED.rates(x, 0.6)
    target = SHIPPED.target
    energies = target.energy(x)
    assert np.allclose(found["U"], 0.6 * target.beta * energies)
    assert np.allclose(found["dU_dt"], target.beta * energies)
    flipped = x.copy()
    flipped[:, 0, 5] ^= 1
    change = 0.6 * target.beta * (target.energy(flipped) - energies)
    assert np.allclose(found["delta_U"][:, 0, 5], change)
    # Detailed in the time reversal: the flux changes its sign with the move.
    assert np.allclose(SHIPPED.rates(flipped, 0.6)["G"][:, 0, 5], -found["G"][:, 0, 5])
    k = (found["out_rates"] - found["back_rates"]).sum(axis=(1, 2)) - found["dU_dt"]
    assert np.allclose(found["K"], k)
    with pytest.raises(ValueError, match="times along the path"):
        SHIPPED.rates(x, 1.5)


def test_potts_networks_have_an_axis_of_values():
    model = leaps.load("potts3-15-critical")
    x = np.zeros((2, 15, 15), dtype=np.uint8)
    assert model.rates(x, 0.5)["out_rates"].shape == (2, 3, 15, 15)
    assert model.forward(x, 0.5).shape == (2, 15, 15, 3)


def test_names_that_nobody_has():
    with pytest.raises(ValueError, match="did you mean ising-8-critical"):
        leaps.load("ising-8-critica")
    assert leaps.models() == sorted(leaps.models())
