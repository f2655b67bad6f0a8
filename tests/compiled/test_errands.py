"""Errands and borrowed arrays: kernels that call what was compiled apart from them, and what they leave behind."""

import gc
import os
import subprocess
import sys
import weakref
from typing import NamedTuple

import numpy as np
import pytest

from condgrad.compiled import Bound, borrowed, compiled, errands, kernel

compiled_only = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")


@compiled
class Inner(NamedTuple):
    factor: float
    values: np.ndarray

    def scaled(self, i):
        return self.factor * self.values[i]


@compiled
class Adding(NamedTuple):
    """Adds ``what`` times what its inner part holds."""

    inner: Inner
    is_double: bool
    out: np.ndarray

    def serve(self, what):
        for i in range(self.out.shape[0]):
            self.out[i] += (2.0 if self.is_double else 1.0) * what * self.inner.scaled(i)


@compiled
class Counting(NamedTuple):
    """A service of other types: the kernel that calls it must not care."""

    out: np.ndarray

    def serve(self, what):
        self.out[what] += 1


@kernel
def run_each(errand, count):
    for k in range(count):
        errand.run(k)


def test_an_errand_works_on_the_arrays_of_its_service():
    values, out = np.array([1.0, -2.0, 3.0]), np.zeros(3)
    bound = Bound(Adding(Inner(0.5, values), True, out))
    run_each(bound.errand, 4)
    np.testing.assert_array_equal(out, (0 + 1 + 2 + 3) * values)
    values[0] = 10.0  # the very array, not a copy
    run_each(bound.errand, 2)
    assert out[0] == 6.0 + 10.0


@compiled_only
def test_a_kernel_is_compiled_once_for_all_services():
    counts = np.zeros(3, np.int64)
    one, other = Bound(Adding(Inner(1.0, np.ones(2)), False, np.zeros(2))), Bound(Counting(counts))
    run_each(one.errand, 1)
    n_compiled = len(run_each.signatures)
    run_each(other.errand, 3)
    assert len(run_each.signatures) == n_compiled
    np.testing.assert_array_equal(counts, 1)


def test_a_bound_service_owns_its_arrays_and_leaves_nothing_behind():
    out = np.zeros(2)
    bound, alive = Bound(Counting(out.view())), weakref.ref(out)
    del out
    gc.collect()
    assert alive() is not None
    run_each(bound.errand, 2)
    np.testing.assert_array_equal(alive(), 1.0)
    del bound
    gc.collect()
    assert alive() is None and not errands._bound


@compiled_only
def test_a_service_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(errands, "_SPACE", 3)
    with pytest.raises(ValueError, match="take more than 3 numbers"):
        Bound(Adding(Inner(1.0, np.ones(2, np.float32)), False, np.zeros(2, np.float32)))


def test_errands_without_a_compiler():
    code = "import test_errands as t; t.test_an_errand_works_on_the_arrays_of_its_service()"
    environment = {
        **os.environ,
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join([*sys.path, os.path.dirname(__file__)]),
    }
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@kernel
def add_up(pair, count):
    """Read borrowed arrays, nested and alone, in calls of another kernel."""
    (first, second), total = borrowed(pair), 0.0
    for _ in range(count):
        total += read(first) + read(second.values)
    return total


@kernel
def read(values):
    return values[0]


def test_borrowed_arrays_are_the_same_and_stay_alive():
    first, second = np.array([1.0]), np.array([3.0])
    before = sys.getrefcount(first), sys.getrefcount(second)
    pair = (first, Inner(2.0, second))
    assert add_up(pair, 1000) == 4000.0
    del pair
    assert (sys.getrefcount(first), sys.getrefcount(second)) == before
    assert borrowed(first) is first  # in plain Python nothing is to be done
