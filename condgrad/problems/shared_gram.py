"""SharedGram: the curvature of a quadratic F of several outputs, all of which have the same Gram matrix."""

from __future__ import annotations

import numpy as np

from condgrad.linalg.matrix import Matrix
from condgrad.problems.active_set import AtomStack, Stack

_VERTICES = 20  # number of vertices whose scores (k rows each) cost about as much as G for _VERTICES * k features


class SharedGram:
    """G = X' diag(d) X, minus the term of free intercepts, on the features that were requested so far.

    The Hessian of F(W) = sum_c f_c(X w_c) is block diagonal with G for every output: <U, H V> = sum_c u_c' G v_c.

    Parameters
    ----------
    matrix : Matrix
    d : array of shape (n_samples,)
        The curvatures of the loss of each sample, times its weight.
    n_outputs : int
    has_intercept : bool
    """

    def __init__(self, matrix: Matrix, d: np.ndarray, n_outputs: int, has_intercept: bool) -> None:
        self.matrix, self.d, self.n_outputs = matrix, d, n_outputs
        self._features = np.empty(0, dtype=np.int64)
        self._place = np.full(matrix.shape[1], -1, dtype=np.int64)
        self._G = np.zeros((0, 0))
        total = float(d.sum())
        self._mixed = matrix.transpose_dot_each(d[None])[0] / np.sqrt(total) if has_intercept and total > 0.0 else None

    def serves(self, atoms: Stack) -> bool:
        """Return whether G is cheaper than scores: always for atoms; for dense vertices, if there are few features."""
        return isinstance(atoms, AtomStack) or self.matrix.shape[1] <= _VERTICES * self.n_outputs

    def on(self, features: np.ndarray) -> np.ndarray:
        """Return G for the chosen features; each entry is computed once and cached."""
        new = np.unique(features[self._place[features] < 0])
        if new.size > 0:
            self._extend(new)
        places = self._place[features]
        return self._G[np.ix_(places, places)]

    def _extend(self, new: np.ndarray) -> None:
        n_known = self._features.size
        features = np.concatenate((self._features, new))
        G = self.matrix.gram(features, np.ones(features.size), self.d, first=n_known)
        if self._mixed is not None:
            G -= np.outer(self._mixed[features], self._mixed[features])
        G[:n_known, :n_known] = self._G
        self._place[new] = np.arange(n_known, features.size)
        self._features, self._G = features, G

    def curvature_on(self, atoms: Stack, n_known: int) -> np.ndarray:
        """Return <v_k, H v_l> for all pairs; the entries [:n_known, :n_known] may be 0."""
        d = self.matrix.shape[1]
        if isinstance(atoms, AtomStack):
            of_output, column = np.divmod(atoms.index, d)
            single, at = np.unique(column, return_inverse=True)
            same = of_output[:, None] == of_output
            products: np.ndarray = self.on(single)[np.ix_(at, at)] * same * np.outer(atoms.value, atoms.value)
            return products
        m, k = len(atoms), self.n_outputs
        V = np.array([atoms.vertex(place).to_dense(k * d) for place in range(m)]).reshape(m, k * d)
        images = (V[n_known:].reshape(-1, d) @ self.on(np.arange(d))).reshape(m - n_known, k * d)
        H = np.zeros((m, m))
        H[n_known:] = images @ V.T
        H[:n_known, n_known:] = H[n_known:, :n_known].T
        return H
