"""MemoryRows: samples in memory, in blocks of rows, one for each thread; a pass reads X once if rows are contiguous."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import TypeAlias

import numpy as np

from condgrad.compiled import kernel
from condgrad.constraints.vertices import Vertex
from condgrad.linalg import threads
from condgrad.linalg.by_rows import ByRows
from condgrad.linalg.gram import weighted_gram
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.spread import spread_rows
from condgrad.linalg.support import merge
from condgrad.linalg.vectors import DenseVector
from condgrad.losses import Loss
from condgrad.problems.active_set import AtomStack, Stack
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.column_part import ColumnPart
from condgrad.problems.dense_part import DensePart
from condgrad.problems.drawn_rows import sample_at_rate, sample_by_curvature
from condgrad.problems.rows.base import AnyPass, Chunk, Found, Rows, Task
from condgrad.problems.rows.findings import GradientSums, Joined, Kept, Measures, Pass
from condgrad.problems.samples import Samples, expand_block
from condgrad.problems.totals import Totals

Predictions: TypeAlias = tuple[np.ndarray | None, np.ndarray]  # rows (None: all), and the predictions of these rows

_LARGE = 2**23  # bytes of X above which a pass reads X once: the caches of a processor cannot hold so much
_CACHED = 2**18  # bytes of X in a piece: it stays in a core's cache between the products with w and the derivatives
_FEWEST, _MOST = 8, 4096  # limits of the number of rows in a piece: loops over losses should be long enough for SIMD
_SMALLEST, _LARGEST = 1e-30, 1e30  # sizes of the largest entry for which products in single precision keep their digits
_FEW_COLUMNS = 16  # entries of a vertex up to which columns are multiplied one by one, not in a pass over X
_WORK_PER_SAMPLE = 20  # cost in multiply-adds: that of a loss with an exponential, about


class MemoryRows(Rows):
    """The rows of a matrix in memory.

    Contiguous rows (C order, CSR) are cut into one block for each thread. A block of large data is processed in pieces
    that fit into the cache of a core, so that X is read from memory once although it is multiplied twice. Other data
    are one block, which is multiplied column by column.
    """

    offers = BaseProblem.offers | {
        Feature.CURVATURE,
        Feature.SAMPLES,
        Feature.CHUNKS,
        Feature.PREDICTIONS,
        Feature.SECOND_DERIVATIVES,
        Feature.COLUMNS,
    }

    def __init__(self, matrix: Matrix, samples: Samples) -> None:
        self.matrix, self.samples = matrix, samples
        self.n_samples, self.n_features = matrix.shape
        self._predictions: dict[Hashable, np.ndarray] = {}  # X v of the last requested vertices v, by v.key()

    def sweep(self, task: Task[Found], w: np.ndarray) -> Found:
        """Run a task on every block, on all cores, and add the results in the order of the blocks."""
        if not self.matrix.rows_are_native:
            return task(ColumnBlock(self.matrix, self.samples), w)
        return sweep_by_rows(self.matrix, self.samples, task, w)

    def dot(self, w: np.ndarray) -> np.ndarray:
        """Return X w."""
        return self.matrix.dot(w)

    def transpose_dot(self, a: np.ndarray) -> np.ndarray:
        """Return X'a."""
        return self.matrix.transpose_dot(a)

    def head(self, n_rows: int) -> MemoryRows | None:
        """Return a subsample of ``n_rows`` samples or somewhat more, evenly spread."""
        every = max(1, self.n_samples // max(1, n_rows))
        if every == 1:
            return self
        return self.chosen(spread_rows(self.n_samples, every))

    def chosen(self, places: np.ndarray) -> MemoryRows | None:
        """Return some samples alone, with weights that sum to one; None if they have no weight."""
        samples = self.samples.alone(places)
        return None if samples is None else MemoryRows(self.matrix.chosen(places), samples)

    def with_targets(self, y: np.ndarray) -> MemoryRows:
        """Return the same rows with other targets; both share the data and their views."""
        other = MemoryRows(self.matrix, self.samples._replace(y=y))
        if "measures" in vars(self):
            other.measures = self.measures
        return other

    def definition(self) -> tuple[object, ...]:
        """Return shape, data, loss, targets and weights."""
        return (self.matrix.shape, *self.matrix.arrays(), self.samples)

    @functools.cached_property
    def largest_entry(self) -> float:
        """The largest absolute value of an entry of X: of data as given, their checks have found it."""
        return self.matrix.largest_entry()

    @functools.cached_property
    def size_of_columns(self) -> float:
        """The largest absolute value of an entry, as weights sum to one."""
        return self.largest_entry

    @property
    def cost_of_pass(self) -> float:
        """Two multiply-adds for every stored entry of X."""
        return 2.0 * self.matrix.n_stored

    def along_shift(self, w: np.ndarray, features: np.ndarray | None = None) -> float:
        """Return <shift, w> for centred columns."""
        return self.matrix.along_shift(w, features)

    @property
    def has_sparse_columns(self) -> bool:
        """Whether X is sparse."""
        return self.matrix.has_sparse_columns

    @property
    def has_dense_columns(self) -> bool:
        """Whether X is dense, with entries far from the largest and the smallest that single precision can hold."""
        return self.matrix.has_dense_columns and _SMALLEST < self.largest_entry < _LARGEST

    def column_part(self, features: np.ndarray, l2: float, has_intercept: bool) -> ColumnPart:
        """Return F on these features alone, with a penalty and, if so, an intercept."""
        columns, chosen = self.matrix.gathered(features)
        return ColumnPart(columns, chosen, self.samples, l2, has_intercept, self.has_dense_columns)

    def dense_part(self, l2: float, offset: float | None) -> DensePart:
        """Return F on some atoms alone, with a penalty and, where an ``offset`` is guessed, an intercept."""
        matrix = self.matrix
        return DensePart(matrix.rows, matrix.columns, matrix.rows_are_native, self.samples, l2, offset)

    def curvature(self, found: AnyPass, atoms: Stack, n_rows: float, n_known: int, has_intercept: bool) -> np.ndarray:
        """Return sum_i d_i <x_i, v_k> <x_i, v_l> for all pairs of atoms; negative curvatures are replaced by zero.

        If ``n_rows`` is at most half of all samples, the sum is estimated from so many, drawn by their curvature. If it
        is finite, an estimate is enough, so that single precision is.
        """
        assert isinstance(found, Pass) and isinstance(found.d, Joined)  # a pass in memory keeps all curvatures
        d, rows = found.d.array, None
        if not self.samples.loss.is_convex:
            d = np.maximum(d, 0.0)
        if n_rows <= d.size / 2:
            rows, d = sample_by_curvature(d, n_rows)
        return self.curvature_on(atoms, d, rows, n_known, has_intercept, is_rough=n_rows < np.inf)

    def curvature_on(
        self,
        atoms: Stack,
        d: np.ndarray,
        rows: np.ndarray | None,
        n_known: int,
        has_intercept: bool,
        *,
        is_rough: bool = False,
    ) -> np.ndarray:
        """Return the curvature on atoms from the chosen rows (None: all) with the curvatures d."""
        H = self._gram(atoms, d, rows, n_known, is_rough)
        if has_intercept and d.any():  # the minimum over b takes the Schur complement
            mixed = atoms.inner_products(self.matrix.transpose_dot(self.spread(rows, d)))
            H -= np.outer(mixed, mixed) / d.sum()
        return H

    def _gram(self, atoms: Stack, d: np.ndarray, rows: np.ndarray | None, n_known: int, is_rough: bool) -> np.ndarray:
        if isinstance(atoms, AtomStack):
            if is_rough and n_known == 0:
                return self.matrix.rough_gram(atoms.index, atoms.value, d, rows)
            return self.matrix.gram(atoms.index, atoms.value, d, rows, n_known)
        q = self._predictions_of(atoms)
        Q = np.array([each if rows is None else each[rows] for each in q]).reshape(len(atoms), d.size)
        return weighted_gram(Q.T, d, n_known)

    def _predictions_of(self, atoms: Stack) -> list[np.ndarray]:
        """Return X v for every vertex; the products of the last call are cached."""
        kept = self._predictions
        vertices = [atoms.vertex(k) for k in range(len(atoms))]
        found = {v.key(): kept.get(v.key()) for v in vertices}
        for v in vertices:
            if found[v.key()] is None:
                found[v.key()] = self.spread(*self.vertex_predictions(v))
        known = {key: q for key, q in found.items() if q is not None}
        self._predictions = known
        return [known[v.key()] for v in vertices]

    # Predictions of vertices, as the rows where they are not zero (None: all) and their values there.

    def vertex_predictions(self, s: Vertex) -> Predictions:
        """Return X s."""
        indices, values = s.support()
        if indices is None:
            return None, self.matrix.dot(values)
        if len(indices) > _FEW_COLUMNS:
            return None, self.matrix.dot(s.to_dense(self.n_features))
        return self.combine([(value, self.matrix.column(int(j))) for j, value in zip(indices, values, strict=True)])

    def combine(self, terms: list[tuple[float, Predictions]]) -> Predictions:
        """Return sum_k c_k q_k."""
        (c, (rows, values)), *others = terms
        total = c * values
        for c, (other_rows, other_values) in others:
            if rows is not None and other_rows is not None:
                rows, total = merge(rows, total, other_rows, c * other_values)
            else:
                total = self.spread(rows, total) + c * self.spread(other_rows, other_values)
                rows = None
        return rows, total

    def spread(self, rows: np.ndarray | None, values: np.ndarray) -> np.ndarray:
        """Return predictions as one array over all samples."""
        if rows is None:
            return values
        dense = np.zeros(self.n_samples)
        dense[rows] = values
        return dense


def sweep_by_rows(matrix: ByRows, samples: Samples, task: Task[Found], w: np.ndarray) -> Found:
    """Run a task on the blocks of a matrix with contiguous rows, one for each core, and add the results in order."""
    n_samples, n_features = matrix.shape
    # Each thread adds into its own vector. This pays if the rows have more entries than these vectors.
    pays = matrix.n_stored > 4 * n_features
    work = matrix.n_stored + _WORK_PER_SAMPLE * n_samples if pays else 0
    borders = threads.cut(n_samples, work, matrix.row_offsets)
    found = threads.run(lambda start, stop: task(RowBlock(matrix, samples, start, stop, borders), w), borders)
    return functools.reduce(lambda total, part: total + part, found)


class ChunkInMemory(Chunk):
    """Consecutive samples in memory, with the passes over them."""

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return self.matrix.shape[0]

    @property
    def loss(self) -> Loss:
        """The loss of the samples."""
        return self.samples.loss

    def sweep(self, task: Task[Found], w: np.ndarray) -> Found:
        """Run a task on the blocks of the chunk, on all cores."""
        return sweep_by_rows(self.matrix, self.samples, task, w)

    def keep(self, d: np.ndarray, rate: float) -> Kept:
        """Return rows that are drawn by their curvature at the given rate."""
        rows, c = sample_at_rate(d, rate)
        return Kept((self.matrix.chosen(rows),), (c,))

    def gram(self, features: np.ndarray, d: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """Return the second derivatives by some features, summed over some samples (None: all)."""
        return self.matrix.gram_of_rows(features, d, rows)


class RowBlock:
    """The samples start, ..., stop - 1 of a matrix with contiguous rows; ``borders`` are the starts of all blocks."""

    def __init__(self, matrix: ByRows, samples: Samples, start: int, stop: int, borders: np.ndarray) -> None:
        self.matrix, self.samples = matrix, samples
        self.start, self.stop, self.borders = start, stop, borders

    def predict(self, w: np.ndarray) -> np.ndarray:
        """Return x_i'w for each sample of the block."""
        p = np.zeros(self.stop - self.start)
        if w.any():
            self.matrix.dot_range(self.start, w, p)
        return p

    def expand(self, w: np.ndarray, b: float, p: np.ndarray | None, sums: GradientSums | None) -> Pass:
        """Return the contribution of these samples, reading their rows once where X is large."""
        X, samples, start = self.matrix.rows_of_passes, self.samples, self.start
        size = self.stop - start
        totals, d = np.zeros(len(Totals._fields)), np.empty(size)
        r = (
            np.zeros(self.matrix.shape[1])
            if sums is None
            else sums.of_block(int(self.borders.searchsorted(self.start)))
        )
        if p is None and self.matrix.n_bytes > _LARGE and w.any():
            _expand_rows(X, samples, start, self._rows_of_a_piece(), w, np.empty(size), b, totals, DenseVector(r), d)
        else:
            alpha, own = np.empty(size), self.predict(w) if p is None else p[start : self.stop]
            expand_block(samples, start, own, b, alpha, d, totals)
            self.matrix.add_range(start, alpha, r)
        return Pass(Totals(*totals.tolist()), r if sums is None else np.zeros(()), Joined((d,)))

    def combine(self, a: np.ndarray) -> np.ndarray:
        """Return sum_i a_i x_i over the samples of the block."""
        total = np.zeros(self.matrix.shape[1])
        self.matrix.add_range(self.start, a[self.start : self.stop], total)
        return total

    def _rows_of_a_piece(self) -> int:
        bytes_of_a_row = max(1.0, self.matrix.n_bytes / self.matrix.shape[0])
        return int(min(max(_CACHED / bytes_of_a_row, _FEWEST), _MOST))

    def measure(self) -> Measures:
        """Return the sizes of the columns on these samples."""
        squares = np.zeros(self.matrix.shape[1])
        self.matrix.add_squares_of_rows(self.start, self.stop, self.samples.weight, squares)
        return Measures(squares, self.matrix.largest_entry(self.start, self.stop))


class ColumnBlock:
    """All samples of a matrix that is stored by columns."""

    def __init__(self, matrix: Matrix, samples: Samples) -> None:
        self.matrix, self.samples = matrix, samples

    def predict(self, w: np.ndarray) -> np.ndarray:
        """Return X w."""
        return self.matrix.dot(w)

    def expand(self, w: np.ndarray, b: float, p: np.ndarray | None, sums: GradientSums | None) -> Pass:
        """Return sums, gradient and curvatures, in two passes over the columns; there is no other block to add to."""
        totals, alpha, d = self.samples.expand(self.predict(w) if p is None else p, b)
        return Pass(totals, self.matrix.transpose_dot(alpha), Joined((d,)))

    def combine(self, a: np.ndarray) -> np.ndarray:
        """Return X'a."""
        return self.matrix.transpose_dot(a)

    def measure(self) -> Measures:
        """Return the sizes of the columns."""
        return Measures(self.matrix.column_norms(self.samples.weight) ** 2, self.matrix.largest_entry())


@kernel
def _expand_rows(X, samples, first, height, w, p, b, totals, r, d):
    """Add totals and gradient of the samples first, ..., first + len(p) - 1, ``height`` rows at a time."""
    alpha = np.empty(height)
    for top in range(0, p.shape[0], height):
        end = min(top + height, p.shape[0])
        X.dot_slices(first + top, w, p[top:end])
        expand_block(samples, first + top, p[top:end], b, alpha, d[top:end], totals)
        X.add_slices(first + top, alpha[: end - top], r)
