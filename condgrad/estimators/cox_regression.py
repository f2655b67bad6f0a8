"""ConstrainedCoxRegression: Cox's proportional hazards model over any set."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.estimators._observations import Observations
from condgrad.estimators._survival_model import SurvivalModel
from condgrad.linalg.convert import Data
from condgrad.problems.cox.problem import BRESLOW


class ConstrainedCoxRegression(SurvivalModel):
    r"""Cox's proportional hazards model: the hazard of a sample at t is h(t) exp(x'w), with w in a constraint set.

    It minimises the negative log partial likelihood over the number of samples (:class:`condgrad.CoxProblem`), which
    needs no h. So ``alpha_`` is the penalty of glmnet and of scikit-survival's CoxnetSurvivalAnalysis with the same
    solution, for features that are not standardised there.

    Parameters
    ----------
    radius : float, optional
        The size of a named set. By default held-out samples pick one, as in
        :class:`ConstrainedRegressor`, by their own partial likelihood.
    alpha : float, optional
        In place of a radius: the penalty of the l1 norm whose solution is wanted, glmnet's lambda. Its solution lies on
        a ball, and ``radius_`` is the radius of that.
    ties : {"breslow", "efron"}
        The rule for events at the same time. Breslow's is that of glmnet and scikit-survival, Efron's that of R's
        coxph: more accurate where ties are many.
    constraint : str or set
        As in :class:`ConstrainedRegressor`.
    feature_weight, positive, lower, upper, rows
        Weights, limits and linear relations of the coefficients: as in :class:`ConstrainedRegressor`. Features of
        weight 0 are free: age and sex beside thousands of genes.
    solver : str or solver object
        A solver of full passes: "auto", "corrective", "fw", "lazy", "away", "pairwise", "bpcg" or "boosted".
    tol : float
        Accuracy: stop when the exact Frank-Wolfe gap is at most this share of half the mean deviance at w = 0.
    max_iter, max_time, warm_start, verbose
        As in :class:`ConstrainedRegressor`.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        The logarithms of hazard ratios. ``intercept_`` is 0: h takes its place.
    baseline_ : BaselineHazard, or dict with one for each stratum
        Breslow's estimate of the cumulative hazard of a sample with x'w = 0: ``times`` and ``cumulative_hazard``.
    event_times_ : array
        The times of events, ascending.
    strata_ : array or None
        The labels of the strata.
    gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ConstrainedRegressor`.

    References
    ----------
    Cox (1972). Breslow (1974). Efron (1977). Simon, Friedman, Hastie & Tibshirani (2011).

    Examples
    --------
    >>> import numpy as np
    >>> import condgrad as cg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 5))
    >>> y = np.column_stack([rng.exponential(np.exp(-X[:, 0])), rng.random(200) < 0.7])  # times, and events seen
    >>> model = cg.ConstrainedCoxRegression(radius=0.5).fit(X, y)
    >>> model.coef_.round(2) + 0.0, round(model.score(X, y), 2)
    (array([0.5, 0. , 0. , 0. , 0. ]), 0.71)
    >>> model.predict_survival_function(X[:1], times=[0.5, 1.0]).round(2)
    array([[0.7, 0.5]])
    """

    def __init__(
        self,
        radius: float | None = None,
        *,
        alpha: float | None = None,
        ties: str = BRESLOW,
        constraint: object = "l1",
        feature_weight: PerFeature = None,
        positive: Which = False,
        lower: PerFeature = None,
        upper: PerFeature = None,
        rows: Rows = None,
        solver: object = "auto",
        tol: float = 1e-6,
        max_iter: float = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.radius = radius
        self.alpha = alpha
        self.ties = ties
        self.constraint = constraint
        self.feature_weight = feature_weight
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.rows = rows
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(
        self,
        X: Data,
        y: Any,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        strata: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples, 2), structured array or data frame
            Two columns: times, and 1 for an event or 0 for a censored sample. In a structured array (as scikit-survival
            makes them) and in a data frame, a boolean column holds the events, whatever its place.
        sample_weight : array of shape (n_samples,), optional
            Samples without weight are left out, as if never given.
        offset : array of shape (n_samples,), optional
            Known numbers that are added to x'w. Predictions of the model then need an offset, too.
        strata : array of shape (n_samples,), optional
            Labels: each stratum has its own h, and samples are compared within their stratum only.
        """
        data = self._observed(X, y, sample_weight, offset, strata).weighted_only()
        self._solve_all(data, [data.y], self._starts(1, (1, data.X.shape[1])))
        self._flatten()
        return self

    def _check_settings(self) -> None:
        super()._check_settings()
        self._check_norm_penalty("alpha", self.alpha)

    def _norm_penalty(self, data: Observations) -> float | None:
        return None if self.alpha is None else float(self.alpha)
