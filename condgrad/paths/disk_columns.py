"""DiskColumns: the features of a path whose columns lie on disk.

One read of all columns, before the path begins, does three things: it finds entries that are not finite, it measures
means and norms, and it computes the correlations with y. From then on columns are read where the oracle's bounds, or
the working set, ask for them, and some of them are kept in memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np

from condgrad.linalg.matrix import FAR
from condgrad.linalg.slices import CentredColumns, DenseSlices, Slices
from condgrad.paths.columns import Columns, columns_of
from condgrad.paths.working_set import Atoms
from condgrad.storage.stored_columns import ColumnBlock, StoredColumns, check_columns

_SUSPECT = 1e20  # root mean square of a column from which on its entries are checked one by one
_LIGHT = 1e-80  # weight of a sample below which its entries can be huge in a column that is not suspect
_KEPT = 256_000_000  # bytes of columns that are kept in memory; the working set is kept whatever its size


class Question(NamedTuple):
    """What the first read of all columns is about: weights of the samples, targets, centring and scaling."""

    weight: np.ndarray
    target: np.ndarray  # centred where there is an intercept
    has_intercept: bool
    standardize: bool

    def equals(self, other: Question) -> bool:
        """Tell whether the answers to both are the same."""
        are_equal = np.array_equal(self.weight, other.weight) and np.array_equal(self.target, other.target)
        return are_equal and self[2:] == other[2:]

    def measure(self, slices: object, count: int) -> Columns:
        """Return features whose columns are the given slices, with their means and norms."""
        settings = self.weight, self.has_intercept, self.standardize
        return columns_of(cast("Slices", slices), count, count * self.weight.size, *settings)


class FirstRead(NamedTuple):
    """What the first read has found, for every feature; ``shift`` is subtracted from columns with far means."""

    mean: np.ndarray
    scale: np.ndarray
    norm: np.ndarray
    shift: np.ndarray
    correlation: np.ndarray


# The answer of the first read stays as long as the columns do: a second path with the same y begins without it.
_known: weakref.WeakKeyDictionary[StoredColumns, tuple[Question, FirstRead]] = weakref.WeakKeyDictionary()


def first_read(stored: StoredColumns, question: Question) -> FirstRead:
    """Read all columns once, or take what is known from the last time."""
    if stored in _known and _known[stored][0].equals(question):
        return _known[stored][1]
    d = stored.shape[1]
    found = FirstRead(np.empty(d), np.empty(d), np.empty(d), np.zeros(d), np.empty(d))
    for block in stored.blocks():
        _look(stored, block, question, found)
    _known[stored] = question, found
    return found


def _look(stored: StoredColumns, block: ColumnBlock, question: Question, found: FirstRead) -> None:
    """Check and measure the columns of a block, and compute their correlations with the targets."""
    first, size = int(block.columns[0]), block.columns.size
    here = slice(first, first + size)
    columns = question.measure(DenseSlices(block.values), size)
    spread = np.divide(columns.norm, columns.scale, out=np.zeros(size), where=columns.scale > 0.0)
    # The root mean square is finite and small only if all entries are; nan also makes a column look constant.
    is_plain = (np.hypot(columns.mean, spread) <= _SUSPECT) & (columns.scale > 0.0)
    if not is_plain.all() or question.weight.min() < _LIGHT:
        check_columns(block.values, first, repr(str(stored.file_of(first))))
    far = np.flatnonzero(~(np.abs(columns.mean) <= FAR * spread))  # none without an intercept: the means are zero then
    if far.size:  # an intercept takes up what is subtracted: large means shall cost no digits
        found.shift[first + far] = columns.mean[far]
        columns = _centred(columns, block.values, far, found.shift[here], question)
    a = question.weight * question.target
    mu = float(a.sum()) if question.has_intercept else 0.0
    Atoms(columns, np.arange(size)).correlate(a, mu, np.zeros(size), 0.0, found.correlation[here])
    found.mean[here], found.scale[here], found.norm[here] = columns.mean, columns.scale, columns.norm


def _centred(columns: Columns, values: np.ndarray, far: np.ndarray, shift: np.ndarray, question: Question) -> Columns:
    """Return the columns with ``shift`` subtracted; those that it changes are ``far`` and are measured again."""
    again = question.measure(CentredColumns(values[far], shift[far]), far.size)
    columns.mean[far], columns.scale[far], columns.norm[far] = again.mean, again.scale, again.norm
    return columns._replace(slices=cast("Slices", CentredColumns(values, shift)))


class DiskColumns:
    """The features of a path, whose columns are read when they are asked for.

    Parameters
    ----------
    stored : StoredColumns
    question : Question

    Attributes
    ----------
    weight, mean, scale, norm : array
        As those of :class:`~condgrad.paths.columns.Columns`.
    shift : array
        What is subtracted from each column before that.
    first : array
        The correlations with the targets.
    """

    def __init__(self, stored: StoredColumns, question: Question) -> None:
        self.stored, self.weight = stored, question.weight
        self.mean, self.scale, self.norm, self.shift, self.first = first_read(stored, question)
        self.is_shifted = bool(self.shift.any())
        self.n_kept = max(64, _KEPT // stored.column_bytes)  # number of columns for which there is memory
        self._kept = _Kept(np.empty(0, np.int64), np.empty((0, self.weight.size), stored.dtype))
        self._place = np.full(self.norm.size, -1)  # of each feature among those that are kept
        self._asked = np.zeros(self.norm.size, np.int64)  # when each feature was asked for
        self._time = 0

    def along_shift(self, w: np.ndarray, features: np.ndarray) -> float:
        """Return <shift, w>: the intercept of the columns as given is that of the shifted ones minus this."""
        return float(self.shift[features] @ w)

    def in_memory(self, features: np.ndarray, values: np.ndarray) -> Columns:
        """Return features whose columns are the rows of ``values``."""
        slices = CentredColumns(values, self.shift[features]) if self.is_shifted else DenseSlices(values)
        chosen = self.mean[features], self.scale[features], self.norm[features]
        return Columns(cast("Slices", slices), self.weight, *chosen)

    def chosen(self, features: np.ndarray) -> tuple[Columns, np.ndarray]:
        """Return columns in memory, and the places of the chosen features among them; missing ones are read."""
        self._time += 1
        self._asked[features] = self._time
        missing = np.unique(features[self._place[features] < 0])
        if missing.size:
            self._keep(missing, features.size)
        kept = self._kept
        return self.in_memory(kept.features, kept.values[: kept.features.size]), self._place[features]

    def is_kept(self, features: np.ndarray) -> np.ndarray:
        """Return for each of the features whether its column is in memory."""
        return self._place[features] >= 0

    def blocks(self, features: np.ndarray | None = None) -> Iterator[tuple[ColumnBlock, Columns]]:
        """Yield blocks of the chosen features, which are ascending, or of all, as columns in memory."""
        for block in self.stored.blocks(features):
            was_read = block.columns
            if block.values.shape[0] > was_read.size:  # others between them were read along
                was_read = np.arange(was_read[0], was_read[-1] + 1)
            yield block, self.in_memory(was_read, block.values)

    def vectors(self, features: np.ndarray) -> np.ndarray:
        """Return the scaled and centred features themselves, one in each row."""
        columns, places = self.chosen(features)
        kept = self._kept.values[places].astype(np.float64)
        kept -= (self.shift[features] + columns.mean[places])[:, None]
        kept *= columns.scale[places][:, None]
        return kept

    def _keep(self, missing: np.ndarray, n_wanted: int) -> None:
        """Read columns and keep them; where there is no room, those that were asked for last stay."""
        kept = self._kept
        n_all = kept.features.size + missing.size
        if n_all > kept.values.shape[0]:
            room = max(self.n_kept, 2 * n_wanted)
            stay = np.argsort(-self._asked[kept.features], kind="stable")
            if n_all > room:
                stay = stay[: max(room // 2, n_wanted) - missing.size]
            # Atoms may still use the old memory, so it is never overwritten.
            values = np.empty((room, self.weight.size), self.stored.dtype)
            values[: stay.size] = kept.values[stay]
            self._place[kept.features] = -1
            kept = _Kept(kept.features[stay], values)
        begin = kept.features.size
        kept.values[begin : begin + missing.size] = self.stored.read_chosen(missing).T
        self._kept = _Kept(np.concatenate([kept.features, missing]), kept.values)
        self._place[self._kept.features] = np.arange(begin + missing.size)


class _Kept(NamedTuple):
    """Features whose columns are in memory, in the first rows of ``values``."""

    features: np.ndarray
    values: np.ndarray
