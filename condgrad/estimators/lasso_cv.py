"""ConstrainedLassoCV: the Lasso whose radius cross-validation picks, by whole paths of the folds."""

from __future__ import annotations

import contextlib
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.engine.moments import Moments
from condgrad.engine.quadratic import Points
from condgrad.estimators._cross_validation import Fold, folds
from condgrad.estimators._observations import Observations
from condgrad.estimators.regressor_cv import ValidatedRegressor
from condgrad.linalg.interrupts import at_most, time_is_over, time_left
from condgrad.paths import lasso_path
from condgrad.paths.allowed_sets import sets_of
from condgrad.paths.grids import as_radii, shares
from condgrad.paths.points import PathInfo
from condgrad.paths.radius_search import go_on_unless_interrupted
from condgrad.paths.tall import (
    TallFolds,
    TallPath,
    gauge_of_sets,
    has_moments,
    is_tall,
    largest_radius,
    table_of,
    unless_late,
)
from condgrad.run.result import Status

_GRID = 0.2  # share of the time for the path of all data, whose radii are those of the folds
_STRETCHES = 8  # of radii, between which folds on moments look at the clock
_ERRORS = "neg_mean_squared_error"


class _RoundingError(Exception):
    """The moments of samples on disk leave a point uncertified, and no other way is at hand."""


class ValidatedPath(ValidatedRegressor):
    """Base of the Lasso and the elastic net with cross-validation: the points of a fold are those of one path."""

    loss = "squared"
    constraint = "l1"

    mse_path_: np.ndarray
    coef_path_: scipy.sparse.csc_matrix

    _chosen_with_the_radius: tuple[str, ...] = ("mse_path_", "coef_path_")
    _folds: TallFolds | None = None  # during a fit: the moments of a tall table, which say all about every fold

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _fit_validated(self, data: Observations, groups: ArrayLike | None) -> Self:
        try:
            return super()._fit_validated(data, groups)
        finally:
            self._folds = None

    def _choose_from_grid(
        self, data: Observations, parts: list[Fold], used: Observations, targets: list[np.ndarray]
    ) -> float:
        if self._folds is None:  # once for all l2, in the time of all
            self._folds = self._tall_folds(data, parts)
        return self._choose_penalty_and_radius(data, parts, used, targets)

    def _choose_penalty_and_radius(
        self, data: Observations, parts: list[Fold], used: Observations, targets: list[np.ndarray]
    ) -> float:
        """Return the best radius, for the best of several l2 where there are any."""
        return super()._choose_from_grid(data, parts, used, targets)

    def _choose_outside(
        self, data: Observations, groups: ArrayLike | None, used: Observations, targets: list[np.ndarray]
    ) -> float:
        if has_moments(data.X) and self.scoring is None and not self.standardize:  # these need X in memory
            outline = np.broadcast_to(0.0, (data.y.size, 1))
            parts = folds(self.cv, outline, data.y, data.weight, groups, is_classifier=False)
            self._folds = self._tall_folds(data, parts)
            if self._folds is not None:
                with contextlib.suppress(_RoundingError):
                    return self._choose_from_grid(data, parts, used, targets)
                self._folds = None
        return super()._choose_outside(data, groups, used, targets)

    def _tall_folds(self, data: Observations, parts: list[Fold]) -> TallFolds | None:
        """Return the folds of a table that is tall enough to be solved on its moments, None for other data."""
        n_targets = (len(parts) + 1) * (self.n_radii if self.radii is None else as_radii(self.radii).size)
        terms = self.feature_weight, self.positive, self.lower, self.upper, self.rows
        gauge = gauge_of_sets(sets_of(self.constraint, self._columns, *terms))
        if gauge is None or not is_tall(data.X, n_targets):
            return None

        def summed() -> TallFolds:
            return TallFolds(table_of(*data, is_centred=bool(self.fit_intercept)), parts, gauge)

        found = unless_late(summed)
        return found if found is not None and found.are_exact_enough else None

    def _points(self, folds: TallFolds, moments: Moments, radii: np.ndarray) -> Points:
        """Return the solutions for some samples of a tall table; raise where rounding leaves one uncertified."""
        quadratic = folds.quadratic(moments, self._penalty(), standardize=bool(self.standardize))
        path = TallPath(quadratic, radii, tol=self.tol, is_penalised=False)
        if not path.is_certified:
            raise _RoundingError
        return path.points

    def _grid(self, data: Observations, targets: list[np.ndarray]) -> np.ndarray:
        given = None if self.radii is None else as_radii(self.radii)
        if (folds := self._folds) is not None:
            whole = folds.quadratic(folds.whole, self._penalty(), standardize=bool(self.standardize))
            radii = largest_radius(whole, self.eps, self.tol) * shares(self.n_radii) if given is None else given
            self.coef_path_ = self._path_of_all(data, radii[:1] if time_is_over() else radii)
        else:
            grid: dict[str, Any] = {"n_radii": self.n_radii, "eps": self.eps}
            with at_most(time_left(_GRID)):
                radii, self.coef_path_, _ = self._path(data, **(grid if given is None else {"radii": given}))
        if radii[-1] > 0.0:
            return radii
        self.coef_path_ = self.coef_path_[:, :1]  # y is constant: zero is the solution for every radius
        return np.ones(1)

    def _path_of_all(self, data: Observations, radii: np.ndarray) -> scipy.sparse.csc_matrix:
        """Return the coefficients for some radii on all data."""
        if (folds := self._folds) is not None:
            try:
                return scipy.sparse.csc_matrix(self._points(folds, folds.whole, radii).W.T)
            except _RoundingError:
                if has_moments(data.X):
                    raise
        return self._path(data, radii=radii)[1]

    def _choose(self, data: Observations, parts: list[Fold], radii: np.ndarray) -> float:
        radius = super()._choose(data, parts, radii)
        self.mse_path_ = -self.score_paths_[_ERRORS if self.scoring is not None else self._chosen_metric()]
        self.coef_path_ = self.coef_path_[:, : self.radii_.size]
        if self.radii_.size > radii.size:
            more = self._path_of_all(data.weighted_only(), self.radii_[radii.size :])
            self.coef_path_ = scipy.sparse.hstack([self.coef_path_, more], format="csc")
        return radius

    def _known_starts(self, radius: float) -> list[np.ndarray] | None:
        k = int(np.searchsorted(self.radii_, radius))
        if k >= self.coef_path_.shape[1]:  # the time was over before
            return None
        return [self.coef_path_[:, [k]].toarray()[:, 0]]

    def _validation_scores(self, data: Observations, parts: list[Fold], radii: np.ndarray) -> dict[str, np.ndarray]:
        if (folds := self._folds) is None:
            return super()._validation_scores(data, parts, radii)
        if time_left() is None:
            return self._scores_on_moments(folds, data, parts, radii)
        found = [self._scores_on_moments(folds, data, parts, radii[:1])]
        for some in np.array_split(radii[1:], _STRETCHES):
            if some.size and not time_is_over():
                found.append(self._scores_on_moments(folds, data, parts, some))
        return {name: np.vstack([scores[name] for scores in found]) for name in found[0]}

    def _scores_on_moments(
        self, folds: TallFolds, data: Observations, parts: list[Fold], radii: np.ndarray
    ) -> dict[str, np.ndarray]:
        columns = []
        for k, (train, test) in enumerate(parts):
            try:
                points = self._points(folds, folds.train(k), radii)
            except _RoundingError:
                if has_moments(data.X):
                    raise
                columns.append(self._fold_scores(data, train, test, radii))
                continue
            errors = -folds.errors(k, points)
            columns.append(self._scores_of_points(points.W, points.intercept, errors, data, test))
        return {name: np.column_stack([scores[name] for scores in columns]) for name in columns[0]}

    def _fold_scores(
        self, data: Observations, train: np.ndarray, test: np.ndarray, radii: np.ndarray
    ) -> dict[str, np.ndarray]:
        _, coefs, info = self._path(data.at(train), radii=radii)
        errors = _squared_errors(coefs, info.intercept, data.at(test))
        return self._scores_of_points(coefs.toarray().T, info.intercept, -errors, data, test)

    def _scores_of_points(
        self, coefs: np.ndarray, intercept: np.ndarray, errors: np.ndarray, data: Observations, test: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the scores of the models of all radii, one a row, whose negative squared errors are known."""
        if not (scorers := self._scorers()):
            return {self._chosen_metric(): errors}
        held_out = data.at(test)
        each = [self._scores_of(coefs[[k]], intercept[[k]], held_out, scorers) for k in range(errors.size)]
        return {name: np.array([scores[name] for scores in each]) for name in scorers} | {_ERRORS: errors}

    def _path(self, data: Observations, **grid: Any) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
        """Return the path of the samples; KeyboardInterrupt tells of Ctrl-C."""
        radii, coefs, info = lasso_path(
            data.X, data.y, sample_weight=data.weight, offset=data.offset, tol=self.tol, l2=self._penalty(),
            max_epochs=self.max_iter, fit_intercept=bool(self.fit_intercept), **self._terms(data), **grid,
        )  # fmt: skip
        go_on_unless_interrupted(info.status)
        self._is_cut_short |= info.status is Status.MAX_TIME
        return radii, coefs, info

    def _terms(self, data: Observations) -> dict[str, Any]:
        """Return weights, limits and rows as arrays: the samples of a fold have no names of features."""
        sets = self._allowed_sets(data)
        if sets is None:
            return {}
        weights, lower, upper = sets.allowance
        rows = None
        if sets.rows is not None:
            rows = {name: part for name, part in sets.rows._asdict().items() if part is not None}
        return {"feature_weight": weights, "lower": lower, "upper": upper, "rows": rows}


def _squared_errors(coefs: scipy.sparse.csc_matrix, intercept: np.ndarray, held_out: Observations) -> np.ndarray:
    """Return the mean squared error of each column of coefficients."""
    active = np.unique(coefs.indices)
    predictions = held_out.X[:, active] @ coefs[active].toarray() + intercept
    if held_out.offset is not None:
        predictions = predictions + held_out.offset[:, None]
    return np.average((held_out.y[:, None] - predictions) ** 2, axis=0, weights=held_out.weight)


class ConstrainedLassoCV(ValidatedPath):
    r"""Lasso over the l1 ball, with the radius chosen by cross-validation.

    For every fold :func:`condgrad.lasso_path` solves the Lasso for all radii, each certified to ``tol``; the radius
    with the smallest mean squared error of prediction is taken for all data.

    Parameters
    ----------
    radii : array, optional
        The radii to choose from. By default ``n_radii`` of them, evenly spaced in their logarithm, up to the l1 norm of
        the solution whose penalty is ``eps`` times the smallest one that gives zero, and more where the largest one has
        the best score, as in :class:`ConstrainedRegressorCV`.
    n_radii, eps : int, float
        See ``radii``.
    standardize : bool
        As in :class:`ConstrainedRegressor`; every fold has the deviations of the samples that it is fitted to.
    feature_weight, positive, lower, upper, rows
        Weights, limits and linear relations of the coefficients: as in :class:`ConstrainedRegressor`.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn: 5 by default. ``fit`` takes the ``groups`` of a splitter.
    scoring : str, callable, list or dict, optional
        Scorers of scikit-learn. By default minus the mean squared error.
    refit : str, optional
        Which of several scorers chooses the radius.
    selection : {"best", "one-standard-error"}
        Which radius: the one with the best mean, or the smallest one whose mean is within one standard error of it.
    fit_intercept, tol, max_iter, max_time, verbose
        As in :class:`ConstrainedRegressor`.
    n_jobs : int, optional
        Number of folds solved at a time, on threads: the kernels release the interpreter lock.

    Attributes
    ----------
    coef_, intercept_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ConstrainedRegressor`, for the chosen radius on all data.
    radii_ : array of shape (n_radii,)
        Those tried, ascending.
    mse_path_ : array of shape (n_radii, n_folds)
        Mean squared error on the samples left out.
    score_path_ : array of shape (n_radii, n_folds)
        Scores of the samples left out, larger is better: minus ``mse_path_`` where ``scoring`` is None.
    score_paths_ : dict
        The same for each scorer, by their names; where ``scoring`` is given, "neg_mean_squared_error" is among them.
    coef_path_ : CSC matrix of shape (n_features, n_radii)
        Coefficients of all radii on all data.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> data = datasets.simulate_regression(60, 200, n_informative=3, noise=0.1, random_state=0)
    >>> model = cg.ConstrainedLassoCV(n_radii=20, cv=3).fit(data.X, data.y)
    >>> bool(model.score(data.X, data.y) > 0.9), model.mse_path_.shape[1]
    (True, 3)
    """

    def __init__(
        self,
        *,
        radii: ArrayLike | None = None,
        n_radii: int = 100,
        eps: float = 1e-2,
        standardize: bool = False,
        feature_weight: PerFeature = None,
        positive: Which = False,
        lower: PerFeature = None,
        upper: PerFeature = None,
        rows: Rows = None,
        cv: object = None,
        scoring: object = None,
        refit: str | None = None,
        selection: str = "best",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: float = 1000,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.radii = radii
        self.n_radii = n_radii
        self.eps = eps
        self.standardize = standardize
        self.feature_weight = feature_weight
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.rows = rows
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
