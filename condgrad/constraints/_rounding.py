"""A posteriori bounds of the rounding errors of oracles, by sums in the widest floats of the machine.

On most machines these have at least 11 bits more than a float64. On others the bounds are wider, and still hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg.rounding import UNIT

WIDE_EPS = max(float(np.finfo(np.longdouble).eps), 2.0**-63)  # some double-doubles report less than they guarantee
_UNDERFLOW = 2.0**-1000  # bound of the error of one product by underflow
_SLACK = 1e-12  # relative amount by which a bound that need not be sharp is rounded up


def normalised(r: np.ndarray) -> tuple[np.ndarray, int]:
    """Return wide floats x and an integer k with r = 2^k x and a largest entry of |x| between 1/2 and 1."""
    largest = float(np.abs(r).max())
    exponent = math.frexp(largest)[1] if 0.0 < largest < math.inf else 0
    return np.ldexp(np.asarray(r, dtype=np.longdouble), -exponent), exponent


def times_power(x: float | np.floating, exponent: int) -> float:
    """Return 2^exponent x for x >= 0, rounded up; inf for nan, an unknown bound."""
    if math.isnan(x):
        return math.inf
    if x <= 0.0:
        return 0.0
    with np.errstate(over="ignore"):
        return float(np.nextafter(np.ldexp(np.nextafter(np.float64(x), np.inf), exponent), np.inf))


def inner_with_error(x: np.ndarray, s: Vertex) -> tuple[np.floating, np.floating]:
    """Return <x, s> for wide floats x and a vertex s, and a bound of its error."""
    indices, values = s.support()
    products = (x if indices is None else x[indices]) * values
    error = (products.size + 2) * WIDE_EPS * np.abs(products).sum() + _UNDERFLOW * np.abs(values).sum()
    return products.sum(), error


def shortfall(top: Callable[[np.ndarray], float | np.floating], r: np.ndarray, s: Vertex) -> float:
    """Return a bound of <r, s> - min <r, .> over a set.

    ``top`` takes wide floats x and returns the largest <-x, .> over the set, by a few operations on each entry: sums
    and products whose terms do not cancel, so that the relative error is known.
    """
    if not np.any(r):
        return 0.0
    x, exponent = normalised(r)
    value, error = inner_with_error(x, s)
    highest = cast("np.floating", top(x))
    return times_power(highest + abs(highest) * (4 * x.size + 64) * WIDE_EPS + value + error, exponent)


def norm(x: np.ndarray) -> np.floating:
    """Return ||x||_2 of wide floats."""
    return np.sqrt(np.square(x).sum())


def of_decomposition(radius: float, R: np.ndarray) -> float:
    """Return a bound of <R, s> - min <R, .> for a vertex s made of the best singular vectors or eigenvectors of R.

    LAPACK's decompositions are exact for a matrix within a modest multiple of max(m, n) roundings of R, relative to its
    Frobenius norm; 10 stands for that multiple, and for the arithmetic around it.
    """
    if not np.any(R):
        return 0.0
    x, exponent = normalised(R)
    return times_power(radius * 10.0 * (max(R.shape) + 4) * UNIT * norm(x), exponent)


def trusted(r: np.ndarray, s: Vertex, n_operations: int) -> float:
    """Return the error of <r, s> where each of its terms may be off by ``n_operations`` roundings."""
    if not np.any(r):
        return 0.0
    indices, values = s.support()
    x, exponent = normalised(r)
    sizes = np.abs((x if indices is None else x[indices]) * values)
    return times_power(2.0 * n_operations * UNIT * sizes.sum() + _UNDERFLOW * np.abs(values).sum(), exponent)


def rounded_up(x: float | np.floating, n_terms: int) -> float:
    """Return a float a little above the sum x >= 0 of ``n_terms`` terms."""
    return float(x) * (1.0 + _SLACK + 8.0 * n_terms * UNIT)
