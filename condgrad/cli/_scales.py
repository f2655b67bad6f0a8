"""--standardize: features are divided by their standard deviations for the fit, and coefficients come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

if TYPE_CHECKING:
    import argparse

_CONSTANT = 1e-12  # deviation over size, below which a feature is constant up to rounding


class Scales:
    """The factors by which the features of some samples are multiplied; 1 for all without --standardize.

    They are one over the standard deviations, or without an intercept over the root mean squares, as in
    :func:`condgrad.lasso_path`. Features are not centred, so that sparse data stay sparse: an intercept does as much. A
    constant feature gets the factor 0: an intercept does all that it can do.
    """

    def __init__(self, args: argparse.Namespace, X: Any, weight: np.ndarray | None) -> None:
        self._factors: np.ndarray | None = None
        if not args.standardize:
            return
        if not (isinstance(X, np.ndarray) or scipy.sparse.issparse(X)):
            raise ValueError("--standardize is for data in memory; divide the columns before you convert them.")
        share = np.full(X.shape[0], 1.0 / X.shape[0]) if weight is None else weight / weight.sum()
        mean = np.asarray(share @ X).ravel()
        size = np.sqrt(np.asarray(share @ (X.multiply(X) if scipy.sparse.issparse(X) else X**2)).ravel())
        spread = np.sqrt(self._variances(X, share, mean, size)) if args.intercept else size
        is_constant = ~(spread > _CONSTANT * size)
        self._factors = np.where(is_constant, 0.0, 1.0 / np.where(is_constant, 1.0, spread))

    @staticmethod
    def _variances(X: Any, share: np.ndarray, mean: np.ndarray, size: np.ndarray) -> np.ndarray:
        if not scipy.sparse.issparse(X):
            return share @ (X - mean) ** 2
        # Entries that are not stored are zero, and differ from the mean by the mean.
        X = X.tocsc()
        columns, rows = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr)), X.indices
        stored = np.bincount(columns, share[rows], X.shape[1])
        squares = np.bincount(columns, share[rows] * (X.data - mean[columns]) ** 2, X.shape[1])
        return squares + np.maximum(0.0, 1.0 - stored) * mean**2

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
