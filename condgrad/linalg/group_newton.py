"""Newton steps of a quadratic with a norm of groups: the systems on a support, and how far they lead.

On the support S the norm has the gradient nu, and the Hessian D that is (I - uu') / ||x_g|| for a group of the
direction u. The systems with H_SS + alpha D are solved by conjugate gradients, which the blocks of single groups
precondition: a factor of the whole matrix costs as much as many products, and takes over where these do not suffice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from condgrad.compiled import compiled, kernel
from condgrad.linalg.conjugate_gradients import ConjugateGradients, Flatness
from condgrad.linalg.group_norm import GroupNorm

_RIDGE = 1e-12  # share of each curvature that is added to it, so that dependent columns have a factor
_MORE = 1e3  # factor of the next ridge where there is no factor yet
_MOST_RIDGES = 4  # ridges that are tried
_FINEST, _ROUGHEST = 0.01, 0.3  # shares of the right-hand side that conjugate gradients may leave
_FEW, _SHARE = 10, 0.06  # most products with a matrix of k rows: the time of a factor, as far as it is worth it


class NewtonStep(NamedTuple):
    """Steps on the support: towards the minimiser for the present alpha, and per unit by which alpha falls."""

    places: np.ndarray
    ahead: np.ndarray
    outward: np.ndarray
    along: float  # by how much ``ahead`` makes the norm larger
    slope: float  # and ``outward``


def newton_step(
    norm: GroupNorm,
    offsets: np.ndarray,
    H: np.ndarray,
    x: np.ndarray,
    correlation: np.ndarray,
    alpha: float,
    damping: float,
    share: float,
    is_for_both: bool,
) -> NewtonStep | None:
    """Return the steps from x, with these correlations and the penalty alpha; None where there are none.

    ``share`` of the error may be left, and the step of alpha is left out, as zeros, unless ``is_for_both``.
    """
    places = np.flatnonzero(x)
    if places.size == 0:
        return None
    M, sides = np.empty((places.size, places.size)), np.empty((2, places.size))
    starts = _assemble(norm, offsets, H, x, correlation, alpha, places, M, sides)
    M.flat[:: places.size + 1] += damping * H.diagonal()[places]
    accuracy = min(max(share, _FINEST), _ROUGHEST)
    steps = _solve(M, starts, sides if is_for_both else sides[:1], _FEW + int(_SHARE * places.size), accuracy)
    if steps is None:
        return None
    ahead, outward = steps[0], steps[1] if is_for_both else np.zeros(places.size)
    return NewtonStep(places, ahead, outward, float(sides[1] @ ahead), float(sides[1] @ outward))


def _solve(M: np.ndarray, starts: np.ndarray, sides: np.ndarray, most: int, accuracy: float) -> np.ndarray | None:
    """Return the solutions for the right-hand sides."""
    ridge = _RIDGE * M.diagonal()
    M.flat[:: M.shape[0] + 1] += ridge
    steps = np.empty_like(sides)
    if _by_products(M, starts, sides, most, accuracy, steps):
        return steps
    for _ in range(_MOST_RIDGES):
        _, found, info = lapack.dposv(M, sides.T, lower=1)
        if info == 0:
            return np.ascontiguousarray(found.T)
        M.flat[:: M.shape[0] + 1] += _MORE * ridge
        ridge *= _MORE
    return None


@compiled
class _Matrix(NamedTuple):
    """A symmetric matrix, known by its products."""

    values: np.ndarray

    def apply(self, v, out):
        """Fill ``out`` with the product."""
        size = np.uint64(v.shape[0])
        for k in range(size):
            out[k] = 0.0
        for k in range(size):
            value = v[k]
            for j in range(size):
                out[j] += self.values[k, j] * value


@compiled
class _Blocks(NamedTuple):
    """The Cholesky factors of the blocks of groups: block g is the range from starts[g] to starts[g + 1]."""

    starts: np.ndarray
    L: np.ndarray  # row k holds the row of its block, from its first column on

    def solve(self, v, out):
        """Fill ``out`` with the solution for every block."""
        for g in range(self.starts.shape[0] - 1):
            first, last = self.starts[g], self.starts[g + 1]
            for a in range(first, last):
                total = v[a]
                for b in range(first, a):
                    total -= self.L[a, b - first] * out[b]
                out[a] = total / self.L[a, a - first]
            for k in range(last - first):
                a = last - 1 - k
                total = out[a]
                for b in range(a + 1, last):
                    total -= self.L[b, a - first] * out[b]
                out[a] = total / self.L[a, a - first]


@kernel
def _by_products(M, starts, sides, most, accuracy, out):
    """Solve with all right-hand sides by conjugate gradients; return whether that was accurate enough."""
    size, width = M.shape[0], 1
    for g in range(starts.shape[0] - 1):
        width = max(width, starts[g + 1] - starts[g])
    L = np.empty((size, width))
    for g in range(starts.shape[0] - 1):
        first = starts[g]
        for a in range(first, starts[g + 1]):
            for b in range(first, a + 1):
                total = M[a, b]
                for k in range(b - first):
                    total -= L[a, k] * L[b, k]
                if a == b and not total > 0.0:
                    return False
                L[a, b - first] = np.sqrt(total) if a == b else total / L[b, b - first]
    blocks, matrix, flatness = _Blocks(starts, L), _Matrix(M), Flatness(L[0], 0.0, 0.0, 0.0)
    for side in range(sides.shape[0]):
        vectors = ConjugateGradients(out[side], np.empty(size), np.empty(size), np.empty(size), np.empty(size))
        largest = 0.0
        for k in range(size):
            vectors.rest[k] = sides[side, k]
            largest = max(largest, abs(sides[side, k]))
        vectors.begin()
        vectors.solve(matrix, blocks, flatness, accuracy * largest, most)
        if not vectors.largest_rest() <= accuracy * largest:
            return False
    return True


@kernel
def _assemble(norm, offsets, H, x, correlation, alpha, places, M, sides):
    """Fill in H + alpha D on the places, the slopes and the gradient of the norm; return where the groups begin."""
    size = np.uint64(places.shape[0])
    for p in range(size):
        j = np.uint64(places[p])
        for q in range(size):
            M[p, q] = H[j, np.uint64(places[q])]
    starts = np.empty(places.shape[0] + 1, np.int64)
    n_groups, g, p = 0, 0, 0
    while p < places.shape[0]:
        while places[p] >= offsets[g + 1]:
            g += 1
        starts[n_groups] = p
        stop, squares = p, 0.0
        while stop < places.shape[0] and places[stop] < offsets[g + 1]:
            squares += x[places[stop]] ** 2
            stop += 1
        length = np.sqrt(squares)
        for a in range(p, stop):
            value = x[places[a]]
            normal = value / length + (norm.l1_weight if value > 0.0 else -norm.l1_weight)
            sides[0, a], sides[1, a] = correlation[places[a]] - alpha * normal, normal
            M[a, a] += alpha / length
            for b in range(p, stop):
                M[a, b] -= alpha / length * (value / length) * (x[places[b]] / length)
        n_groups, p = n_groups + 1, stop
    starts[n_groups] = p
    return starts[: n_groups + 1]


@kernel
def move(norm, offsets, x, places, change):
    """Add the change to x; an entry with a price of its own, or a group, that would pass zero becomes zero."""
    has_signs = norm.l1_weight > 0.0 or norm.is_nonnegative
    g, p = 0, 0
    while p < places.shape[0]:
        while places[p] >= offsets[g + 1]:
            g += 1
        stop, ahead = p, 0.0
        while stop < places.shape[0] and places[stop] < offsets[g + 1]:
            ahead += x[places[stop]] * (x[places[stop]] + change[stop])
            stop += 1
        for a in range(p, stop):
            k = places[a]
            value = x[k] + change[a]
            x[k] = 0.0 if ahead <= 0.0 or (has_signs and value * x[k] <= 0.0) else value
        p = stop


@kernel
def first_zero(norm, offsets, x, places, change):
    """Return the share of the change, at most 1, up to which no group and no such entry passes zero."""
    has_signs = norm.l1_weight > 0.0 or norm.is_nonnegative
    share, g, p = 1.0, 0, 0
    while p < places.shape[0]:
        while places[p] >= offsets[g + 1]:
            g += 1
        stop, squares, along = p, 0.0, 0.0
        while stop < places.shape[0] and places[stop] < offsets[g + 1]:
            value = x[places[stop]]
            squares += value * value
            along += value * change[stop]
            if has_signs and value * change[stop] < 0.0:
                share = min(share, -value / change[stop])
            stop += 1
        if along < 0.0:
            share = min(share, -squares / along)
        p = stop
    return share
