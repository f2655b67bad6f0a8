"""ConstrainedLasso, and ConstrainedLassoCV, which picks the radius by cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.estimators import _cross_validation as validation
from condgrad.estimators._observations import Observations
from condgrad.estimators.regressor import ConstrainedRegressor
from condgrad.linalg.convert import Data
from condgrad.linalg.settings import RandomState
from condgrad.paths import lasso_path
from condgrad.paths.grids import as_radii, check_grid
from condgrad.paths.points import PathInfo
from condgrad.paths.radius_search import go_on_unless_interrupted
from condgrad.paths.validation import check_selection, select
from condgrad.storage.outside_rows import OutsideRows


class ConstrainedLasso(ConstrainedRegressor):
    r"""Lasso in its constrained form: minimises (1/2n) ||y - Xw - b||^2 over ||w||_1 <= radius.

    Parameters
    ----------
    radius : float, optional
        The largest l1 norm. By default it is picked by :func:`condgrad.radius_max` with eps = 0.1: the l1 norm of the
        penalised Lasso whose ``alpha`` is a tenth of the smallest one that gives zero. :class:`ConstrainedLassoCV`
        tunes it.
    feature_weight, positive, lower, upper
        Weights and limits of the coefficients: as in :class:`ConstrainedRegressor`.
    solver, fit_intercept, tol, max_iter, max_time, warm_start, random_state, verbose
        As in :class:`ConstrainedRegressor`.

    Attributes
    ----------
    coef_, intercept_, gap_, rounding_, radius_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ConstrainedRegressor`.

    Examples
    --------
    >>> import condgrad as cg
    >>> model = cg.ConstrainedLasso(radius=1.0, fit_intercept=False).fit([[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0])
    >>> model.coef_
    array([1., 0.])
    """

    loss = "squared"
    constraint = "l1"

    def __init__(
        self,
        radius: float | None = None,
        *,
        feature_weight: PerFeature = None,
        positive: Which = False,
        lower: PerFeature = None,
        upper: PerFeature = None,
        solver: object = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: float = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.radius = radius
        self.feature_weight = feature_weight
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose


class ConstrainedLassoCV(ConstrainedRegressor):
    r"""Lasso over the l1 ball, with the radius chosen by cross-validation.

    For every fold :func:`condgrad.lasso_path` solves the Lasso for all radii, each certified to ``tol``; the radius
    with the smallest mean squared error of prediction is taken for all data.

    Parameters
    ----------
    radii : array, optional
        The radii to choose from. By default ``n_radii`` of them, evenly spaced in their logarithm, up to the l1 norm of
        the solution whose penalty is ``eps`` times the smallest one that gives zero.
    n_radii, eps : int, float
        See ``radii``.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn: 5 by default.
    selection : {"best", "one-standard-error"}
        Which radius: the one with the best mean, or the smallest one whose mean is within one standard error of it.
    fit_intercept, tol, max_iter, verbose
        As in :class:`ConstrainedRegressor`.
    n_jobs : int, optional
        Number of folds solved at a time, on threads: the kernels release the interpreter lock.

    Attributes
    ----------
    coef_, intercept_, gap_, rounding_, radius_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ConstrainedRegressor`, for the chosen radius on all data.
    radii_ : array of shape (n_radii,)
    mse_path_ : array of shape (n_radii, n_folds)
        Mean squared error on the samples left out.
    coef_path_ : CSC matrix of shape (n_features, n_radii)
        Coefficients of all radii on all data.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> data = datasets.simulate_regression(60, 200, n_informative=3, noise=0.1, random_state=0)
    >>> model = cg.ConstrainedLassoCV(n_radii=20, cv=3).fit(data.X, data.y)
    >>> bool(model.score(data.X, data.y) > 0.9), model.mse_path_.shape
    (True, (20, 3))
    """

    loss = "squared"
    constraint = "l1"
    learns_in_batches = False

    def __init__(
        self,
        *,
        radii: ArrayLike | None = None,
        n_radii: int = 100,
        eps: float = 1e-2,
        cv: object = None,
        selection: str = "best",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: float = 1000,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.radii = radii
        self.n_radii = n_radii
        self.eps = eps
        self.cv = cv
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def fit(
        self,
        X: Data | OutsideRows,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Choose the radius and fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or rows on disk
            For rows that :func:`condgrad.rows.open` returns, the radius is chosen on a sample in memory, and the model
            is then fitted to all rows.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Weighs samples in fitting and in the errors. Samples without weight are left out.
        offset : array of shape (n_samples,), optional
            Known numbers that are added to x'w + b in the loss, such as the logarithms of exposures. Predictions of
            the model then need an offset, too.
        """
        data = self._validated(X, y, sample_weight, offset, y_numeric=True)
        data = data._replace(y=data.y.astype(np.float64, copy=False))
        if isinstance(data.X, OutsideRows):
            radius = self._choose_on_sample(data, ("radii_", "coef_path_", "mse_path_"))
            self._solve_all(data, self._targets(data.y), radius=radius)
            self._flatten()
            return self
        parts = validation.folds(self.cv, data.X, data.y, data.weight, is_classifier=False)
        whole = data.weighted_only()
        settings: dict[str, Any] = {"tol": self.tol, "fit_intercept": bool(self.fit_intercept)}
        grid: dict[str, Any] = {"n_radii": self.n_radii, "eps": self.eps}
        if self.radii is not None:
            grid = {"radii": as_radii(self.radii)}
        radii, coefs, info = _path(whole, **grid, **settings)
        go_on_unless_interrupted(info.status)
        if radii[-1] == 0.0:  # y is constant: zero is the solution for every radius
            radii, coefs = np.ones(1), coefs[:, :1]
        tasks = ((_errors, data, train, test, radii, settings) for train, test in parts)
        errors = validation.on_threads(tasks, self.n_jobs)
        self.radii_, self.coef_path_, self.mse_path_ = radii, coefs, np.column_stack(errors)
        k = select(-self.mse_path_, self.selection)
        self._solve_all(whole, [whole.y], [coefs[:, [k]].toarray()[:, 0]], radius=float(radii[k]))
        self._flatten()
        return self

    def _check_settings(self) -> None:
        super()._check_settings()
        check_selection(self.selection)
        check_grid(self.n_radii, self.eps)


def _path(data: Observations, **settings: Any) -> tuple[np.ndarray, Any, PathInfo]:
    """Return the path of the samples."""
    return lasso_path(data.X, data.y, sample_weight=data.weight, offset=data.offset, **settings)


def _errors(
    data: Observations, train: np.ndarray, test: np.ndarray, radii: np.ndarray, settings: dict[str, Any]
) -> np.ndarray:
    """Return the mean squared errors on the samples of ``test`` of the path fitted on those of ``train``."""
    _, coefs, info = _path(data.at(train), radii=radii, **settings)
    go_on_unless_interrupted(info.status)
    active, held_out = np.unique(coefs.indices), data.at(test)
    predictions = held_out.X[:, active] @ coefs[active].toarray() + info.intercept
    if held_out.offset is not None:
        predictions = predictions + held_out.offset[:, None]
    return np.average((held_out.y[:, None] - predictions) ** 2, axis=0, weights=held_out.weight)
