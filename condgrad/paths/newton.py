"""Newton steps on the support: for working sets too large for a Gram matrix.

With the signs s of the support S fixed, its minimiser solves G_SS d = correlation - alpha s. Conjugate gradients do,
preconditioned by :mod:`~condgrad.paths.clusters`; they meet the data through products alone.
"""

from __future__ import annotations

import numpy as np

from condgrad.linalg.conjugate_gradients import Flatness, ThreadedGradients
from condgrad.paths.clusters import Factors
from condgrad.paths.working_set import Atoms, WorkingSet

_FLAT = 1e-6  # share of the curvature of single coefficients below which a direction has no minimum
_LOST = 1e-11  # the same share, for what rounding may have put there


def solve_kkt(
    working: WorkingSet, places: np.ndarray, blocks: Factors, b: np.ndarray, goal: float, most: int
) -> np.ndarray:
    """Return d with max |(G + l2 I) d - b| <= goal for the Gram matrix of some atoms, or what ``most`` products do."""
    products, gradients = _GramProducts(working, places), ThreadedGradients(b)
    flatness = Flatness(products.atoms.squared_norms(), working.objective.l2, _FLAT, _LOST)
    gradients.solve(products, blocks, flatness, goal, most)
    return gradients.x


def gram_product(working: WorkingSet, places: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return (G + l2 I) v for the Gram matrix G of some atoms."""
    out = np.empty(v.size)
    _GramProducts(working, places).apply(v, out)
    return out


class _GramProducts:
    """Products with G + l2 I for the Gram matrix G of some atoms of a working set, on all cores."""

    def __init__(self, working: WorkingSet, places: np.ndarray) -> None:
        self.quadratic = working.objective
        self.atoms = Atoms(working.atoms.columns, working.atoms.features[places])

    def apply(self, v: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` with (G + l2 I) v."""
        q = self.atoms.predict(v)
        self.atoms.correlate(q, self.quadratic.weigh(q), v, -self.quadratic.l2, out)
