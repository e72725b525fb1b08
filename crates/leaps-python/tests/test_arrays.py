"""Memory and the GIL."""

import threading
import time

import leaps
import numpy as np
import pytest


def owner(array):
    """What owns the memory of an array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array if array.base is None else array.base


def test_states_are_the_memory_of_the_library():
    run = leaps.ais(leaps.Ising(size=4), walkers=100)
    for array in (run.states, run.log_weights, run.energies):
        assert not array.flags.owndata and array.flags.c_contiguous and array.flags.writeable
        # Not NumPy's memory but that of a vector, which its owner frees.
        assert not isinstance(owner(array), np.ndarray)
    assert run.states is run.states or np.shares_memory(run.states, run.states)
    assert run.states.dtype == np.uint8 and run.log_weights.dtype == np.float64
    states = run.states
    expected = states.copy()
    del run
    leaps.ais(leaps.Ising(size=4), walkers=100, seed=2)
    assert (states == expected).all()


def test_states_that_fit_are_not_copied():
    from leaps._targets import flattened

    problem = leaps.Ising(size=4)._problem
    x = np.zeros((10, 4, 4), dtype=np.uint8)
    assert np.shares_memory(flattened(problem, x)[0], x)


@pytest.mark.parametrize("name", ["ais", "exact", "energy", "forward", "train"])
def test_other_threads_go_on_during_a_call(name):
    """A thread that counts every few milliseconds counts while one call lasts: nobody calls back into Python."""
    model = leaps.load("ising-8-critical")
    x = np.zeros((4000, 8, 8), dtype=np.uint8)
    one = np.zeros((200_000, 32, 32), dtype=np.uint8)
    work = {
        "ais": lambda n: leaps.ais(leaps.Ising(size=16), walkers=2000, intervals=20 * n, progress=False),
        "exact": lambda n: leaps.exact(leaps.Ising(size=4, field=0.1), samples=20_000 * n, progress=False),
        "energy": lambda n: leaps.Ising(size=32).energy(one[: 2000 * n]),
        "forward": lambda n: model.forward(x[: 100 * n], 0.5),
        "train": lambda n: leaps.train(leaps.Ising(size=8), steps=n, batch=32, progress=False),
    }[name]
    ticks = []
    ended = threading.Event()

    def count():
        while not ended.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=count)
    thread.start()
    try:
        n, seconds = 1, 0.0
        # Long enough for many ticks, however fast the machine is.
        while seconds < 0.5 and n < 100:
            begin = time.monotonic()
            work(n)
            end = time.monotonic()
            seconds, n = end - begin, 2 * n
    finally:
        ended.set()
        thread.join()
    # Right at both ends the other thread has its turn in any case; a machine that is busy lets few through.
    inside = [tick for tick in ticks if begin + 0.1 * seconds < tick < end - 0.1 * seconds]
    assert len(inside) >= 3, (len(inside), seconds)
