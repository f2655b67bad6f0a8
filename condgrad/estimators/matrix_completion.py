"""MatrixCompletion: a matrix of low rank from some of its entries, and what it recommends."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Hashable, Iterable
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from condgrad import losses
from condgrad.constraints import NuclearBall, WeightedNuclearBall
from condgrad.estimators._baselines import Baselines
from condgrad.estimators._fits import as_seed, remedy
from condgrad.estimators._radius_choice import RadiusChoice, held_out
from condgrad.estimators._report import ShownWithItsGap
from condgrad.linalg import convert
from condgrad.linalg.device.arrays import on_host
from condgrad.linalg.factored import Factored
from condgrad.linalg.interrupts import as_seconds
from condgrad.linalg.settings import RandomState
from condgrad.models.completion import CompletionModel, as_count, as_places, as_range, warn_of_unseen
from condgrad.models.files import save_model
from condgrad.models.ids import Ids, learn
from condgrad.problems.completion import CompletionProblem
from condgrad.run.checkpoint import Checkpoint
from condgrad.run.minimize import minimize


class MatrixCompletion(ShownWithItsGap):
    r"""Complete a matrix from some of its entries, under a bound of its nuclear norm.

    Minimises the mean loss of W[i, j] + intercept + row_bias[i] + column_bias[j] at the observed entries over matrices
    W with ||W||_* <= radius (a weighted norm, see ``weighted``); the biases are free. W is stored in factors, so memory
    is of the order of the entries, and ``gap_`` certifies the answer.

    Parameters
    ----------
    radius : float, optional
        The bound of the norm. None picks it: a tenth of the entries is held out, and the radius grows by a
        factor of sqrt(2), from a tenth of sqrt(m n) times the standard deviation of the values, until the loss at the
        held-out entries does not fall by 0.3% any more. Each radius costs one rough fit from the last one, without a
        certificate, whatever ``solver`` is; only the chosen radius is solved to ``tol``, on all entries, from its rough
        fit. In all this takes about as long as one to three fits with a given radius. :class:`MatrixCompletionCV` does
        the same over folds.
    loss : str or loss object
        "squared", or "huber" (default), which is robust to gross errors in the values.
    biases : bool
        Whether rows and columns have free biases.
    bias_shrinkage : float
        Above 0 the biases are fixed beforehand: they minimise the squared error plus this number times the sum of their
        squares, so that those of rows and columns with few entries stay close to 0, and W is fitted to what they leave.
        ``gap_`` certifies W for these biases. For losses of y - p, such as "huber" and "squared". It keeps columns with
        two or three large entries out of recommendations; 5 to 10 is usual for ratings. (The choice of a radius by
        held-out entries uses the biases of all entries.)
    value_range : (float, float), "data" or None
        The range to which predictions are clipped, or the smallest and the largest value of the fit.
    weighted : bool
        Whether the norm is that of diag(p)^(1/2) W diag(q)^(1/2), where p (and q) is the mean of 1 and of the number of
        entries of each row (and column), by their sample weights, over the mean number. Where rows and columns are
        observed unevenly, as in ratings, it predicts better than the plain norm, at a lower rank; where they are
        observed evenly, p and q are 1, and it is the plain norm.
    solver : str or solver object
    tol : float
        Stop at a gap of at most ``tol`` times the loss of the biases alone.
    max_iter : int
        Steps of the solver at most.
    max_time : float, optional
        Seconds at most, half of them for the choice of a radius.
    warm_start : bool
        Whether to start from the last fit where its matrix has the same shape and ids.
    random_state : int or None
        Seed of the held-out entries for ``radius=None``, and of stochastic solvers.
    verbose : bool
        Whether the fit with the given or chosen radius reports its progress.

    Attributes
    ----------
    factors_ : (A, B)
        Arrays with W = A B', of shapes (m, k) and (n, k) for a rank of k.
    rank_, radius_, gap_, rounding_, shape_ : rank and radius, the certificate and its rounding error, (m, n)
    intercept_, row_bias_, column_bias_ : float and arrays; those of rows and columns without entries are 0
    result_, trace_, n_iter_ : what :func:`condgrad.minimize` returned, without the solver's state
    seen_ : CSR matrix of shape (m, n)
        The places of the entries of the fit, which ``recommend`` leaves out.
    ids_ : (tuple or None, tuple or None)
        The ids of rows and columns in the order of their places; None for a side that was given as places.
    model_ : CompletionModel
        All of this for predicting, as :meth:`save` writes it.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> data = datasets.simulate_low_rank(60, 40, 2, 1200, noise=0.1, random_state=0)
    >>> model = cg.MatrixCompletion(radius=80.0, tol=1e-4).fit(data.rows, data.cols, data.values)
    >>> error = model.predict(data.rows, data.cols) - data.values
    >>> bool(np.mean(error**2) < 0.2 * np.var(data.values)), bool(model.gap_ <= 1e-4)
    (True, True)
    """

    def __init__(
        self,
        radius: float | None = None,
        loss: object = "huber",
        *,
        biases: bool = True,
        bias_shrinkage: float = 0.0,
        value_range: tuple[float, float] | str | None = None,
        weighted: bool = True,
        solver: object = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.radius = radius
        self.loss = loss
        self.biases = biases
        self.bias_shrinkage = bias_shrinkage
        self.value_range = value_range
        self.weighted = weighted
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        rows: object,
        columns: object = None,
        values: ArrayLike | None = None,
        *,
        shape: tuple[int, int] | None = None,
        sample_weight: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Self:
        """Fit to the entries at (rows[t], columns[t]) with the given values.

        Parameters
        ----------
        rows, columns : arrays or lists; or a scipy sparse matrix instead of ``rows``, whose stored entries are meant
            Whole numbers are places, counted from 0. Anything else that can be hashed is an id: words, tuples, dates.
            Rows may have places and columns ids, or conversely; ``predict`` then takes the same kinds.
        values : array, one number per entry
        shape : (int, int), optional
            By default just large enough; ids determine it.
        sample_weight : array, one number per entry, optional
        checkpoint : str, Path or Checkpoint, optional
            A file to save the fit in regularly and to continue from, as in :func:`condgrad.minimize`; the choice of a
            radius, which comes before, is not saved.
        """
        if self.radius is not None:
            convert.as_number(self.radius, "radius", low=0.0, what="a positive number, or None")
        began = time.perf_counter()
        problem, ids = self._problem(*as_entries(rows, columns, values, shape), sample_weight)
        radius, start = self.radius, self._last_matrix(problem, ids)
        if radius is None:
            split = held_out(problem.n_samples, 10, as_seed(self.random_state))[:1]
            choice = RadiusChoice(problem, self._ball, split, self._deadline(began, 0.5))
            choice.try_growing(self._natural_radius(problem))
            radius, start = choice.best_radius, choice.best_matrix if start is None else start
        self._fit_to(problem, ids, float(radius), start, self._deadline(began), checkpoint)
        return self

    def predict(self, rows: object, columns: object) -> np.ndarray:
        """Return the predictions at the given places: whole numbers from 0 on, or ids where the fit had ids.

        A row or column without entries in the fit is predicted by the biases alone, with a warning.
        """
        check_is_fitted(self)
        # Where the fit had ids, a whole number is an id too, not a place.
        i = as_places(rows, self.ids_[0], "row", has_numbers=True)
        j = as_places(columns, self.ids_[1], "column", has_numbers=True)
        p, is_seen = self.model_.at(i, j)
        warn_of_unseen(is_seen)
        return p

    def recommend(self, row: Hashable, n: int = 10, *, new_only: bool = True) -> tuple[list[Hashable], np.ndarray]:
        """Return the ``n`` columns with the largest predictions in a row, the best first, and these predictions.

        Parameters
        ----------
        row : an id of the fit, or a place
            One that was not in the fit gets the columns with the largest biases, with a warning.
        n : int
        new_only : bool
            Whether to leave out the columns of which the row had entries in the fit.
        """
        check_is_fitted(self)
        n = as_count(n)
        i = int(as_places([row], self.ids_[0], "row", has_numbers=True)[0])
        is_inside = new_only and 0 <= i < self.shape_[0]
        seen = self.seen_.indices[self.seen_.indptr[i] : self.seen_.indptr[i + 1]] if is_inside else np.empty(0, int)
        return self.model_.recommend_at(i, n, seen)

    def similar_items(self, column: Hashable, n: int = 10) -> tuple[list[Hashable], np.ndarray]:
        """Return the ``n`` columns that are most like a given one, and the cosines of their columns of W.

        Parameters
        ----------
        column : an id of the fit, or a place
        n : int
        """
        check_is_fitted(self)
        return self.model_.similar_items(column, n)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        row_labels: Iterable[object] | None = None,
        column_labels: Iterable[object] | None = None,
    ) -> None:
        """Write the fitted model to a file, without pickle; :func:`condgrad.load_model` returns a CompletionModel.

        Parameters
        ----------
        path : str or path
            An existing file is replaced.
        row_labels, column_labels : sequences of str, optional
            Names of the rows and columns, by which the loaded model then predicts too; by default the ids of the fit.
        """
        check_is_fitted(self)
        named = self.model_.labelled(row_labels, column_labels)
        learned: dict[str, Any] = dict(zip(("row_labels", "column_labels"), self.ids_, strict=True))
        save_model(path, named._replace(**{name: ids for name, ids in learned.items() if getattr(named, name) is None}))

    def score(self, rows: object, columns: object, values: ArrayLike) -> float:
        """Return the coefficient of determination R^2 of the predictions."""
        true = np.asarray(values, dtype=np.float64)
        error = self.predict(rows, columns) - true
        return float(1.0 - (error @ error) / ((true - true.mean()) ** 2).sum())

    def _problem(
        self,
        rows: object,
        columns: object,
        values: ArrayLike,
        shape: tuple[int, int] | None,
        sample_weight: ArrayLike | None,
    ) -> tuple[CompletionProblem, tuple[Ids, Ids]]:
        """Return the problem over the unit ball, and the ids of its rows and columns (None: they are numbered)."""
        convert.as_number(self.tol, "tol", low=0.0, what="a number of at least 0")
        as_seconds(self.max_time)
        loss = losses.by_name(self.loss) if isinstance(self.loss, str) else self.loss
        (i, row_ids), (j, column_ids) = learn(rows, "rows"), learn(columns, "columns")
        shrinkage = self._check_shrinkage(loss)
        problem = CompletionProblem(
            i, j, values, loss, NuclearBall(1.0), shape=shape, sample_weight=sample_weight,
            biases=self.biases and shrinkage == 0.0,
        )  # fmt: skip
        entries, samples = problem.entries, problem.samples
        self._range, self._baselines = as_range(self.value_range, samples.y), None
        if shrinkage > 0.0:
            weight = samples.weight * problem.n_samples  # as many units as there are entries
            fixed = Baselines.of(entries.rows, entries.columns, samples.y, weight, problem.shape, shrinkage)
            problem.samples = samples._replace(y=samples.y - fixed.at(entries.rows, entries.columns))
            self._baselines = fixed
        for name, ids, size in zip(("row", "column"), (row_ids, column_ids), problem.shape, strict=True):
            if ids is not None and len(ids) != size:
                raise ValueError(
                    f"shape asks for {size} {name}s, but there are {len(ids)} {name} ids; leave shape out."
                )
        return problem, (row_ids, column_ids)

    def _check_shrinkage(self, loss: Any) -> float:
        """Return the shrinkage of the biases, or raise where it has no meaning."""
        shrinkage = convert.as_number(self.bias_shrinkage, "bias_shrinkage", low=0.0, what="a number of at least 0")
        if shrinkage == np.inf:
            raise ValueError("bias_shrinkage must be finite; got inf. Use biases=False for a model without biases.")
        if shrinkage > 0.0 and not self.biases:
            raise ValueError("bias_shrinkage needs biases=True; leave it at 0 for a model without biases.")
        if shrinkage > 0.0 and (loss.classes is not None or loss.link != "identity"):
            raise ValueError(f"bias_shrinkage needs a loss of y - p, such as 'huber' or 'squared'; got {loss!r}.")
        return shrinkage

    def _ball(self, problem: CompletionProblem, radius: float) -> NuclearBall:
        if not self.weighted:
            return NuclearBall(radius)
        entries, weight = problem.entries, problem.samples.weight
        return WeightedNuclearBall.of_entries(
            radius, entries.rows, entries.columns, problem.shape, sample_weight=weight
        )

    def _run_settings(self, problem: CompletionProblem) -> dict[str, Any]:
        """Return the arguments of ``minimize``."""
        return {
            "tol": self.tol * problem.loss_scale(),
            "max_steps": self.max_iter,
            "max_epochs": np.inf,
            "random_state": as_seed(self.random_state),
            "verbose": bool(self.verbose),
        }

    def _deadline(self, began: float, share: float = 1.0) -> float:
        """Return the time at which a share of max_time, counted from ``began``, is over."""
        return math.inf if self.max_time is None else began + share * self.max_time

    def _fit_to(
        self,
        problem: CompletionProblem,
        ids: tuple[Ids, Ids],
        radius: float,
        start: Factored | None,
        deadline: float,
        checkpoint: str | os.PathLike[str] | Checkpoint | None,
    ) -> None:
        """Solve the problem over the ball of the given radius, and set the fitted attributes."""
        problem = problem.over(self._ball(problem, radius))
        settings = self._run_settings(problem)
        w0 = None if start is None else _scaled_into(problem.constraint, start)
        result = minimize(
            problem, self.solver, w0=w0, max_time=_seconds_left(deadline), checkpoint=checkpoint, **settings
        )
        if not result.gap + result.rounding <= settings["tol"]:
            warnings.warn(
                f"the Frank-Wolfe gap {result.gap + result.rounding:.3g} is above tol times the loss of the biases, "
                f"{settings['tol']:.3g}: {remedy(result.status, self.max_iter, self.max_time, has_features=False)}",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.ids_ = ids
        model = CompletionModel.of(problem, result)
        if self._baselines is not None:
            mean, a, b = self._baselines
            model = model._replace(intercept=mean, row_bias=a, column_bias=b)
        model = model._replace(row_labels=ids[0], column_labels=ids[1], value_range=self._range)
        self.model_, self.seen_ = model, _places_of(problem)
        self.factors_, self.intercept_ = model.factors, model.intercept
        self.row_bias_, self.column_bias_ = model.row_bias, model.column_bias
        self.shape_, self.rank_, self.radius_ = model.shape, model.rank, model.radius
        self.gap_, self.rounding_ = result.gap, result.rounding
        self.trace_, self.n_iter_ = result.trace, max(1, result.n_steps)
        self.result_ = result._replace(state=None)  # the state holds the data

    def _last_matrix(self, problem: CompletionProblem, ids: tuple[Ids, Ids]) -> Factored | None:
        """Return the matrix of the last fit for a warm start, or None if its rows and columns were others."""
        if not (self.warm_start and hasattr(self, "factors_") and self.shape_ == problem.shape and self.ids_ == ids):
            return None
        A, B = self.factors_
        return Factored(A, np.ones(A.shape[1]), B)

    def _natural_radius(self, problem: CompletionProblem) -> float:
        """Return the norm that independent values of the size of those given would have."""
        return max(problem.null_spread() * math.sqrt(problem.shape[0] * problem.shape[1]), 1e-12)


def as_entries(
    rows: object, columns: object, values: ArrayLike | None, shape: tuple[int, int] | None
) -> tuple[object, object, ArrayLike, tuple[int, int] | None]:
    """Return rows, columns, values and shape, from arrays or from the stored entries of a sparse matrix."""
    rows, columns, values = map(on_host, (rows, columns, values))
    if not scipy.sparse.issparse(rows):
        if columns is None or values is None:
            raise ValueError("fit takes rows, columns and values, or a scipy sparse matrix; got neither.")
        return rows, columns, values, shape
    if columns is not None or values is not None:
        raise ValueError("fit takes a sparse matrix alone, or rows, columns and values; got both.")
    matrix = scipy.sparse.coo_array(rows)
    return matrix.row, matrix.col, matrix.data, matrix.shape if shape is None else shape


def _scaled_into(ball: NuclearBall, W: Factored) -> Factored:
    """Return the multiple of W that lies in the ball, W itself if it does."""
    return W.scaled(None, None, min(1.0, ball.radius / max(ball.norm(W), 1e-300)))


def _seconds_left(deadline: float) -> float | None:
    return None if deadline == math.inf else max(0.0, deadline - time.perf_counter())


def _places_of(problem: CompletionProblem) -> scipy.sparse.csr_array:
    """Return which entries a problem has."""
    side = problem.entries.by_row
    return scipy.sparse.csr_array((np.ones(side.others.size, bool), side.others, side.indptr), shape=problem.shape)
