"""Dense columns of a working set side by side, so that its Gram matrix grows by single products.

:class:`PackedColumns` are for curvatures that stay, :class:`RoughColumns` for those that change, in single precision.
"""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.few_products import are_few, fill_products
from condgrad.linalg.vectors import DenseVector
from condgrad.paths.columns import Columns
from condgrad.paths.working_set import Atoms

_MOST_ENTRIES = 2e7  # entries up to which columns are copied: 160 MB
_BLOCK = 1_000_000  # entries that are multiplied by curvatures at a time
_LEAST = 1e-30  # least sum of squares that single precision can hold with all its digits
_MOST = 1e30  # the largest such sum
_RIDGE = 1e-6  # error of products in single precision, relative to the diagonal, which makes up for it


class PackedColumns:
    """The columns of a working set, centred if there is an intercept, times the roots of fixed curvatures.

    Parameters
    ----------
    columns : Columns
    h : array
        The curvatures of the samples, multiples of the weights of which the means of columns are made.
    """

    def __init__(self, columns: Columns, h: np.ndarray) -> None:
        self.columns, self._root = columns, np.sqrt(h)
        self._memory = np.empty((0, h.size))

    def has_room(self, size: int) -> bool:
        """Return whether so many columns may be copied."""
        return size * self._root.size <= _MOST_ENTRIES

    def fill(self, G: np.ndarray, features: np.ndarray, first: int) -> None:
        """Take in the features from ``first`` on, and compute the rows and columns of G that belong to them."""
        if features.size > len(self._memory):
            memory = np.empty((max(features.size, 2 * len(self._memory)), self._root.size))
            memory[:first] = self._memory[:first]
            self._memory = memory
        _pack(self.columns, features[first:], self._root, self._memory[first : features.size])
        np.matmul(self._memory[first : features.size], self._memory[: features.size].T, out=G[first:])
        G[:first, first:] = G[first:, :first].T

    def keep(self, places: np.ndarray) -> None:
        """Keep the columns at these places alone."""
        self._memory = self._memory[places]


class RoughColumns:
    """The columns of a working set in single precision.

    It follows the working set by itself: new atoms are appended, and where others have gone all are taken anew.

    Parameters
    ----------
    n_samples, n_features : int
        The shape of the data.
    """

    def __init__(self, n_samples: int, n_features: int) -> None:
        self._n_samples, self._n_features = n_samples, n_features
        self._features, self._memory = np.empty(0, np.int64), np.empty((0, n_samples), np.float32)

    def has_room(self, size: int) -> bool:
        """Return whether so many columns may be copied."""
        return size * self._n_samples <= _MOST_ENTRIES

    def fill(self, G: np.ndarray, atoms: Atoms, features: np.ndarray, h: np.ndarray, first: int) -> bool:
        """Compute the rows and columns of G = Z' diag(h) Z, h >= 0, that belong to the atoms from ``first`` on.

        ``features`` tells one atom from another; their entries are those of ``atoms``, in the same order. Return False
        where sums of squares are too large or too small for single precision.
        """
        size = features.size
        self._follow(atoms, features)
        if are_few(size - first):
            fill_products(self._memory[:size], h, first, G)
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # the test of the squares finds them
                H = self._products(h.astype(np.float32), size, first)
            G[:size, first:size] = H
            G[first:size, :first] = H[:first].T
        squares = np.einsum("ii->i", G)[first:size]  # as they lie in G
        if not (squares.min(initial=np.inf) > _LEAST and squares.max(initial=0.0) < _MOST):  # nan is neither
            return False
        squares *= 1.0 + _RIDGE
        return True

    def _products(self, h: np.ndarray, size: int, first: int) -> np.ndarray:
        """Return the columns from ``first`` on; equal factors let a BLAS compute only half of a whole matrix."""
        H, factor, height = np.zeros(0, np.float32), np.sqrt(h) if first == 0 else h, max(1, _BLOCK // size)
        for start in range(0, h.size, height):
            part = slice(start, min(start + height, h.size))
            scaled = self._memory[first:size, part] * factor[part]
            products = (scaled if first == 0 else self._memory[:size, part]) @ scaled.T
            H = products if start == 0 else H + products
        return H

    def _follow(self, atoms: Atoms, features: np.ndarray) -> None:
        """Take in the atoms that are new."""
        known, size = self._features.size, features.size
        if known > size or (features[:known] != self._features).any():
            known = 0
        if len(self._memory) == 0:  # for all that there is room for: what no atom fills takes no memory
            most = min(self._n_features, int(_MOST_ENTRIES) // self._n_samples)
            self._memory = np.empty((most, self._n_samples), np.float32)
        _copy(atoms.columns, atoms.features[known:], self._memory[known:size])
        self._features = features.copy()


@kernel
def _copy(columns, features, out):
    """Fill every row of ``out`` by one of the features, in the precision that it has."""
    for q in range(features.shape[0]):
        scale = columns.scale[features[q]]
        for i in range(np.uint64(out.shape[1])):
            out[q, i] = scale * columns.slices.entry(features[q], i)


@kernel
def _pack(columns, features, root, out):
    """Fill every row of ``out`` by one of the features, less its mean, times the roots."""
    for q in range(features.shape[0]):
        j, row = features[q], out[q]
        for i in range(row.shape[0]):
            row[i] = 0.0
        columns.add(j, 1.0, DenseVector(row))
        mean = columns.scale[j] * columns.mean[j]
        for i in range(row.shape[0]):
            row[i] = (row[i] - mean) * root[i]
