"""ConstrainedLasso: least squares over the l1 ball."""

from __future__ import annotations

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.estimators._observations import Observations
from condgrad.estimators.regressor import ConstrainedRegressor
from condgrad.linalg.settings import RandomState


class ConstrainedLasso(ConstrainedRegressor):
    r"""Lasso in its constrained form: minimises (1/2n) ||y - Xw - b||^2 over ||w||_1 <= radius.

    Parameters
    ----------
    radius : float, optional
        The largest l1 norm. By default held-out samples pick it, as in :class:`ConstrainedRegressor`;
        :class:`ConstrainedLassoCV` tunes it.
    alpha : float, optional
        In place of ``radius``: the penalty of the Lasso with the same solution, scikit-learn's ``alpha``; ``radius_``
        is then the l1 norm of that solution.
    standardize : bool
        As in :class:`ConstrainedRegressor`.
    feature_weight, positive, lower, upper, rows
        Weights, limits and linear relations of the coefficients: as in :class:`ConstrainedRegressor`.
    solver, fit_intercept, tol, max_iter, max_time, warm_start, random_state, verbose
        As in :class:`ConstrainedRegressor`.

    Attributes
    ----------
    coef_, intercept_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
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
        self._check_norm_penalty("alpha", self.alpha)

    def _norm_penalty(self, data: Observations) -> float | None:
        return self.alpha
