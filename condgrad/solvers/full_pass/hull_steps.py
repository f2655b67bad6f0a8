"""A quadratic on the hull of some vertices: exactly over an l1 ball, by pairwise steps over any hull."""

from __future__ import annotations

import time

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.gram_minimiser import SOLVED, solve_model
from condgrad.linalg.gram_model import model_at

_MOST_CHANGES = 20  # changes of the support for each atom after which the exact solver gives up, besides 1000
_WORK = 2e8  # multiply-adds of the exact solver between two checks of the deadline


def minimise_in_ball(x: np.ndarray, g: np.ndarray, H: np.ndarray, goal: float, deadline: float) -> np.ndarray:
    """Return a minimiser of <g, z - x> + (z - x)'H(z - x)/2 over sum |z| <= 1, with a gap at most ``goal``.

    The support changes by one atom at a time, and a factor of H there gives the minimiser on it: O(k^2) for k atoms. If
    atoms depend on each other, the support is a part of them that does not. It stops where it is at ``deadline``, or
    after many changes.
    """
    model, left = model_at(x, g, H), 1000 + _MOST_CHANGES * x.size
    while left > 0 and time.perf_counter() < deadline:
        n_changes = min(left, 1 + int(_WORK / max(1, x.size * x.size)))
        status, *_ = solve_model(model, 0.0, False, 1.0, goal, n_changes)
        if status == SOLVED:
            break
        left -= n_changes
    z = model.x
    total = np.abs(z).sum()
    return z if total <= 1.0 else z / total


@kernel
def pairwise_steps(g, H, x, is_symmetric, has_origin, goal, max_steps):
    """Make pairwise steps on the weights x until the gap is at most ``goal``; return whether it was reached.

    ``g`` are the slopes of the vertices at x, which follow the steps, and ``H`` is the curvature on them. If the hull
    ``is_symmetric``, weights may be negative; if it ``has_origin``, their absolute values may sum to less than one.
    """
    slack = 1.0  # computed anew in each call: a running sum of weights would accumulate rounding errors
    for k in range(x.shape[0]):
        slack -= abs(x[k])
    for _ in range(max_steps):
        # The best atom s gains weight, and the worst atom v loses it; -1 stands for the origin.
        best, s, worst, v, along = np.inf, -1, -np.inf, -1, 0.0
        for k in range(x.shape[0]):
            along += g[k] * x[k]
            value = -abs(g[k]) if is_symmetric else g[k]
            if value < best:
                best, s = value, k
            if x[k] != 0.0:
                value = g[k] if x[k] > 0.0 else -g[k]
                if value > worst:
                    worst, v = value, k
        if has_origin and best > 0.0:
            best, s = 0.0, -1
        if has_origin and slack > 1e-15 and worst < 0.0:
            worst, v = 0.0, -1
        gap = along - best
        # d moves weight from v to s, each with its sign (for example from v to -v); the origin has no entries.
        sign_s = 1.0 if s < 0 or g[s] <= 0.0 or not is_symmetric else -1.0
        sign_v = 1.0 if v < 0 or x[v] > 0.0 else -1.0
        if gap <= goal or (s == v and sign_s == sign_v):
            return True
        curvature, limit = 0.0, slack
        if s >= 0:
            curvature += H[s, s]
        if v >= 0:
            curvature += H[v, v]
            limit = abs(x[v])
        if s >= 0 and v >= 0:
            curvature -= 2.0 * sign_s * sign_v * H[s, v]
        descent = worst - best
        gamma = limit if curvature * limit <= descent else descent / curvature
        if v >= 0:
            x[v] = 0.0 if gamma == limit else x[v] - gamma * sign_v
            for k in range(x.shape[0]):
                g[k] -= gamma * sign_v * H[v, k]
        else:
            slack -= gamma
        if s >= 0:
            if x[s] * sign_s < 0.0:  # weights on v_s and on -v_s cancel: both go back to the origin
                slack += 2.0 * min(abs(x[s]), gamma)
            x[s] += gamma * sign_s
            for k in range(x.shape[0]):
                g[k] += gamma * sign_s * H[s, k]
        else:
            slack += gamma
    return False
