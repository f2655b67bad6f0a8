"""CompletionModel: a completed matrix for predicting, with its certificate."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.linalg.names import visible
from condgrad.losses import Loss
from condgrad.models.ids import Ids, as_ids, places_of
from condgrad.models.recommendations import best_columns, cosines
from condgrad.problems.completion import Biases, CompletionProblem
from condgrad.run.result import Result, Status


class CompletionModel(NamedTuple):
    """A completed matrix with its certificate: factors, biases, and how far it can be from the optimum.

    The prediction at row i and column j is (A B')[i, j] + intercept + row_bias[i] + column_bias[j].

    Attributes
    ----------
    factors : (A, B)
        Arrays of shapes (m, rank) and (n, rank).
    intercept : float
        The mean of the biases over the entries of the fit.
    row_bias, column_bias : arrays
        Differences of rows and columns from the intercept; 0 for those without entries.
    is_row_seen, is_column_seen : arrays of bool
        Which rows and columns had entries in the fit.
    row_labels, column_labels : tuple or None
        The names of rows and columns, or None: words, or the ids of the fit, of any hashable kind.
    loss : a loss of :mod:`condgrad.losses`
    constraint : str
        The ball, as it prints.
    radius : float
    objective, gap, rounding, lower_bound : float
        F(W), the Frank-Wolfe gap at W, a bound of its rounding error (nan if an older file lacks it) and
        the best lower bound of F*, on the entries of the fit.
    status : Status
    solver : str
    n_steps, n_samples : int
        Steps of the solver, and entries of the fit.
    version : str
        The version of condgrad that made the model.
    value_range : (float, float) or None
        Predictions are clipped to this range.

    Examples
    --------
    >>> import condgrad as cg
    >>> ball = cg.constraints.NuclearBall(5.0)
    >>> problem = cg.CompletionProblem([0, 0, 1], [0, 1, 0], [1.0, 2.0, 2.0], cg.losses.Squared(), ball)
    >>> model = cg.CompletionModel.of(problem, cg.minimize(problem, tol=1e-8)).labelled(["ann", "bob"], ["tea", "ale"])
    >>> model.predict(["bob", "ann"], ["tea", "ale"]).round(2)
    array([2., 2.])
    """

    factors: tuple[np.ndarray, np.ndarray]
    intercept: float
    row_bias: np.ndarray
    column_bias: np.ndarray
    is_row_seen: np.ndarray
    is_column_seen: np.ndarray
    row_labels: Ids
    column_labels: Ids
    loss: Loss
    constraint: str
    radius: float
    objective: float
    gap: float
    rounding: float
    lower_bound: float
    status: Status
    solver: str
    n_steps: int
    n_samples: int
    version: str
    value_range: tuple[float, float] | None = None

    @classmethod
    def of(cls, problem: CompletionProblem, result: Result) -> CompletionModel:
        """Return the model that a run on ``problem`` found."""
        from condgrad import __version__

        counts = np.diff(problem.entries.by_row.indptr), np.diff(problem.entries.by_column.indptr)
        intercept, row_bias, column_bias = _centred(result.intercept, counts, problem.shape)
        return cls(
            factors=result.w.compressed().balanced(),
            intercept=intercept,
            row_bias=row_bias,
            column_bias=column_bias,
            is_row_seen=counts[0] > 0,
            is_column_seen=counts[1] > 0,
            row_labels=None,
            column_labels=None,
            loss=problem.loss,
            constraint=repr(problem.constraint),
            radius=float(problem.constraint.radius),
            objective=result.objective,
            gap=result.gap,
            rounding=result.rounding,
            lower_bound=result.lower_bound,
            status=result.status,
            solver=result.solver,
            n_steps=result.n_steps,
            n_samples=problem.n_samples,
            version=__version__,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return self.row_bias.size, self.column_bias.size

    @property
    def rank(self) -> int:
        """The rank of A B'."""
        return self.factors[0].shape[1]

    def __repr__(self) -> str:
        m, n = self.shape
        return (
            f"CompletionModel({self.loss!r} over {visible(self.constraint)}, {m} x {n} of rank {self.rank}, "
            f"objective={self.objective:.6g}, gap={self.gap:.3g}, {self.status.name})"
        )

    def labelled(self, row_labels: Iterable[object] | None, column_labels: Iterable[object] | None) -> CompletionModel:
        """Return the model with names for its rows and columns, which ``predict`` then takes; None for no names."""
        return self._replace(
            row_labels=_as_labels(row_labels, self.shape[0], "row"),
            column_labels=_as_labels(column_labels, self.shape[1], "column"),
        )

    def rows_of(self, labels: Sequence[str]) -> np.ndarray:
        """Return the rows with these names, as written in a file; for an unknown name, the number of rows.

        An id that is not a word is named by how it prints. A model without names takes the digits of whole numbers from
        0 on.
        """
        return _places(labels, self.row_labels, self.shape[0], "row")

    def columns_of(self, labels: Sequence[str]) -> np.ndarray:
        """Return the columns with these names, as :meth:`rows_of` does for rows."""
        return _places(labels, self.column_labels, self.shape[1], "column")

    def predict(self, rows: ArrayLike, columns: ArrayLike) -> np.ndarray:
        """Return the predictions at the given places: whole numbers from 0 on, or the names of rows and columns.

        Whole numbers are places unless there are whole numbers among the names. Words are never places.
        A row or column without entries in the fit is predicted by the biases alone, with a warning.
        """
        p, is_seen = self.predict_and_tell(rows, columns)
        warn_of_unseen(is_seen)
        return p

    def predict_and_tell(self, rows: ArrayLike, columns: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictions, and for each whether its row and its column had entries in the fit."""
        return self.at(as_places(rows, self.row_labels, "row"), as_places(columns, self.column_labels, "column"))

    def at(self, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what :meth:`predict_and_tell` returns, for places, never names."""
        for name, given in (("rows", rows), ("columns", columns)):
            if given.ndim != 1 or given.dtype.kind not in "iu" or (given.size and given.min() < 0):
                raise ValueError(f"{name} must be whole numbers from 0 on; got {given.dtype} of shape {given.shape}.")
        if rows.size != columns.size:
            raise ValueError(f"rows and columns must have one length; got {rows.size} and {columns.size}.")
        m, n = self.shape
        i, j = np.where(rows < m, rows, 0), np.where(columns < n, columns, 0)
        seen_row, seen_column = (rows < m) & self.is_row_seen[i], (columns < n) & self.is_column_seen[j]
        is_seen = seen_row & seen_column
        A, B = self.factors
        W = np.einsum("ij,ij->i", A[i], B[j])
        bias = np.where(seen_row, self.row_bias[i], 0.0) + np.where(seen_column, self.column_bias[j], 0.0)
        return self._clipped(self.intercept + bias + np.where(is_seen, W, 0.0)), is_seen

    def _clipped(self, p: np.ndarray) -> np.ndarray:
        return p if self.value_range is None else np.clip(p, *self.value_range)

    def recommend(
        self, row: Hashable, n: int = 10, *, exclude: Iterable[Hashable] = ()
    ) -> tuple[list[Hashable], np.ndarray]:
        """Return the ``n`` columns with the largest predictions in a row, the best first, and these predictions.

        Parameters
        ----------
        row : an id of the fit, or a place
            One that was not in the fit gets the columns with the largest biases, with a warning.
        n : int
        exclude : ids or places of columns
            Columns to leave out, such as those that the row has already.
        """
        n = as_count(n)
        i = as_places([row], self.row_labels, "row")
        left_out = as_places(list(exclude), self.column_labels, "column") if exclude else np.empty(0, np.int64)
        return self.recommend_at(int(i[0]), n, left_out)

    def recommend_at(self, row: int, n: int, left_out: np.ndarray) -> tuple[list[Hashable], np.ndarray]:
        """Return what :meth:`recommend` returns, for places."""
        if not 0 <= row < self.shape[0] or not self.is_row_seen[row]:
            warnings.warn(
                "the row had no entries in the fit; these are the columns with the largest biases.",
                UserWarning,
                stacklevel=3,
            )
        columns = np.arange(self.shape[1])
        A, B = self.factors
        is_known = 0 <= row < self.shape[0] and bool(self.is_row_seen[row])
        scores = self.intercept + self.column_bias + (B @ A[row] + self.row_bias[row] if is_known else 0.0)
        is_allowed = self.is_column_seen.copy()
        is_allowed[left_out[left_out < self.shape[1]]] = False
        best = best_columns(scores, n, is_allowed)
        return self._columns_named(columns[best]), self._clipped(scores[best])

    def similar_items(self, column: Hashable, n: int = 10) -> tuple[list[Hashable], np.ndarray]:
        """Return the ``n`` columns that are most like a given one, and the cosines of their columns of A B'.

        Parameters
        ----------
        column : an id of the fit, or a place
        n : int
        """
        n = as_count(n)
        j = int(as_places([column], self.column_labels, "column")[0])
        if not 0 <= j < self.shape[1] or not self.is_column_seen[j]:
            raise ValueError(f"the column {column!r} had no entries in the fit, so that nothing is like it.")
        likeness = cosines(*self.factors, j)
        is_allowed = self.is_column_seen.copy()
        is_allowed[j] = False
        best = best_columns(likeness, n, is_allowed)
        return self._columns_named(best), likeness[best]

    def _columns_named(self, places: np.ndarray) -> list[Hashable]:
        known = self.column_labels
        return places.tolist() if known is None else [known[k] for k in places.tolist()]


def as_count(n: object) -> int:
    """Return a number of recommendations."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be a whole number of at least 1; got {n!r}.")
    return int(n)


def as_range(given: object, y: np.ndarray) -> tuple[float, float] | None:
    """Return the range to which predictions are clipped: None, two numbers, or that of the values y for "data"."""
    if given is None:
        return None
    if isinstance(given, str) and given == "data":
        return float(y.min()), float(y.max())
    try:
        low, high = map(float, given)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not low < high:
        raise ValueError(f"value_range must be two ascending numbers, 'data' or None; got {given!r}.")
    return low, high


def warn_of_unseen(is_seen: np.ndarray) -> None:
    """Warn of places that only biases could predict; the warning points to the caller's caller."""
    if not is_seen.all():
        warnings.warn(
            f"{np.count_nonzero(~is_seen)} of {is_seen.size} places lie in rows or columns without entries in the "
            "fit; they are predicted by the biases alone.",
            UserWarning,
            stacklevel=3,
        )


def _centred(
    biases: Biases | None, counts: tuple[np.ndarray, np.ndarray], shape: tuple[int, int]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the mean of the biases over the entries, and the differences of rows and columns from it."""
    if biases is None:
        return 0.0, np.zeros(shape[0]), np.zeros(shape[1])
    means = [float(np.average(bias, weights=count)) for bias, count in zip(biases, counts, strict=True)]
    centred = [np.where(count > 0, bias - mean, 0.0) for bias, count, mean in zip(biases, counts, means, strict=True)]
    return sum(means), centred[0], centred[1]


def _as_labels(labels: Iterable[object] | None, size: int, side: str) -> tuple[str, ...] | None:
    if labels is None:
        return None
    words = tuple(map(str, labels))
    if len(words) != size:
        raise ValueError(f"there must be {size} {side} labels, one per {side}; got {len(words)}.")
    if len(set(words)) != size:
        raise ValueError(f"{side} labels must differ from each other; got {size - len(set(words))} repeats.")
    return words


def as_places(given: object, known: Ids, side: str, *, has_numbers: bool | None = None) -> np.ndarray:
    """Return the places of names.

    Whole numbers are places, unless there are names and some of these are whole numbers (``has_numbers``).
    """
    ids = as_ids(given)
    if has_numbers is None:
        has_numbers = any(isinstance(label, int) for label in known or ())
    if ids is None:
        array = np.asarray(given)
        if known is None or not has_numbers or array.ndim != 1:
            return array
        ids = array.tolist()
    if known is None:
        raise ValueError(
            f"the model has no {side} labels, so that a {side} must be a whole number from 0 on; got {ids[0]!r}."
        )
    return places_of(ids, known)


def _places(labels: Sequence[str], known: Ids, size: int, side: str) -> np.ndarray:
    if known is not None:
        return places_of(labels, [str(label) for label in known])
    strange = [label for label in labels if not (label.isascii() and label.isdigit())]
    if strange:
        raise ValueError(
            f"the model has no {side} labels, so that a {side} must be a whole number from 0 on; got {strange[0]!r}."
        )
    return np.array([min(int(label), size) for label in labels], dtype=np.int64)
