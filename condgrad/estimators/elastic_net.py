"""ConstrainedElasticNet: the Lasso with an l2 term."""

from __future__ import annotations

import math

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.estimators._observations import Observations
from condgrad.estimators._standardised import StandardisesData
from condgrad.estimators.regressor import ConstrainedRegressor
from condgrad.linalg import convert
from condgrad.linalg.settings import RandomState


class ConstrainedElasticNet(StandardisesData, ConstrainedRegressor):
    r"""Elastic net: minimises (1/2n) ||y - Xw - b||^2 + (l2/2) ||w||_2^2 over ||w||_1 <= radius.

    The l2 term selects correlated features together, where the Lasso selects one of them, and makes the solution
    unique. The gap certifies the elastic net itself. It needs a solver of full passes ("auto" takes corrective):
    stochastic solvers do not support the l2 term.

    Parameters
    ----------
    radius : float, optional
        The largest l1 norm. By default held-out samples pick it, as for :class:`ConstrainedLasso`.
    l2 : float
        The factor of the l2 term; alpha (1 - l1_ratio) of scikit-learn's ElasticNet. 0 is the Lasso.
    alpha : float, optional
        In place of ``radius``: the penalty of the l1 norm with the same solution, alpha * l1_ratio of scikit-learn's
        ElasticNet; ``radius_`` is then the l1 norm of that solution.
    standardize : bool
        Whether the budget and the l2 term count coefficients of features that are divided by their standard deviations
        (weighted as the samples are; root mean squares without an intercept). The fit is one of a copy of X that is
        divided by them, which ``result_`` and callbacks tell of; ``coef_`` is that of the features as given.
    feature_weight, positive, lower, upper, rows
        Weights, limits and linear relations of the coefficients: as in :class:`ConstrainedRegressor`.
    solver, fit_intercept, tol, max_iter, max_time, warm_start, random_state, verbose
        As in :class:`ConstrainedRegressor`.

    Attributes
    ----------
    coef_, intercept_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ConstrainedRegressor`; the objective and the gap contain the l2 term.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], [1.0, 2.0, 3.0]  # twice the same feature
    >>> cg.ConstrainedElasticNet(radius=0.5, l2=0.1).fit(X, y).coef_
    array([0.25, 0.25])
    """

    loss = "squared"
    constraint = "l1"
    learns_in_batches = False  # the l2 term belongs to all data, not to every batch

    def __init__(
        self,
        radius: float | None = None,
        *,
        l2: float = 0.1,
        alpha: float | None = None,
        standardize: bool = False,
        feature_weight: PerFeature = None,
        positive: Which = False,
        lower: PerFeature = None,
        upper: PerFeature = None,
        rows: Rows = None,
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
        self.alpha = alpha
        self.l2 = l2
        self.standardize = standardize
        self.feature_weight = feature_weight
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.rows = rows
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _check_settings(self) -> None:
        super()._check_settings()
        convert.as_number(self.l2, "l2", low=0.0, what="a finite number of at least 0", below=math.inf)
        self._check_norm_penalty("alpha", self.alpha)

    def _penalty(self) -> float:
        return float(self.l2)

    def _norm_penalty(self, data: Observations) -> float | None:
        return self.alpha
