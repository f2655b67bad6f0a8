"""OutputsProblem: base of problems whose F is a function of scores: k linear predictions of every sample."""

from __future__ import annotations

import abc
import copy
import functools
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints.oracle_set import as_set_for
from condgrad.constraints.vertices import Vertex
from condgrad.linalg import convert
from condgrad.linalg.coded_matrix import matrix_of
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import device_by_name, is_on_device, on_host
from condgrad.linalg.device.base import DeviceArray
from condgrad.linalg.device.failures import failures_explained
from condgrad.linalg.device.scored import ScoredOnDevice
from condgrad.linalg.device.streamed import StreamedMatrix
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.spread import spread_rows
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.look_point import LookPoint
from condgrad.problems.outputs_point import OutputsPoint
from condgrad.problems.rows.device import RowsOnDevice, check_finite
from condgrad.storage.device_data import DeviceData

_FEW_ENTRIES = 16  # entries of a vertex up to which reading single columns is cheaper than a pass over X


class OutputsProblem(BaseProblem):
    r"""Minimise over W in C a function F(W) = f(S) of the scores S, whose column i is W x_i: k predictions of sample i.

    W has a row for each of the k outputs. Solvers and sets work with one vector w of k d entries, row after row. Two
    arrays have the shape (k, n): the scores S and the derivatives A of F with respect to S, so that the gradient is
    A X. A subclass defines f by ``value_of(S)``, ``derivatives_of(S)`` and a bound of its curvature, and by its
    ``look``. The mean over samples of a loss is a :class:`~condgrad.problems.output_losses.OutputLossesProblem`.

    If X is on a device, S, A and other arrays with numbers of all samples are there, too: NumPy's functions call those
    of the library of their arguments. Targets and weights are in memory, and a copy of them is on the device.
    """

    offers = BaseProblem.offers | {Feature.CURVATURE}
    output_name = "outputs"  # name of the rows of W in error messages
    has_intercept = False
    n_outputs: int

    def __init__(self, matrix: Matrix | ScoredOnDevice, sample_weight: ArrayLike | None, *, is_centred: bool) -> None:
        self.matrix = matrix
        self.n_samples, self.n_columns = self.matrix.shape
        self.weight = convert.as_weights(on_host(sample_weight), self.n_samples)
        if isinstance(matrix, ScoredOnDevice):
            self.first_part, self.part_growth = RowsOnDevice.first_part, RowsOnDevice.part_growth
            check_finite(matrix.column_squares(self.weight))
        if is_centred:  # a number added to all scores of an output changes nothing; large means then cost no digits
            self.matrix = self.matrix.centred(self.weight)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.constraint!r}, n_samples={self.n_samples}, "
            f"n_{self.output_name}={self.n_outputs}, n_columns={self.n_columns})"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (k, d) of W."""
        return self.n_outputs, self.n_columns

    def _constrain(self, constraint: object) -> None:
        """Set the constraint; a set of matrices must have the shape of W."""
        self.n_features = self.n_outputs * self.n_columns
        name, n_features = type(constraint).__name__, getattr(constraint, "n_features", None)
        if n_features not in (None, self.n_features):
            raise ValueError(
                f"{name} is a set of vectors of length {n_features}, but {self.n_outputs} {self.output_name} and "
                f"{self.n_columns} columns of X make n_features={self.n_features}."
            )
        self.constraint = as_set_for(constraint, self.n_features)
        if getattr(constraint, "shape", None) not in (None, self.shape):
            raise ValueError(
                f"{name} is a set of matrices of shape {constraint.shape}, but W has a row for each of the "  # type: ignore[attr-defined]
                f"{self.n_outputs} {self.output_name}; use shape={self.shape}."
            )

    @abc.abstractmethod
    def value_of(self, S: np.ndarray) -> float:
        """Return F for the scores S."""

    @abc.abstractmethod
    def derivatives_of(self, S: np.ndarray) -> np.ndarray:
        """Return the derivatives A of F with respect to the scores S."""

    @abc.abstractmethod
    def curvature_along(self, Q: np.ndarray) -> float:
        """Return a bound of the second derivative of F along a line on which the scores change at the rate Q."""

    @abc.abstractmethod
    def intercept_for(self, w: np.ndarray, S: np.ndarray) -> Any:
        """Return the best intercepts for W and its scores S, for the columns as given."""

    def objective(self, w: IterateLike) -> float:
        """Return F(W)."""
        return self.value_of(self.scores(convert.as_point(w, self.n_features, "w")))

    def mean_loss(self, w: np.ndarray, intercept: Any) -> float:
        """Return F for given intercepts, which belong to columns as given."""
        alone, shift = copy.copy(self), self.matrix.shift
        alone.has_intercept = False
        b = intercept if shift is None else intercept + w.reshape(self.shape) @ shift
        return alone.value_of(self.scores(w) + np.reshape(b, (-1, 1)))

    def gradient(self, w: IterateLike) -> np.ndarray:
        """Return the gradient of F at W, as a vector."""
        return self.gradient_of(self.derivatives_of(self.scores(convert.as_point(w, self.n_features, "w"))))

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Return S, one row for each output, in one pass; on the device if X is there."""
        return self.matrix.dot_each(w.reshape(self.shape))

    def gradient_of(self, A: np.ndarray) -> np.ndarray:
        """Return A X as a vector, in one pass."""
        return self.matrix.transpose_dot_each(A).ravel()

    def vertex_scores(self, s: Vertex) -> np.ndarray:
        """Return the scores of a vertex, by a pass over X or, for few entries, from the columns that it uses."""
        indices, values = s.support()
        if isinstance(self.matrix, ScoredOnDevice) or indices is None or len(indices) > _FEW_ENTRIES:
            return self.scores(s.to_dense(self.n_features))
        S = np.zeros((self.n_outputs, self.n_samples))
        for index, value in zip(indices, values, strict=True):
            c, j = divmod(int(index), self.n_columns)
            rows, entries = self.matrix.column(j)
            S[c, slice(None) if rows is None else rows] += value * entries
        return S

    def point(self, w: np.ndarray) -> LookPoint:
        """Return an iterate at ``w`` for a solver that moves along lines; one on a device makes passes instead."""
        return LookPoint(self, w) if isinstance(self.matrix, ScoredOnDevice) else OutputsPoint(self, w)

    @functools.cached_property
    def weight_there(self) -> DeviceArray:
        """The weights of the samples where the scores are."""
        return self._beside_scores(self.weight)

    def _beside_scores(self, numbers: np.ndarray) -> DeviceArray:
        """Return one number for each sample where the scores are."""
        return self.matrix.device.to_device(numbers) if isinstance(self.matrix, ScoredOnDevice) else numbers

    @functools.cached_property
    def column_sizes(self) -> np.ndarray:
        """The norms sqrt(sum_i weight_i x_ij^2) of the columns, which are centred if the problem has an intercept."""
        sizes: np.ndarray = np.sqrt(self.matrix.column_squares(self.weight))
        return sizes

    @functools.cached_property
    def score_sizes(self) -> np.ndarray:
        """The norms of the columns, repeated for each output: one for each entry of w."""
        return np.tile(self.column_sizes, self.n_outputs)

    @functools.cached_property
    def reach(self) -> float:
        """A bound of the change of the scores over the set, in the norm of :mod:`condgrad.linalg.rounding`."""
        return float(self.constraint.reach(self.score_sizes))

    def reach_from(self, w: np.ndarray, s: Vertex) -> float:
        """Return a bound of the change of the scores from w, which may be outside the set, to any point of the set."""
        apart = float(self.score_sizes @ np.abs(w - s.to_dense(w.size)))
        return self.reach + apart if apart > self.reach else self.reach

    @functools.cached_property
    def largest_entry(self) -> float:
        """The largest absolute value of an entry of X."""
        return self.matrix.largest_entry()

    def _without(self, *measured: str) -> Self:
        """Return a copy that shares the data, without the cached values of these names."""
        other = copy.copy(self)
        for name in measured:
            other.__dict__.pop(name, None)
        return other

    def over(self, constraint: object) -> Self:
        """Return the same problem over another set; both share the data and their views."""
        other = self._without("reach")
        other._constrain(constraint)
        return other

    def part(self, n_rows: int) -> Self | None:
        """Return the problem on a subsample of ``n_rows`` samples or somewhat more, evenly spread, over the same set.

        Return None if the subsample has no weight, or too few kinds of targets for the intercepts.
        """
        every = max(1, self.n_samples // max(1, n_rows))
        if every == 1:
            return self
        return self._alone(spread_rows(self.n_samples, every), lambda: self.matrix.thinned(every))

    def chosen(self, places: np.ndarray) -> Self | None:
        """Return the problem on some samples alone, as :meth:`part` does; None on a device, too."""
        if isinstance(self.matrix, ScoredOnDevice):
            return None
        return self._alone(places, lambda: self.matrix.chosen(places))

    def _alone(self, places: np.ndarray, matrix_of_them: Callable[[], Any]) -> Self | None:
        weight = self.weight[places]
        if not weight.any():
            return None
        part = self._without("column_sizes", "score_sizes", "reach", "largest_entry", "weight_there")
        part.n_samples, part.weight = weight.size, weight / weight.sum()
        if not part._take_targets_of(self, places):
            return None
        part.matrix = matrix_of_them()
        return part

    @abc.abstractmethod
    def _take_targets_of(self, whole: Self, rows: np.ndarray) -> bool:
        """Set the targets to those of some samples of another problem; return whether they allow intercepts."""

    @abc.abstractmethod
    def with_targets(self, y: ArrayLike) -> Self:
        """Return the same problem with other targets of the same number of outputs; both share the data and views."""

    @abc.abstractmethod
    def null_objective(self) -> float:
        """Return the objective at W = 0."""

    @abc.abstractmethod
    def loss_scale(self) -> float:
        """Return the mean absolute loss at W = 0; tolerances of estimators and paths are relative to it."""

    @abc.abstractmethod
    def derivative_size(self) -> float:
        """Return the size of the derivatives of the loss at W = 0."""

    def slope_size(self, s: Vertex) -> float:
        """Return a bound of the slope of F at W = 0 towards the vertex s: its size if nothing cancelled."""
        return self.derivative_size() * float(np.abs(self.vertex_scores(s)).max())

    @property
    def cost_of_pass(self) -> float:
        """The number of multiply-adds of one look: two for every stored entry of X and output."""
        return 2.0 * self.n_outputs * self.matrix.n_stored

    def _data(self) -> tuple[Any, ...]:
        """Return the shape and the arrays of X for a fingerprint; they do not depend on the storage format of X."""
        if isinstance(self.matrix, ScoredOnDevice):
            return self.matrix.definition()
        X, _ = self.matrix.as_centred()
        if not self.matrix.is_sparse:
            return X.shape, X.astype(np.float64, copy=False)
        X = X.tocsr().astype(np.float64, copy=False)
        return X.shape, X.data, X.indices, X.indptr


def scored(X: Data | DeviceData, device: str | None, who: str) -> Matrix | ScoredOnDevice:
    """Return X as problems of several outputs use it, in memory or on a device; ``who`` is their name in errors."""
    if device is None and not is_on_device(X) and not isinstance(X, DeviceData):
        return matrix_of(X)
    with failures_explained():
        data = X if isinstance(X, DeviceData) else DeviceData.of(X, device_by_name(device or "cuda"))
    if isinstance(data.matrix, StreamedMatrix):
        raise ValueError(f"{who} needs an X that the GPU can hold; got {data!r}. Use float32, or leave device out.")
    return ScoredOnDevice(data.matrix)
