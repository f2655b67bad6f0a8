"""The nearest point of a convex hull, and the distance to a set that is known by its oracle alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

_MAX_STEPS = 300  # steps of ``distance_to``, with one call of the oracle each
_CLOSE = 1e-11  # distance relative to the size of the set, up to which a point counts as a point of the set
_TINY = np.finfo(float).tiny
_SURE = 1e-3  # relative error of a distance that is known to be positive


def nearest_weights(atoms: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the weights of the convex combination of the rows of ``atoms`` nearest to ``w``.

    With P = atoms - w, the non-negative least-squares problem min ||P'x||^2 + (sum x - 1)^2 is solved by a multiple
    of the wanted weights: over x = t lambda the best t gives D / (1 + D) with D = ||P'lambda||^2, increasing in D.
    """
    from scipy.linalg import LinAlgWarning
    from scipy.optimize import nnls

    P = atoms - w
    size = np.abs(P).max()
    if size == 0.0:
        return np.full(len(atoms), 1.0 / len(atoms))
    system = np.vstack([P.T / size, np.ones(len(atoms))])
    target = np.zeros(len(system))
    target[-1] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # some versions warn of linearly dependent atoms
        x = nnls(system, target)[0]
    return x / x.sum()


def distance_to(
    oracle: Callable[[np.ndarray], np.ndarray],
    w: np.ndarray,
    direction: np.ndarray | None = None,
    max_steps: int = _MAX_STEPS,
) -> float:
    """Return a proven lower bound of the distance from ``w`` to the set, or 0 if no separating hyperplane was found.

    Fully corrective Frank-Wolfe seeks the nearest point x; every vertex s that minimises <x - w, s> proves the bound
    <x - w, s - w> / ||x - w||. For polytopes it ends at the distance, up to 0.1 %. The search stops after 300 calls of
    the oracle: so a point outside, within about 1e-5 of a round set, may be taken as inside, but never the reverse.
    It begins with the vertex along ``direction``, if there is one.
    """
    if not np.isfinite(w).all():
        return float("inf")
    return _search(oracle, w, direction, max_steps)[0]


def is_combination(oracle: Callable[[np.ndarray], np.ndarray], w: np.ndarray, max_steps: int) -> bool:
    """Return whether ``w`` is a combination of vertices that a short search finds; False: outside, or not found."""
    _, distance, size = _search(oracle, w, None, max_steps)
    return distance <= _CLOSE * size


def _search(
    oracle: Callable[[np.ndarray], np.ndarray], w: np.ndarray, direction: np.ndarray | None, max_steps: int
) -> tuple[float, float, float]:
    """Return a lower bound of the distance from ``w`` to the set, the distance to the hull of vertices, their size."""
    r = np.zeros(w.size) if direction is None else direction / max(np.abs(direction).max(), _TINY)
    atoms = [oracle(r)]
    bound = max(0.0, float(r @ (atoms[0] - w)) / max(float(np.linalg.norm(r)), _TINY))
    distance = float(np.linalg.norm(atoms[0] - w))
    for _ in range(max_steps):
        weights = nearest_weights(np.array(atoms), w)
        x = weights @ np.array(atoms)
        distance = float(np.linalg.norm(x - w))
        if distance <= _CLOSE * np.abs(atoms).max():
            break
        s = oracle(x - w)
        bound = max(bound, float((x - w) @ (s - w) / distance))
        if bound >= (1.0 - _SURE) * distance:
            break
        atoms = [a for a, weight in zip(atoms, weights) if weight > 0.0] + [s]
    return bound, distance, float(np.abs(atoms).max())
