"""ConstrainedMultiTaskLasso, and ConstrainedMultiTaskLassoCV, which picks the radius by cross-validation."""

from __future__ import annotations

from numpy.typing import ArrayLike

from condgrad.estimators.regressor import ConstrainedRegressor
from condgrad.estimators.regressor_cv import ValidatedRegressor
from condgrad.linalg.settings import RandomState


class ConstrainedMultiTaskLasso(ConstrainedRegressor):
    r"""Several outputs that share their features: least squares over sum_j ||coef_[:, j]||_2 <= radius.

    A feature is used by all outputs or by none, and one gap certifies all of them. It is scikit-learn's MultiTaskLasso
    in its constrained form: ``alpha_`` is its penalty.

    Parameters
    ----------
    radius : float, optional
        The budget: the largest sum over the features of the norms of their coefficients. By default
        held-out samples pick one, as in :class:`ConstrainedRegressor`.
    solver, fit_intercept, tol, max_iter, max_time, warm_start, random_state, verbose
        As in :class:`ConstrainedRegressor`.

    Attributes
    ----------
    coef_, intercept_, n_outputs_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_,
    feature_names_in_
        As in :class:`ConstrainedRegressor`.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, Y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[3.0, 4.0], [0.1, 0.0], [3.0, 4.1]]
    >>> cg.ConstrainedMultiTaskLasso(2.0, fit_intercept=False).fit(X, Y).coef_.round(2)
    array([[1.2, 0. ],
           [1.6, 0. ]])
    """

    loss = "squared"
    constraint = "group"
    multi_output = "joint"
    learns_in_batches = False

    def __init__(
        self,
        radius: float | None = None,
        *,
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
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose


class ConstrainedMultiTaskLassoCV(ValidatedRegressor):
    r"""Several outputs that share their features, with the radius chosen by cross-validation.

    Parameters
    ----------
    radii, n_radii, eps, cv, scoring, refit, selection, solver, fit_intercept, tol, max_iter, max_time, n_jobs,
    random_state, verbose
        As in :class:`ConstrainedRegressorCV`.

    Attributes
    ----------
    coef_, intercept_, n_outputs_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_,
    feature_names_in_
        As in :class:`ConstrainedMultiTaskLasso`, for the chosen radius on all data.
    radii_, score_path_, score_paths_
        As in :class:`ConstrainedRegressorCV`.

    Examples
    --------
    >>> import numpy as np
    >>> import condgrad as cg
    >>> X = np.random.default_rng(0).standard_normal((60, 5))
    >>> model = cg.ConstrainedMultiTaskLassoCV(n_radii=5, cv=3).fit(X, X[:, :2] + 0.1 * X[:, 2:4])
    >>> model.coef_.shape
    (2, 5)
    """

    loss = "squared"
    constraint = "group"
    multi_output = "joint"

    def __init__(
        self,
        *,
        radii: ArrayLike | None = None,
        n_radii: int = 20,
        eps: float = 1e-2,
        cv: object = None,
        scoring: object = None,
        refit: str | None = None,
        selection: str = "best",
        solver: object = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: float = 1000,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.radii = radii
        self.n_radii = n_radii
        self.eps = eps
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.selection = selection
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
