r"""DiskOracle: the lazy oracle of columns on disk, which reads the columns that its bounds cannot rule out.

A read of all columns is expensive, and to compute more than one product with each of them costs little beside it. So
every such read also computes the products <z_j, v_k> of all features with a few vectors v_k, of which residuals to come
are probably combinations. For a later residual R' and any numbers b_k,

    |<z_j, R'>| <= |sum_k b_k <z_j, v_k>| + ||z_j|| ||R' - sum_k b_k v_k||.

For least squares R' is y less a sum of features in use. As long as all of these are among the v_k the last norm is
zero, and while the coefficients of the others are small it is small. For other losses it is the same to first order, if
each feature is multiplied by the curvatures of the samples. b is found by least squares, and the bound holds whatever
it is. Which vectors to take is the choice of an :class:`Outlook`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from condgrad.linalg.interrupts import Interrupts
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.rounding import gamma
from condgrad.paths.columns import Columns
from condgrad.paths.disk_columns import DiskColumns
from condgrad.paths.oracle import Oracle, Scan
from condgrad.paths.points import raise_if_interrupted
from condgrad.paths.working_set import Atoms, WorkingSet

_MANY = 0.33  # share of the columns above which all are read
_FEW = 0.25  # share of the room in memory up to which columns that were read stay there
_MOST_BYTES = 256_000_000  # most bytes of the vectors of a span and of their cosines
_MOST_VECTORS = 256  # most vectors of a span
_MOST_NEW = 32  # most of them that a read computes anew, in about the time that the disk takes
_SINGLE = 2.0**-24  # relative error of an operation in float32
_FLAT = 1e-10  # share of the largest eigenvalue below which a span has no such direction
_ENTRIES = 2_000_000  # entries of columns that are multiplied with the vectors of a span at once


class Span:
    """A few vectors of norm one and their cosines with all features: upper bounds of the correlations with others.

    The first vector is the residual R at zero, whose correlations the first read has computed. ``features`` says from
    which feature each vector was made, -1 for a residual.
    """

    def __init__(self, columns: DiskColumns, R: np.ndarray) -> None:
        self.columns = columns
        n, d = R.size, columns.norm.size
        self.room = max(2, int(min(_MOST_VECTORS, _MOST_BYTES // (4 * d + 8 * n))))  # most vectors
        self.features = np.array([-1])
        self._root = np.sqrt(columns.weight)
        self._set_vectors(self._unit(R[None]))
        norm = float(np.linalg.norm(self._root * R)) * columns.norm
        cosine = np.divide(columns.first, norm, out=np.zeros(d), where=norm > 0.0)
        self.cosines = cosine[None].astype(np.float32)
        self._stored_norm = np.hypot(columns.norm, columns.scale * columns.mean)
        self._n_known = 1  # vectors from this one on are those whose cosines are being computed

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
        return self.columns.size(b.astype(np.float32) @ self.cosines).astype(np.float64)

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

    def likely(self, R: np.ndarray) -> np.ndarray:
        """Return about how large the correlations with R are, all in the same unit."""
        R = R / max(float(np.linalg.norm(self._root * R)), 1e-300)
        return self._cosines_with(self._fit(R)) * self.columns.norm

    def renew(self, choice: Choice) -> None:
        """Take other vectors; :meth:`take` computes the cosines of the new ones."""
        stays = choice.stays[: max(0, self.room - choice.new.shape[0])]
        self._set_vectors(np.concatenate([self.vectors[stays], self._unit(choice.new)]))
        self.features = np.concatenate([self.features[stays], choice.features])
        self._n_known, known = stays.size, self.cosines
        self.cosines = np.empty((self.vectors.shape[0], known.shape[1]), np.float32)
        self.cosines[: stays.size] = known[stays]

    def take(self, features: np.ndarray, matrix: Matrix) -> None:
        """Compute the cosines of consecutive features, whose columns are those of ``matrix``, with the new vectors."""
        A = self.columns.weight * self.vectors[self._n_known :]
        norm = self.columns.norm[features]
        ratio = np.divide(self.columns.scale[features], norm, out=np.zeros(features.size), where=norm > 0.0)
        products = matrix.transpose_dot_each(A) if matrix.is_sparse else _products(matrix, A)
        found = (products - np.outer(A.sum(axis=1), self.columns.mean[features])) * ratio
        self.cosines[self._n_known :, features[0] : features[-1] + 1] = found


def _products(matrix: Matrix, A: np.ndarray) -> np.ndarray:
    """Return X'a for every row a of A, some columns at a time: a copy in float64 stays in the cache."""
    values, shift = matrix.X.T, matrix.shift
    out, height = np.empty((A.shape[0], values.shape[0])), max(1, _ENTRIES // values.shape[1])
    for begin in range(0, values.shape[0], height):
        part = slice(begin, begin + height)
        X = values[part].astype(np.float64, copy=False)
        out[:, part] = (A @ X.T) if shift is None else A @ (X - shift[part][:, None]).T
    return out


class Choice(NamedTuple):
    """Which vectors a span shall have: some that it has, the most useful ones first, and new ones of any length.

    ``features`` says from which feature each new vector is made, -1 for a residual.
    """

    stays: np.ndarray
    new: np.ndarray
    features: np.ndarray


class Outlook(Protocol):
    """What is known about the residuals to come."""

    def choose(self, span: Span, R: np.ndarray) -> Choice:
        """Return the vectors that a span shall have after a read of all columns at the residual R."""


class FeaturesAhead:
    """The outlook of least squares: residuals are y less features of the working set, or of those that come next."""

    def __init__(self, columns: DiskColumns, working: WorkingSet) -> None:
        self.columns, self.working = columns, working

    def choose(self, span: Span, R: np.ndarray) -> Choice:
        """Return y, R, the atoms, and the features closest to R."""
        likely, known = span.likely(R), span.features >= 0
        likely[self.working.features] = np.inf
        rank = np.full(known.size, -np.inf)  # of the vectors that the span has; R replaces the last residual
        rank[0], rank[known] = np.inf, likely[span.features[known]]
        likely[span.features[known]] = -np.inf
        added = np.argsort(-likely, kind="stable")[: max(0, min(span.room - 2, _MOST_NEW))]
        added = added[likely[added] > -np.inf]
        stays = np.argsort(-rank, kind="stable")[: np.count_nonzero(rank > -np.inf)]
        new = np.concatenate([R[None], self.columns.vectors(added)])
        return Choice(stays, new, np.append(-1, added))


class DiskOracle(Oracle):
    """The bounds of the lazy oracle and those of a span, and reads of the columns that neither rules out."""

    def __init__(self, span: Span, R: np.ndarray, outlook: Outlook, interrupts: Interrupts | None = None) -> None:
        super().__init__(span.columns, R)
        self.span, self.disk, self.outlook, self.interrupts = span, span.columns, outlook, interrupts

    def begin(self, a: np.ndarray, mu: float) -> float:
        """Take the correlations at the start from the first read; return the largest."""
        sizes = self.disk.size(self.disk.first)
        self.bounds.set_known(np.arange(sizes.size), sizes)
        largest = float(sizes.max(initial=0.0))
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
            features = np.flatnonzero(self.bounds.key > -np.inf)
            sizes = self._read_all(a, mu)[features]
        else:
            sizes = self._read(features, a, mu)
        self.bounds.set_known(features, sizes)
        found = np.flatnonzero(sizes > level)
        found = found[np.argsort(-sizes[found], kind="stable")[: self.disk.kept.n_room // 2]]
        largest = float(sizes.max(initial=0.0))
        self.bounds.record(largest, found.size, sizes.size)
        return Scan(largest, features[found], sizes[found])

    def _read(self, features: np.ndarray, a: np.ndarray, mu: float) -> np.ndarray:
        """Return the sizes of the correlations of some features; those that are not in memory are read.

        A feature that the bounds do not rule out now will often not be ruled out next time: where they are few, they
        stay in memory.
        """
        sizes, is_kept = np.empty(features.size), self.disk.kept.has(features)
        if features.size <= _FEW * self.disk.kept.n_room:
            return self._sizes(*self.disk.chosen(features), a, mu)
        sizes[is_kept] = self._sizes(*self.disk.chosen(features[is_kept]), a, mu)
        parts = [np.empty(0)]
        for block, columns in self.disk.blocks(features[~is_kept]):
            raise_if_interrupted(self.interrupts)
            parts.append(self._sizes(columns, block.places, a, mu))
        sizes[~is_kept] = np.concatenate(parts)
        return sizes

    def _read_all(self, a: np.ndarray, mu: float) -> np.ndarray:
        """Return the sizes of all correlations, and renew the span."""
        self.span.renew(self.outlook.choose(self.span, self.bounds.R))
        parts = []
        for block, columns in self.disk.blocks():
            raise_if_interrupted(self.interrupts)
            parts.append(self._sizes(columns, block.places, a, mu))
            self.span.take(block.columns, block.matrix)
        return np.concatenate(parts)

    def _sizes(self, columns: Columns, places: np.ndarray, a: np.ndarray, mu: float) -> np.ndarray:
        out = np.empty(places.size)
        Atoms(columns, places).correlate(a, mu, np.zeros(places.size), 0.0, out)
        return self.disk.size(out)
