r"""DiskOracle: the lazy oracle of columns on disk, which reads the columns that its bounds cannot rule out.

A read of all columns is expensive, and to compute more than one product with each of them costs little beside it. So
every such read also computes the products <z_j, v_k> of all features with a few vectors v_k: the residual and those
features that the path uses, or will probably use soon. For a later residual R' and any numbers b_k,

    |<z_j, R'>| <= |sum_k b_k <z_j, v_k>| + ||z_j|| ||R' - sum_k b_k v_k||,

and R' is y less a sum of features in use. As long as all of these are among the v_k the last norm is zero, and while
the coefficients of the others are small it is small. b is found by least squares, and the bound holds whatever it is.
"""

from __future__ import annotations

import numpy as np

from condgrad.linalg.interrupts import Interrupts
from condgrad.linalg.rounding import gamma
from condgrad.paths.columns import Columns
from condgrad.paths.disk_columns import DiskColumns
from condgrad.paths.oracle import Oracle, Scan
from condgrad.paths.points import raise_if_interrupted
from condgrad.paths.working_set import Atoms, WorkingSet

_MANY = 0.33  # share of the columns above which all are read
_MOST_BYTES = 256_000_000  # most bytes of the vectors of a span and of their cosines
_MOST_VECTORS = 256  # most vectors of a span
_MOST_NEW = 32  # most of them that a read computes anew, in about the time that the disk takes
_SINGLE = 2.0**-24  # relative error of an operation in float32
_FLAT = 1e-10  # share of the largest eigenvalue below which a span has no such direction
_ENTRIES = 2_000_000  # entries of columns that are multiplied with the vectors of a span at once


class Span:
    """A few vectors of norm one and their cosines with all features: upper bounds of the correlations with others.

    The first two vectors are y and the residual of the last read of all columns, the others are features.
    """

    def __init__(self, columns: DiskColumns, y: np.ndarray) -> None:
        self.columns = columns
        n, d = y.size, columns.norm.size
        self.n_features = int(min(_MOST_VECTORS, _MOST_BYTES // (4 * d + 8 * n))) - 2
        self.features = np.empty(0, np.int64)
        self._root = np.sqrt(columns.weight)
        self._set_vectors(self._unit(np.stack([y, y])))
        norm = float(np.linalg.norm(self._root * y)) * columns.norm
        cosine = np.divide(columns.first, norm, out=np.zeros(d), where=norm > 0.0)
        self.cosines = np.stack([cosine, cosine]).astype(np.float32)
        self._stored_norm = np.hypot(columns.norm, columns.scale * columns.mean)
        self._new = np.empty(0, np.int64)  # the vectors whose cosines are being computed

    def _set_vectors(self, vectors: np.ndarray) -> None:
        self.vectors = vectors
        self._inverse = np.linalg.pinv((self.columns.weight * vectors) @ vectors.T, rcond=_FLAT, hermitian=True)

    def _unit(self, vectors: np.ndarray) -> np.ndarray:
        norm = np.linalg.norm(self._root * vectors, axis=1, keepdims=True)
        return np.divide(vectors, norm, out=np.zeros_like(vectors), where=norm > 0.0)

    def _fit(self, R: np.ndarray) -> np.ndarray:
        """Return the numbers b for which sum_k b_k v_k is closest to R, more or less."""
        b, left = np.zeros(self.vectors.shape[0]), R
        for _ in range(2):  # the second time corrects what the condition of the vectors has cost the first
            b = b + self._inverse @ (self.vectors @ (self.columns.weight * left))
            left = R - b @ self.vectors
        return b

    def _cosines_with(self, b: np.ndarray) -> np.ndarray:
        """Return the sizes of <z_j, sum_k b_k v_k> / ||z_j||."""
        return np.abs(b.astype(np.float32) @ self.cosines).astype(np.float64)

    def upper(self, R: np.ndarray) -> np.ndarray:
        """Return upper bounds of the sizes of all correlations with R."""
        norm = float(np.linalg.norm(self._root * R))
        if norm == 0.0:
            return np.zeros(self.columns.norm.size)
        R = R / norm  # so that float32 neither overflows nor underflows
        b = self._fit(R)
        left = float(np.linalg.norm(self._root * (R - b @ self.vectors)))
        size = float(np.abs(b).sum())
        single = (b.size + 4) * _SINGLE * size  # what float32 may have done to cosines of at most one
        rounding = 4.0 * gamma(R.size + b.size + 8) * (size + left)
        cosines = self._cosines_with(b) + left + single
        return norm * (self.columns.norm * cosines + self._stored_norm * rounding)

    def renew(self, R: np.ndarray, atoms: np.ndarray) -> None:
        """Choose vectors anew, for a read of all columns: R, the atoms, and the features closest to R."""
        R = R / max(float(np.linalg.norm(self._root * R)), 1e-300)
        likely = self._cosines_with(self._fit(R)) * self.columns.norm
        likely[atoms] = np.inf
        known, room = likely[self.features], max(0, min(self.n_features, likely.size))
        likely[self.features] = -np.inf
        added = np.argsort(-likely, kind="stable")[: min(room, _MOST_NEW)]
        added = added[likely[added] > -np.inf]
        stays = np.argsort(-known, kind="stable")[: room - added.size]
        self.features = np.concatenate([self.features[stays], added])
        old = np.concatenate([[0, 1], 2 + stays])
        vectors = self._unit(np.concatenate([R[None], self.columns.vectors(added)]))
        together = np.concatenate([self.vectors[old], vectors[1:]])
        together[1] = vectors[0]
        self._set_vectors(together)
        self._new = np.concatenate([[1], np.arange(old.size, self.vectors.shape[0])])
        kept = self.cosines
        self.cosines = np.empty((self.vectors.shape[0], likely.size), np.float32)
        self.cosines[: old.size] = kept[old]

    def take(self, features: np.ndarray, values: np.ndarray) -> None:
        """Compute the cosines of features, whose columns are the rows of ``values``, with the new vectors."""
        A = (self.columns.weight * self.vectors[self._new]).T
        sums, height = A.sum(axis=0), max(1, _ENTRIES // values.shape[1])
        for begin in range(0, features.size, height):
            part = features[begin : begin + height]
            X = values[begin : begin + height].astype(np.float64, copy=False)
            X = X - self.columns.shift[part][:, None] if self.columns.is_shifted else X
            norm = self.columns.norm[part]
            ratio = np.divide(self.columns.scale[part], norm, out=np.zeros(part.size), where=norm > 0.0)
            found = (X @ A - np.outer(self.columns.mean[part], sums)) * ratio[:, None]
            self.cosines[self._new, part[0] : part[-1] + 1] = found.T


class DiskOracle(Oracle):
    """The bounds of the lazy oracle and those of a span, and reads of the columns that neither rules out."""

    def __init__(self, working: WorkingSet, span: Span, interrupts: Interrupts | None = None) -> None:
        super().__init__(span.columns, working.residual.R)
        self.working, self.span, self.disk, self.interrupts = working, span, span.columns, interrupts

    def begin(self, a: np.ndarray, mu: float) -> float:
        """Take the correlations at the start from the first read; return the largest."""
        sizes = np.abs(self.disk.first)
        self.bounds.set_known(np.arange(sizes.size), sizes)
        largest = float(sizes.max())
        self.bounds.record(largest, 0, sizes.size)
        return largest

    def move(self, R: np.ndarray) -> None:
        """Go to the residual R, centred where an intercept is fitted."""
        super().move(R)
        self.bounds.lower(self.span.upper(R))

    def scan(self, a: np.ndarray, mu: float, threshold: float, level: float) -> Scan:
        """Compute every correlation whose bound exceeds ``threshold``; return those above ``level``, or the largest.

        There are at most as many as can be kept in memory.
        """
        features = self.bounds.list_above(threshold)
        if features.size > _MANY * self.disk.norm.size:
            features = np.arange(self.disk.norm.size)
            sizes = self._read_all(a, mu)
        else:
            sizes = self._read(features, a, mu)
        self.bounds.set_known(features, sizes)
        found = np.flatnonzero(sizes > level)
        found = found[np.argsort(-sizes[found], kind="stable")[: self.disk.n_kept // 2]]
        largest = float(sizes.max(initial=0.0))
        self.bounds.record(largest, found.size, sizes.size)
        return Scan(largest, features[found], sizes[found])

    def _read(self, features: np.ndarray, a: np.ndarray, mu: float) -> np.ndarray:
        """Return the sizes of the correlations of some features; those that are not in memory are read."""
        sizes, is_kept = np.empty(features.size), self.disk.is_kept(features)
        known = features[is_kept]
        sizes[is_kept] = _sizes(*self.disk.chosen(known), a, mu)
        parts = [np.empty(0)]
        for block, columns in self.disk.blocks(features[~is_kept]):
            raise_if_interrupted(self.interrupts)
            parts.append(_sizes(columns, block.places, a, mu))
        sizes[~is_kept] = np.concatenate(parts)
        return sizes

    def _read_all(self, a: np.ndarray, mu: float) -> np.ndarray:
        """Return the sizes of all correlations, and renew the span."""
        self.span.renew(self.bounds.R, self.working.features)
        parts = []
        for block, columns in self.disk.blocks():
            raise_if_interrupted(self.interrupts)
            parts.append(_sizes(columns, block.places, a, mu))
            self.span.take(block.columns, block.values)
        return np.concatenate(parts)


def _sizes(columns: Columns, places: np.ndarray, a: np.ndarray, mu: float) -> np.ndarray:
    out = np.empty(places.size)
    Atoms(columns, places).correlate(a, mu, np.zeros(places.size), 0.0, out)
    return np.abs(out)
