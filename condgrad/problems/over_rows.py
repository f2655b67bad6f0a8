"""OverRows: what a linear problem offers to solvers through its rows: samples, columns, chunks, predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from condgrad.compiled import is_compiled
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.arrays import ArraySlices
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.slices import Slices
from condgrad.problems import taylor_points
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.finite_sum import FiniteSum
from condgrad.problems.prediction_set import Diameters, diameters, prediction_range
from condgrad.problems.rows.base import Rows
from condgrad.problems.rows.memory import MemoryRows, Predictions
from condgrad.problems.samples import Samples
from condgrad.problems.taylor_points import Expansions, Workspace


class OverRows(BaseProblem):
    """A problem over samples with linear predictions x_i'w, in memory or elsewhere: all that only its rows decide."""

    rows: Rows

    @property
    def samples(self) -> Samples:
        """Loss, targets and weights."""
        return self.rows.samples

    @property
    def _memory(self) -> MemoryRows:
        """The rows, where a method needs them in memory."""
        assert isinstance(self.rows, MemoryRows)
        return self.rows

    @property
    def matrix(self) -> Matrix:
        """X, if it is in memory."""
        return self._memory.matrix

    @property
    def y(self) -> np.ndarray:
        """The targets."""
        return self.samples.y

    @property
    def has_sparse_columns(self) -> bool:  # type: ignore[override]
        """Whether X is sparse and in memory."""
        return self.rows.has_sparse_columns

    @property
    def has_dense_columns(self) -> bool:  # type: ignore[override]
        """Whether X is dense and in memory."""
        return self.rows.has_dense_columns

    @property
    def n_reads(self) -> float:
        """How often all rows have been read from where they are stored; 0 for rows in memory."""
        return self.rows.n_reads

    @property
    def bytes_of_pass(self) -> int:
        """The number of bytes that a pass reads from a disk or another machine; 0 for rows in memory."""
        return self.rows.bytes_of_pass

    @property
    def column_sizes(self) -> np.ndarray:
        """The norms sqrt(sum_i weight_i x_ij^2) of the columns, which are centred if the problem has an intercept."""
        return self.rows.column_sizes

    def feature_curvature(
        self,
        features: np.ndarray,
        scale: np.ndarray,
        d: np.ndarray,
        rows: np.ndarray | None = None,
        first: int = 0,
        *,
        is_rough: bool = False,
    ) -> np.ndarray:
        """Return sum_i d_i z_ij z_ik over the chosen rows (None: all) for all pairs of features z_j = scale_j x_j.

        The part that a free intercept takes up is subtracted. Entries [:first, :first] are not computed: the caller has
        them already. With ``is_rough`` single precision is enough for the others, and d >= 0.
        """
        if is_rough and first == 0:
            H = self.matrix.rough_gram(features, scale, d, rows)
        else:
            H = self.matrix.gram(features, scale, d, rows, first)
        total = float(d.sum())
        if self.has_intercept and total > 0.0:
            mixed = scale * self.matrix.column_products(features, self.spread(rows, d))
            H -= np.outer(mixed, mixed) / total
        return H

    def prediction_diameters(self) -> Diameters:
        """Return the largest distances between the predictions of two points of the set."""
        return diameters(self.matrix, self.constraint)

    def prediction_range(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest prediction of each sample over the set."""
        return prediction_range(self.matrix.explicit(), self.constraint)

    @property
    def has_equal_weights(self) -> bool:
        """Whether all samples have the same weight."""
        weight = self.samples.weight
        return bool(weight.max() - weight.min() <= 1e-12 * weight.max())

    def importance(self) -> np.ndarray:
        """Return weight_i ||x_i||_2, the importance of each sample for sampling."""
        if Feature.SAMPLES not in self.rows.offers:
            raise ValueError(
                "sampling='importance' needs the norms of all rows, and these rows are not in memory; use 'batch'."
            )
        norms: np.ndarray = self.matrix.row_norms() * self.samples.weight
        return norms

    @property
    def is_compiled(self) -> bool:
        """Whether steps can run inside kernels: sets whose oracle is ordinary Python cannot."""
        return is_compiled(self.constraint)

    @property
    def entries_per_sample(self) -> float:
        """The mean number of entries of a row of X; for rows on disk, about."""
        return self.cost_of_pass / 2.0 / self.n_samples

    def predictions(self, w: np.ndarray) -> np.ndarray:
        """Return X w, in one pass."""
        return self.rows.dot(w)

    def derivatives(self, w: np.ndarray, b: float) -> np.ndarray:
        """Return the derivatives weight_i f'(x_i'w + b, y_i) of all samples, in one pass."""
        return self.samples.derivatives(self.predictions(w), b)

    def transpose_dot(self, alpha: np.ndarray) -> np.ndarray:
        """Return X' alpha, in one pass."""
        return self.rows.transpose_dot(alpha)

    @property
    def columns(self) -> Slices:
        """The columns of X, for kernels or, where steps are interpreted, for arrays."""
        return self._for_steps(self.matrix.columns)

    @property
    def contiguous_columns(self) -> Slices:
        """The columns of X, each contiguous in memory."""
        return self._for_steps(self.matrix.contiguous_columns)

    def _for_steps(self, slices: Slices) -> Slices:
        return slices if self.is_compiled else ArraySlices(slices)

    def finite_sum(self, b: np.ndarray) -> FiniteSum:
        """Return the problem one sample at a time, with the intercept ``b[0]``."""
        return FiniteSum(self._for_steps(self.matrix.rows), self.samples, self.constraint, b)

    @property
    def chunk_sizes(self) -> np.ndarray | None:  # type: ignore[override]
        """The number of samples of each chunk that steps bring to memory; None if all samples are there."""
        return self.rows.chunk_sizes

    def visit(self, order: np.ndarray, b: np.ndarray) -> Iterator[tuple[slice, FiniteSum]]:
        """Yield the chunks in this order: their places among all samples, and the part of F that is theirs.

        Each is in memory until the next one. Samples are numbered from the first one of the chunk on; their weights are
        those in the whole sum.
        """
        for chunk in self.rows.visit(order):
            rows = self._for_steps(cast("Slices", chunk.matrix.rows))
            yield chunk.place, FiniteSum(rows, chunk.samples, self.constraint, b)

    def taylor_points(self, space: Workspace, form: str, renews_all: bool) -> Expansions:
        """Return the Taylor points of TUFW, stored as three numbers per sample for every rule, and its H."""
        return taylor_points.of_predictions(space, form)

    @property
    def cost_of_pass(self) -> float:
        """The number of multiply-adds of one look."""
        return self.rows.cost_of_pass

    def vertex_predictions(self, s: Vertex) -> Predictions:
        """Return X s as the rows that it touches (None: all) and its values there."""
        return self._memory.vertex_predictions(s)

    def combine(self, terms: list[tuple[float, Predictions]]) -> Predictions:
        """Return sum_k c_k q_k for predictions q_k given as (rows, values)."""
        return self._memory.combine(terms)

    def spread(self, rows: np.ndarray | None, values: np.ndarray) -> np.ndarray:
        """Return predictions given as (rows, values) as one array over all samples."""
        return self._memory.spread(rows, values)
