"""Class probabilities ("chances"): the softmax of the scores, the best intercepts and the curvature of the loss.

Scores S and probabilities P have a row for each class and a column for each sample.
"""

from __future__ import annotations

import numpy as np

from condgrad.linalg import threads
from condgrad.linalg.device.arrays import beside, is_on_device, on_host

_BLOCK_ENTRIES = 32_768  # number of scores processed together: so many fit into the cache
_WORK_PER_SCORE = 10  # cost in multiply-adds: that of an exponential, about
_MOST_NEWTON_STEPS = 100
_LONGEST_STEP = 5.0  # largest change of an intercept: where all probabilities are near 0 or 1, Newton steps explode


def chances_of(S: np.ndarray, b: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the mean of log sum_c exp(s_c + b_c) - s_y - b_y, and P = exp(s_c + b_c) / sum_c exp(s_c + b_c).

    All cores work on it, each on one block of samples at a time. S may be on a device, as y and weight then are.
    """
    P, n = np.empty_like(S), S.shape[1]
    b = beside(b, S)
    if is_on_device(S):
        return _fill(S, b, y, weight, P), P
    width = max(1, _BLOCK_ENTRIES // S.shape[0])

    def fill(start: int, stop: int) -> float:
        value = 0.0
        for first in range(start, stop, width):
            part = slice(first, min(first + width, stop))
            value += _fill(S[:, part], b, y[part], weight[part], P[:, part])
        return value

    return sum(threads.run(fill, threads.cut(n, _WORK_PER_SCORE * S.size))), P


def _fill(S: np.ndarray, b: np.ndarray, y: np.ndarray, weight: np.ndarray, P: np.ndarray) -> float:
    """Set P to the probabilities, and return the weighted sum of the losses."""
    np.add(S, b[:, None], out=P)
    P -= P.max(axis=0)
    own = P[y, np.arange(P.shape[1], like=P)]
    np.exp(P, out=P)
    total = P.sum(axis=0)
    P /= total
    return float(weight @ (np.log(total) - own))


def best_chances(
    S: np.ndarray, y: np.ndarray, weight: np.ndarray, shares: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the mean loss, the probabilities, and the intercepts that minimise the loss and sum to zero.

    ``shares`` are the weights of the classes. The intercepts are found by Newton steps; adding a constant to all of
    them does not change the loss.
    """
    b = np.log(shares)  # optimal if all scores are equal
    value, P = chances_of(S, b, y, weight)
    last = np.inf
    for _ in range(_MOST_NEWTON_STEPS):
        step = _newton_step(P, weight, shares)
        size = float(np.abs(step).max())
        if size > _LONGEST_STEP:
            step, size = step * (_LONGEST_STEP / size), _LONGEST_STEP
        new_value, new_P = chances_of(S, b + step, y, weight)
        while new_value > value and size > 1e-6:  # far from the optimum a step may be too long
            step, size = 0.5 * step, 0.5 * size
            new_value, new_P = chances_of(S, b + step, y, weight)
        b, value, P = b + step, new_value, new_P
        # Near the optimum the length of a Newton step is of the order of the square of the last one. A short step that
        # is not shorter than the last one is rounding.
        if size <= 1e-14 or last <= size <= 1e-4:
            break
        last = size
    return value, P, b - b.mean()


def _newton_step(P: np.ndarray, weight: np.ndarray, shares: np.ndarray) -> np.ndarray:
    slopes = on_host(P @ weight) - shares
    most = int(shares.argmax())  # the difference of the largest class has lost the digits of the rare classes
    slopes[most] = 0.0
    slopes[most] = -slopes.sum()
    return -solve(bend_of(P, weight), slopes)


def traces_of(P: np.ndarray) -> np.ndarray:
    """Return 1 - sum_c p_c^2 for every sample: the trace of diag(p) - pp', the Hessian of its loss by its scores."""
    squares: np.ndarray = np.einsum("cn,cn->n", P, P)
    return 1.0 - squares


def bend_of(P: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return sum_i weight_i (diag(p_i) - p_i p_i')."""
    B: np.ndarray = on_host(-(weight * P) @ P.T)
    np.fill_diagonal(B, 0.0)
    B -= np.diag(B.sum(axis=1))  # rows sum to zero; this loses no digits of rare classes, as p - p^2 near 1 would
    return B


def solve(B: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the solution z of B z = right that sums to zero over the classes, as every column of ``right`` does.

    The null space of B is spanned by the vector of ones; adding a multiple of the matrix of ones makes B invertible.
    (A pseudo-inverse would have to guess from rounding errors which eigenvalue is zero.)
    """
    scale = max(float(np.trace(B)) / B.shape[0], 1e-300)
    return np.linalg.solve(B + scale * (1.0 + 1e-15 * np.eye(B.shape[0])), right)
