"""--standardize: features are divided by their standard deviations for the fit, and coefficients come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from condgrad.linalg.coded_matrix import matrix_of
from condgrad.paths.scales import deviations

if TYPE_CHECKING:
    import argparse


class Scales:
    """The factors by which the features of some samples are multiplied; 1 for all without --standardize.

    They are one over the standard deviations, or without an intercept over the root mean squares, as in
    :func:`condgrad.lasso_path`. Features are not centred, so that sparse data stay sparse: an intercept does as much.
    """

    def __init__(self, args: argparse.Namespace, X: Any, weight: np.ndarray | None) -> None:
        self._factors: np.ndarray | None = None
        if not args.standardize:
            return
        if not (isinstance(X, np.ndarray) or scipy.sparse.issparse(X)):
            raise ValueError("--standardize is for data in memory; divide the columns before you convert them.")
        share = np.full(X.shape[0], 1.0 / X.shape[0]) if weight is None else weight / weight.sum()
        self._factors = 1.0 / deviations(matrix_of(X), share, args.intercept)

    def scaled(self, X: Any) -> Any:
        """Return the samples for the fit."""
        if self._factors is None:
            return X
        return (
            (X @ scipy.sparse.diags(self._factors)).asformat(X.format)
            if scipy.sparse.issparse(X)
            else X * self._factors
        )

    def coefficients(self, w: Any) -> Any:
        """Return coefficients in the units of the data: a vector, or a sparse matrix with one column for each point."""
        if self._factors is None:
            return w
        return (
            (scipy.sparse.diags(self._factors) @ w).asformat(w.format)
            if scipy.sparse.issparse(w)
            else self._factors * w
        )
