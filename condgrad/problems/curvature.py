"""The curvature sum_i t_i x_i x_i' of a Taylor model: stored as a d x d array, or left as products with X."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.slices import Slices


@compiled
class StoredCurvature(NamedTuple):
    """H as an array; renewing sample i costs nnz(x_i)^2 operations, a product with an atom costs d."""

    H: np.ndarray

    def renew(self, X, i, change):
        """Add ``change`` to t_i."""
        X.add_outer(i, change, self.H)

    def add_product(self, s, c, out):
        """Add c H s to the vector ``out``."""
        s.add_image(self.H, c, out)


@compiled
class ImplicitCurvature(NamedTuple):
    """H s = X' (t * X s), without storing H: a product with an atom costs one read of the rows that its column hits."""

    rows: Slices
    columns: Slices
    t: np.ndarray

    def renew(self, X, i, change):
        """Do nothing: products use t itself."""

    def add_product(self, s, c, out):
        """Add c H s to the vector ``out``."""
        s.add_weighted_rows(self.rows, self.columns, self.t, c, out)
