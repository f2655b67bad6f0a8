"""What holds for every test.

Randomness: a test draws from its own `numpy.random.default_rng(seed)` with the seed written in the test, or lets
hypothesis draw. No test reads or sets numpy's global state, so that tests give the same result in any order and on
any worker.

Kernels: they are compiled and cached on disk as in any program, in the place that `NUMBA_CACHE_DIR` names where it is
set. `NUMBA_DISABLE_JIT=1` runs the whole suite interpreted.

Tiers: a test without a mark runs everywhere; ``slow`` ones are left out by `make test-quick`, ``campaign`` ones run in
`make test-all` alone. tests/covering.py marks the cases of large products.
"""

import os
import signal

import pytest
from hypothesis import settings

# Tests that start a new Python would otherwise compile the bytecode of all that they import, each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# One thread for BLAS, where nothing else is asked for. The tests run in as many processes as there are cores, and a
# thread that waits for a core which others hold can make a test ten times slower. Before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No deadline: the first example of a test may compile a kernel.
settings.register_profile("condgrad", deadline=None)
settings.register_profile("condgrad-ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("condgrad-ci" if os.environ.get("CI") else "condgrad")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard():
    """Tests press Ctrl-C, also where the process that runs them was started to ignore it (``nohup``, ``&``)."""
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if is_ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    if is_ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
