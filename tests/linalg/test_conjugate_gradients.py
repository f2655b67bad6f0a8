"""Conjugate gradients: in a kernel and from Python the same method, against a direct solution."""

from typing import NamedTuple

import numpy as np
import pytest

from condgrad.compiled import compiled, kernel
from condgrad.linalg.conjugate_gradients import ConjugateGradients, Diagonal, Flatness, ThreadedGradients, vectors_for


@compiled
class Product(NamedTuple):
    """A matrix as an operator, for kernels and for Python."""

    A: np.ndarray

    def apply(self, v, out):
        for i in range(v.shape[0]):
            total = 0.0
            for j in range(v.shape[0]):
                total += self.A[i, j] * v[j]
            out[i] = total


@kernel
def solve_in_kernel(gradients, product, preconditioner, flatness, goal, most):
    gradients.begin()
    gradients.solve(product, preconditioner, flatness, goal, most)


def system(size, rank, seed=0):
    rng = np.random.default_rng(seed)
    Q = rng.standard_normal((rank, size)) * rng.uniform(0.1, 10.0, size)
    return Q.T @ Q, rng.standard_normal(size)


def in_kernel(A, b, flatness, goal, most):
    gradients = vectors_for(b.size)
    gradients.rest[:] = b
    solve_in_kernel(gradients, Product(A), Diagonal(1.0 / np.diag(A)), flatness, goal, most)
    assert isinstance(gradients, ConjugateGradients)
    return gradients.x


def in_python(A, b, flatness, goal, most):
    gradients = ThreadedGradients(b)
    gradients.solve(Product(A), Diagonal(1.0 / np.diag(A)), flatness, goal, most)
    return gradients.x


@pytest.mark.parametrize("way", [in_kernel, in_python])
def test_solves(way):
    A, b = system(12, 30)
    x = way(A, b, Flatness(np.diag(A)), 1e-9, 200)
    assert np.abs(b - A @ x).max() <= 1e-9
    few = way(A, b, Flatness(np.diag(A)), 1e-9, 3)
    assert 0.5 * few @ A @ few - b @ few < 0.0
    assert np.abs(b - A @ few).max() > 1e-9
    np.testing.assert_array_equal(way(A, 0.0 * b, Flatness(np.diag(A)), 0.0, 10), 0.0)


def test_both_ways_take_the_same_steps():
    A, b = system(15, 40, seed=1)
    for most in (1, 2, 5):
        found = [way(A, b, Flatness(np.diag(A)), 0.0, most) for way in (in_kernel, in_python)]
        np.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.parametrize("way", [in_kernel, in_python])
def test_ends_where_rounding_is_all_that_is_left(way):
    A, b = system(5, 20, seed=2)
    x = way(A, b, Flatness(np.diag(A)), 0.0, 10_000)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-10)


@pytest.mark.parametrize("way", [in_kernel, in_python])
def test_flat_directions_end_it(way):
    A, b = system(10, 4, seed=3)  # no solution: b has a part on which A is zero
    x = way(A, b, Flatness(np.diag(A), 0.0, 1e-6, 1e-11), 1e-12, 1000)
    assert np.isfinite(x).all()
    assert np.abs(x).max() < 1e8
    ridge = 1e-3
    x = way(A + ridge * np.eye(10), b, Flatness(np.diag(A), ridge, 1e-6, 1e-11), 1e-9, 1000)
    np.testing.assert_allclose(x, np.linalg.solve(A + ridge * np.eye(10), b), rtol=1e-5)
