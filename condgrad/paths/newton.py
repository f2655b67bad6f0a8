"""Newton steps on the support: for working sets too large for a Gram matrix.

With the signs s of the support S fixed, its minimiser solves G_SS d = correlation - alpha s. Conjugate gradients do,
preconditioned by :mod:`~condgrad.paths.clusters`; they meet the data through products alone.
"""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel
from condgrad.paths.clusters import Factors
from condgrad.paths.working_set import Atoms, WorkingSet

_MOST_PRODUCTS = 100
_FLAT = 1e-6  # directions that bend the objective less than this share of what single coefficients do have no minimum
_LOST = 1e-11  # the same for the share that rounding may have put there


def solve_kkt(working: WorkingSet, places: np.ndarray, blocks: Factors, b: np.ndarray, goal: float) -> np.ndarray:
    """Return d with max |(G + l2 I) d - b| <= goal for the Gram matrix of some atoms, or what many products lead to."""
    quadratic, l2 = working.quadratic, working.quadratic.l2
    atoms = Atoms(working.atoms.columns, working.atoms.features[places])
    columns, features = atoms.columns, atoms.features
    d, rest, z, out = np.zeros(b.size), b.copy(), np.empty(b.size), np.empty(b.size)
    direction, slope = np.zeros(b.size), 0.0
    for _ in range(_MOST_PRODUCTS):
        largest, slope = _turn(blocks, rest, slope, z, direction)
        if largest <= goal:
            break
        q = atoms.predict(direction)
        atoms.correlate(q, quadratic.weigh(q), direction, -l2, out)
        if not _step(columns, features, l2, d, rest, direction, out, slope):
            break
    return d


@kernel
def _turn(blocks, rest, slope, z, direction):
    """Make the next direction conjugate to the last; return the largest residual, and its slope along the direction."""
    blocks.solve(rest, z)
    largest, next_slope = 0.0, 0.0
    for s in range(rest.shape[0]):
        largest = max(largest, abs(rest[s]))
        next_slope += rest[s] * z[s]
    share = next_slope / slope if slope > 0.0 else 0.0
    for s in range(rest.shape[0]):
        direction[s] = z[s] + share * direction[s]
    return largest, next_slope


@kernel
def _step(columns, features, l2, d, rest, direction, out, slope):
    """Go to the minimum along the direction; return whether there is one."""
    curvature, size, ridge = 0.0, 0.0, 0.0
    for s in range(rest.shape[0]):
        curvature += direction[s] * out[s]
        size += (columns.norm[features[s]] * direction[s]) ** 2
        ridge += l2 * direction[s] ** 2
    # l2 bends every direction; where that is above rounding there is a minimum, however flat.
    if not (curvature > _FLAT * size or curvature > 0.5 * ridge > _LOST * size):
        return False
    step = slope / curvature
    for s in range(rest.shape[0]):
        d[s] += step * direction[s]
        rest[s] -= step * out[s]
    return True
