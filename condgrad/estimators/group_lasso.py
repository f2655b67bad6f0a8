"""ConstrainedGroupLasso, and ConstrainedGroupLassoCV, which picks the radius by cross-validation."""

from __future__ import annotations

from numpy.typing import ArrayLike

from condgrad.estimators._grouped import GroupedFeatures
from condgrad.estimators.regressor import ConstrainedRegressor
from condgrad.estimators.regressor_cv import ValidatedRegressor
from condgrad.linalg.settings import RandomState


class ConstrainedGroupLasso(GroupedFeatures, ConstrainedRegressor):
    r"""Group lasso in its constrained form: least squares over sum_g group_weight_g ||w_g||_2 <= radius.

    Groups of coefficients are zero together.

    A column of words, or of categories, of a pandas or polars frame becomes one indicator column for each of its
    categories, and these are a group. They are never stored: only their codes are (:class:`CodedData`). Categories that
    the fit has not seen count as none of the known ones, with a warning.

    Parameters
    ----------
    radius : float, optional
        The budget. By default held-out samples pick one, as in :class:`ConstrainedRegressor`.
    feature_groups : array of shape (n_columns,) or dict, optional
        A label for each column of X: columns with the same label form a group. A dict gives labels to some names of a
        frame; the others stay alone, and so do all columns by default.
    group_weight : "sqrt-size", or array of shape (n_groups,), optional
        The price of each group, in the order of the first appearance of their labels; by default 1. "sqrt-size" is the
        square root of the number of its features, as in Yuan & Lin (2006).
    l1_weight : float
        Above 0 the norm is l1_weight ||w||_1 + sum_g ||w_g||_2: the sparse group lasso, with zeros within groups, too.
    positive : bool
        Whether all coefficients must be at least 0.
    loss : str or loss object
        "squared", or any loss of a regression.
    solver, fit_intercept, tol, max_iter, max_time, warm_start, random_state, verbose
        As in :class:`ConstrainedRegressor`.

    Attributes
    ----------
    coef_, intercept_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_
        As in :class:`ConstrainedRegressor`.
    feature_groups_ : array of shape (n_features,)
        The number of the group of each coefficient.
    feature_names_in_ : array of shape (n_features,)
        Names of coefficients: those of the columns of a frame, and "column=category" for columns of words.

    References
    ----------
    Yuan & Lin (2006). Simon, Friedman, Hastie & Tibshirani (2013) for the sparse group lasso.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [2.0, 2.0, 4.0, 0.0]
    >>> model = cg.ConstrainedGroupLasso(2.0, feature_groups=[0, 0, 1]).fit(X, y)
    >>> model.coef_.round(3)
    array([1.414, 1.414, 0.   ])
    """

    learns_in_batches = False

    def __init__(
        self,
        radius: float | None = None,
        *,
        feature_groups: object = None,
        group_weight: ArrayLike | None = None,
        l1_weight: float = 0.0,
        positive: bool = False,
        loss: object = "squared",
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
        self.feature_groups = feature_groups
        self.group_weight = group_weight
        self.l1_weight = l1_weight
        self.positive = positive
        self.loss = loss
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose


class ConstrainedGroupLassoCV(GroupedFeatures, ValidatedRegressor):
    r"""Group lasso with the radius chosen by cross-validation.

    Parameters
    ----------
    feature_groups, group_weight, l1_weight, positive, loss
        As in :class:`ConstrainedGroupLasso`.
    radii, n_radii, eps, cv, scoring, refit, selection, solver, fit_intercept, tol, max_iter, max_time, n_jobs,
    random_state, verbose
        As in :class:`ConstrainedRegressorCV`.

    Attributes
    ----------
    coef_, intercept_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_, feature_names_in_,
    feature_groups_
        As in :class:`ConstrainedGroupLasso`, for the chosen radius on all data.
    radii_, score_path_, score_paths_
        As in :class:`ConstrainedRegressorCV`.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> data = datasets.simulate_regression(80, 12, n_informative=3, noise=0.5, random_state=0)
    >>> model = cg.ConstrainedGroupLassoCV(feature_groups=[0, 1, 2] * 4, n_radii=8, cv=3).fit(data.X, data.y)
    >>> bool(model.score(data.X, data.y) > 0.5), model.score_path_.shape[1]
    (True, 3)
    """

    def __init__(
        self,
        *,
        feature_groups: object = None,
        group_weight: ArrayLike | None = None,
        l1_weight: float = 0.0,
        positive: bool = False,
        loss: object = "squared",
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
        self.feature_groups = feature_groups
        self.group_weight = group_weight
        self.l1_weight = l1_weight
        self.positive = positive
        self.loss = loss
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
