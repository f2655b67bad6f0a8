"""DiskColumns: the features of a path whose columns lie on disk.

One read of all columns, before the path begins, does three things: it finds entries that are not finite, it measures
means and norms, and it computes the correlations with the residual at zero. From then on columns are read where the
oracle's bounds, or the working set, ask for them, and some of them are kept in memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from condgrad.linalg.centring import FAR
from condgrad.linalg.matrix import Matrix
from condgrad.paths.columns import Columns, columns_of
from condgrad.paths.gauges import PLAIN, Gauge
from condgrad.paths.working_set import Atoms
from condgrad.storage.kept_columns import KeptColumns
from condgrad.storage.stored_columns import ColumnBlock, StoredColumns, extremes_of


class Question(NamedTuple):
    """What the first read of all columns is about: weights of the samples, a residual, centring and scaling."""

    weight: np.ndarray
    residual: np.ndarray  # centred where there is an intercept
    has_intercept: bool
    standardize: bool

    def equals(self, other: Question) -> bool:
        """Tell whether the answers to both are the same."""
        are_equal = np.array_equal(self.weight, other.weight) and np.array_equal(self.residual, other.residual)
        return are_equal and self[2:] == other[2:]

    def measure(self, matrix: Matrix) -> Columns:
        """Return the columns of a matrix as features, with their means and norms."""
        settings = self.weight, self.has_intercept, self.standardize
        return columns_of(matrix.columns, matrix.shape[1], matrix.n_stored, *settings)


class FirstRead(NamedTuple):
    """What the first read has found, for every feature; ``shift`` is subtracted from columns with far means.

    ``largest`` has the largest size of an entry of each column, after that, or an upper bound of it.
    """

    mean: np.ndarray
    scale: np.ndarray
    norm: np.ndarray
    shift: np.ndarray
    correlation: np.ndarray
    largest: np.ndarray


# The answer of the first read stays as long as the columns do: a second path with the same y begins without it.
_known: weakref.WeakKeyDictionary[StoredColumns, tuple[Question, FirstRead]] = weakref.WeakKeyDictionary()


def first_read(stored: StoredColumns, question: Question) -> FirstRead:
    """Read all columns once, or take what is known from the last time."""
    if stored in _known and _known[stored][0].equals(question):
        return _known[stored][1]
    d = stored.shape[1]
    found = FirstRead(np.empty(d), np.empty(d), np.empty(d), np.zeros(d), np.empty(d), np.empty(d))
    for block in stored.blocks():
        _look(stored, block, question, found)
    _known[stored] = question, found
    return found


def _look(stored: StoredColumns, block: ColumnBlock, question: Question, found: FirstRead) -> None:
    """Check and measure the columns of a block, and compute their correlations with the residual."""
    first, size = int(block.columns[0]), block.columns.size
    here = slice(first, first + size)
    low, high = extremes_of(block.matrix, first, repr(str(stored.file_of(first))))
    columns = question.measure(block.matrix)
    found.shift[here] = _shift_of(columns, block.matrix)
    if found.shift[here].any():  # an intercept takes up what is subtracted: large means shall cost no digits
        columns = _centred(columns, block.matrix, found.shift[here], question)
    a = question.weight * question.residual
    mu = float(a.sum()) if question.has_intercept else 0.0
    Atoms(columns, np.arange(size)).correlate(a, mu, np.zeros(size), 0.0, found.correlation[here])
    found.mean[here], found.scale[here], found.norm[here] = columns.mean, columns.scale, columns.norm
    found.largest[here] = np.maximum(high - found.shift[here], found.shift[here] - low)


def _shift_of(columns: Columns, matrix: Matrix) -> np.ndarray:
    """Return the means that are far from zero, and 0 for the others; all are 0 where there is no intercept."""
    spread = np.divide(columns.norm, columns.scale, out=np.zeros(columns.norm.size), where=columns.scale > 0.0)
    is_far = np.abs(columns.mean) > FAR * spread
    if matrix.is_sparse:  # a column with zeros has a spread that is as large as its mean
        is_far &= np.diff(matrix.X.indptr) == matrix.shape[0]
    return np.where(is_far, columns.mean, 0.0)


def _centred(columns: Columns, matrix: Matrix, shift: np.ndarray, question: Question) -> Columns:
    """Return the columns with ``shift`` subtracted; those that it changes are measured again."""
    far = np.flatnonzero(shift)
    again = question.measure(Matrix(matrix.chosen_columns(far)).minus(shift[far]))
    columns.mean[far], columns.scale[far], columns.norm[far] = again.mean, again.scale, again.norm
    return columns._replace(slices=matrix.minus(shift).columns)


class DiskColumns:
    """The features of a path, whose columns are read when they are asked for.

    Parameters
    ----------
    stored : StoredColumns
    question : Question
    gauge : Gauge
        The norm of the coefficients; where it has weights, features are divided by them.

    Attributes
    ----------
    weight, mean, scale, norm, is_symmetric
        As those of :class:`~condgrad.paths.columns.Columns`.
    shift : array
        What is subtracted from each column before that.
    first : array
        The correlations with the residual of the question.
    largest_entry : float
        The largest size of an entry of X, less the shift of its column, or an upper bound of it.
    kept : KeptColumns
    """

    def __init__(self, stored: StoredColumns, question: Question, gauge: Gauge = PLAIN) -> None:
        self.stored, self.kept, self.weight = stored, KeptColumns(stored), question.weight
        found = first_read(stored, question)
        prices = 1.0 if gauge.weights is None else gauge.weights
        self.mean, self.shift, self.is_symmetric = found.mean, found.shift, gauge.is_symmetric
        self.scale, self.norm = found.scale / prices, found.norm / prices
        self.first = found.correlation / prices
        self.largest_entry = float(found.largest.max())
        self.is_shifted = bool(self.shift.any())
        self._in_memory: tuple[Matrix, Matrix, Columns] | None = None

    @property
    def n_stored(self) -> int:
        """The number of stored entries."""
        return self.stored.n_stored

    def offsets(self) -> np.ndarray | None:
        """Return where the stored entries of each feature begin, or None where every feature stores all entries."""
        return self.stored.entry_offsets

    def size(self, correlation: np.ndarray) -> np.ndarray:
        """Return the rates at which F falls along features."""
        return np.abs(correlation) if self.is_symmetric else correlation

    def squares(self) -> np.ndarray:
        """Return sum_i v_i x_ij^2 of every column, less its shift."""
        spread = np.divide(self.norm, self.scale, out=np.zeros(self.norm.size), where=self.scale > 0.0)
        return spread**2 + self.mean**2

    def along_shift(self, w: np.ndarray, features: np.ndarray) -> float:
        """Return <shift, w>: the intercept of the columns as given is that of the shifted ones minus this."""
        return float(self.shift[features] @ w)

    def chosen(self, features: np.ndarray) -> tuple[Columns, np.ndarray]:
        """Return columns in memory, and the places of the chosen features among them; missing ones are read."""
        _, columns, places = self._chosen(features)
        return columns, places

    def matrix(self, features: np.ndarray) -> tuple[Matrix, np.ndarray]:
        """Return a matrix in memory, less the shifts, and the places of the chosen features in it."""
        matrix, _, places = self._chosen(features)
        return matrix, places

    def _chosen(self, features: np.ndarray) -> tuple[Matrix, Columns, np.ndarray]:
        places = self.kept.places_of(features)
        if self._in_memory is None or self._in_memory[0] is not self.kept.matrix:
            matrix = self._centred(self.kept.columns, self.kept.matrix)
            self._in_memory = self.kept.matrix, matrix, self._columns(self.kept.columns, matrix)
        return self._in_memory[1], self._in_memory[2], places

    def blocks(self, features: np.ndarray | None = None) -> Iterator[tuple[ColumnBlock, Columns]]:
        """Yield blocks of the chosen features, which are ascending, or of all; both have the shifts subtracted."""
        for block in self.stored.blocks(features):
            was_read = block.was_read
            matrix = self._centred(was_read, block.matrix)
            yield block._replace(matrix=matrix), self._columns(was_read, matrix)

    def _centred(self, features: np.ndarray, matrix: Matrix) -> Matrix:
        return matrix.minus(self.shift[features]) if self.is_shifted else matrix

    def _columns(self, features: np.ndarray, matrix: Matrix) -> Columns:
        chosen = self.mean[features], self.scale[features], self.norm[features]
        return Columns(matrix.columns, self.weight, *chosen, self.is_symmetric)

    def vectors(self, features: np.ndarray) -> np.ndarray:
        """Return the scaled and centred features themselves, one in each row."""
        matrix, places = self.matrix(features)
        vectors = np.zeros((features.size, self.weight.size))
        for vector, place in zip(vectors, places.tolist(), strict=True):
            rows, values = matrix.column(place)
            vector[slice(None) if rows is None else rows] = values
        vectors -= self.mean[features][:, None]
        vectors *= self.scale[features][:, None]
        return vectors
