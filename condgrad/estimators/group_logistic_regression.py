"""ConstrainedGroupLogisticRegression, and ConstrainedGroupLogisticRegressionCV, which picks the radius by folds."""

from __future__ import annotations

from numpy.typing import ArrayLike

from condgrad.estimators._grouped import GroupedFeatures
from condgrad.estimators.classifier import ConstrainedClassifier
from condgrad.estimators.classifier_cv import ValidatedClassifier
from condgrad.linalg.settings import RandomState


class ConstrainedGroupLogisticRegression(GroupedFeatures, ConstrainedClassifier):
    r"""Logistic regression over sum_g group_weight_g ||w_g||_2 <= radius: groups of coefficients are zero together.

    Columns of words of a frame are groups of indicator columns, as in :class:`ConstrainedGroupLasso`. More than two
    classes make one problem each, one class against the rest.

    Parameters
    ----------
    radius : float, optional
        The budget. By default held-out samples pick one, as in :class:`ConstrainedClassifier`.
    feature_groups, group_weight, l1_weight, positive
        As in :class:`ConstrainedGroupLasso`.
    solver, fit_intercept, tol, max_iter, max_time, class_weight, warm_start, random_state, verbose
        As in :class:`ConstrainedClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_
        As in :class:`ConstrainedClassifier`.
    feature_groups_ : array of shape (n_features,)
        The number of the group of each coefficient.
    feature_names_in_ : array of shape (n_features,)
        Names of coefficients: those of the columns of a frame, and "column=category" for columns of words.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [2.0, 1.0, 1.0], [3.0, 0.0, 1.0]], [0, 0, 1, 1]
    >>> model = cg.ConstrainedGroupLogisticRegression(2.0, feature_groups=[0, 1, 1]).fit(X, y)
    >>> model.predict(X)
    array([0, 0, 1, 1])
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
        solver: object = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: float = 1000,
        max_time: float | None = None,
        class_weight: object = None,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.radius = radius
        self.feature_groups = feature_groups
        self.group_weight = group_weight
        self.l1_weight = l1_weight
        self.positive = positive
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose


class ConstrainedGroupLogisticRegressionCV(GroupedFeatures, ValidatedClassifier):
    r"""Logistic regression over balls of groups, with the radius chosen by cross-validation.

    Parameters
    ----------
    feature_groups, group_weight, l1_weight, positive
        As in :class:`ConstrainedGroupLasso`.
    radii, n_radii, eps, cv, scoring, refit, selection, solver, fit_intercept, tol, max_iter, max_time, class_weight,
    n_jobs, random_state, verbose
        As in :class:`ConstrainedClassifierCV`.

    Attributes
    ----------
    coef_, intercept_, classes_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_,
    feature_names_in_, feature_groups_
        As in :class:`ConstrainedGroupLogisticRegression`, for the chosen radius on all data.
    radii_, score_path_, score_paths_
        As in :class:`ConstrainedRegressorCV`.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> data = datasets.simulate_classification(80, 12, n_informative=3, random_state=0)
    >>> model = cg.ConstrainedGroupLogisticRegressionCV(feature_groups=[0, 1, 2] * 4, n_radii=5, cv=3)
    >>> model.fit(data.X, data.y).score_path_.shape[1]
    3
    """

    def __init__(
        self,
        *,
        feature_groups: object = None,
        group_weight: ArrayLike | None = None,
        l1_weight: float = 0.0,
        positive: bool = False,
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
        class_weight: object = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.feature_groups = feature_groups
        self.group_weight = group_weight
        self.l1_weight = l1_weight
        self.positive = positive
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
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
