"""Memory and the GIL."""

import threading

import leaps
import numpy as np


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


def test_other_threads_go_on_during_a_job():
    """A thread counts while the main thread is inside one call; the job ends only when the thread has counted."""
    counted = 0
    inside = threading.Event()
    enough = threading.Event()

    def count():
        nonlocal counted
        inside.wait()
        while counted < 1000:
            counted += 1
        enough.set()

    class Enough(Exception):
        pass

    def progress(*_):
        # Called by the job's own waiting thread: the job has begun.
        inside.set()
        if enough.is_set():
            raise Enough

    thread = threading.Thread(target=count)
    thread.start()
    try:
        # It would take hours.
        leaps.ais(leaps.Ising(size=32), walkers=20000, intervals=100000, progress=progress)
    except Enough:
        pass
    thread.join()
    assert counted == 1000
