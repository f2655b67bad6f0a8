"""ConstrainedElasticNetCV: the elastic net whose radius, and l2 term, cross-validation picks."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.estimators._cross_validation import Fold
from condgrad.estimators._observations import Observations
from condgrad.estimators._standardised import StandardisesData
from condgrad.estimators.lasso_cv import ValidatedPath
from condgrad.linalg.interrupts import at_most, time_left
from condgrad.paths.grids import as_grid
from condgrad.paths.points import PathInfo


class ConstrainedElasticNetCV(StandardisesData, ValidatedPath):
    r"""Elastic net with the radius, and if wanted the l2 term, chosen by cross-validation.

    For every fold :func:`condgrad.lasso_path` solves (1/2n) ||y - Xw - b||^2 + (l2/2) ||w||_2^2 over ||w||_1 <= radius
    for all radii, each certified to ``tol``.

    Parameters
    ----------
    l2 : float or array
        The factor of the l2 term, or several to choose from: the best radius of each is found by the rule of
        ``selection``, and the l2 whose one has the best mean score is taken.
    standardize : bool
        As in :class:`ConstrainedElasticNet`; every fold has the deviations of the samples that it is fitted to.
    feature_weight, positive, lower, upper, rows
        Weights, limits and linear relations of the coefficients: as in :class:`ConstrainedRegressor`.
    radii, n_radii, eps, cv, scoring, refit, selection, fit_intercept, tol, max_iter, max_time, n_jobs, verbose
        As in :class:`ConstrainedLassoCV`; every l2 has a default grid of its own.

    Attributes
    ----------
    coef_, intercept_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ConstrainedElasticNet`, for the chosen radius and l2 on all data.
    l2_ : float
        The chosen factor.
    l2_scores_ : array
        The mean score of the chosen radius of each l2, in the order in which they were given.
    radii_, mse_path_, score_path_, score_paths_, coef_path_
        As in :class:`ConstrainedLassoCV`, for the chosen l2.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> data = datasets.simulate_regression(60, 30, n_informative=3, noise=0.1, random_state=0)
    >>> model = cg.ConstrainedElasticNetCV(l2=[0.001, 1.0], n_radii=20, cv=3).fit(data.X, data.y)
    >>> model.l2_
    0.001
    """

    l2_: float
    l2_scores_: np.ndarray

    _chosen_with_the_radius = ("mse_path_", "coef_path_", "l2_", "l2_scores_")

    def __init__(
        self,
        *,
        l2: ArrayLike = 0.1,
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
        self.l2 = l2
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

    def _choose_penalty_and_radius(
        self, data: Observations, parts: list[Fold], used: Observations, targets: list[np.ndarray]
    ) -> float:
        best, scores = -np.inf, []
        found: dict[str, Any] = {}
        penalties = as_grid(self.l2, "l2", 0.0).tolist()
        for k, l2 in enumerate(penalties):
            self.l2_ = l2
            with at_most(time_left(1.0 / (len(penalties) - k))):
                radius = super()._choose_penalty_and_radius(data, parts, used, targets)
            scores.append(float(self.score_path_[np.searchsorted(self.radii_, radius)].mean()))
            if not found or scores[-1] > best:
                names = ("l2_", "radii_", "score_path_", "score_paths_", "mse_path_", "coef_path_")
                best, found = scores[-1], {name: getattr(self, name) for name in names} | {"radius_": radius}
        for name, value in found.items():
            setattr(self, name, value)
        self.l2_scores_ = np.array(scores)
        return float(self.radius_)

    def _path(self, data: Observations, **grid: Any) -> tuple[np.ndarray, scipy.sparse.csc_matrix, PathInfo]:
        if not self.standardize:
            return super()._path(data, **grid)
        used, scales = self._scaled(data)
        radii, coefs, info = super()._path(used, **grid)
        return radii, (scipy.sparse.diags(1.0 / scales) @ coefs).tocsc(), info

    def _check_settings(self) -> None:
        super()._check_settings()
        as_grid(self.l2, "l2", 0.0)

    def _penalty(self) -> float:
        return self.l2_
