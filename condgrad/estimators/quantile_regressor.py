"""ConstrainedQuantileRegressor: quantiles of y, with a bound for the true pinball loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import d2_pinball_score

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.estimators._observations import Observations
from condgrad.estimators.regressor import ConstrainedRegressor
from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import on_host
from condgrad.linalg.settings import RandomState
from condgrad.losses import Loss, Pinball
from condgrad.run.result import Result
from condgrad.storage.outside_rows import OutsideRows

_SHARE = 1e-3  # default width: by so much of the loss of a constant the rounded corner may change the loss at most
_MARGIN = 1e-12  # rounding of the mean of the pinball losses, relative to it


class ConstrainedQuantileRegressor(ConstrainedRegressor):
    r"""Quantile regression: minimises the mean pinball loss of x'w + b over ||w||_1 <= radius, or over any set.

    The pinball loss max(q e, (q - 1) e) of the error e = y - (x'w + b) has a corner, which is rounded by a parabola of
    length ``width`` (:class:`condgrad.losses.Pinball`). The rounded loss is below the pinball loss, by at most
    max(q, 1 - q)^2 width / 2. So, with w the minimiser of the rounded mean up to ``gap_``, the *true* mean pinball loss
    of w exceeds its minimum by at most::

        quantile_gap_ = (mean pinball loss of w) - (rounded mean of w) + gap_ + rounding_,

    which is less than that bound where most errors are larger than the width.

    Parameters
    ----------
    quantile : float
        Which quantile, strictly between 0 and 1; 0.5 is the median.
    width : float, optional
        Length of the parabola, in the units of y. By default one that changes the mean loss by at most a thousandth of
        the loss of a constant. A smaller one costs more passes over the data.
    constraint, radius, feature_weight, positive, lower, upper, rows
        As in :class:`ConstrainedRegressor`.
    solver, fit_intercept, tol, max_iter, max_time, warm_start, random_state, verbose
        As in :class:`ConstrainedRegressor`.

    Attributes
    ----------
    quantile_gap_ : float, or array with one entry per output
        A bound for the excess of the true mean pinball loss over its minimum.
    width_ : float
        The width that was used.
    coef_, intercept_, gap_, rounding_, radius_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ConstrainedRegressor`, for the rounded loss.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 2.0, 3.0, 40.0]
    >>> model = cg.ConstrainedQuantileRegressor(0.5, radius=1.0).fit(X, y)
    >>> model.coef_.round(2), bool(model.quantile_gap_ < 0.01)
    (array([1.]), True)
    """

    loss = "pinball"
    width_ = 1.0  # until fit has chosen one
    learns_in_batches = False  # the default width needs all data

    def __init__(
        self,
        quantile: float = 0.5,
        *,
        width: float | None = None,
        constraint: object = "l1",
        radius: float | None = None,
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
        self.quantile = quantile
        self.width = width
        self.constraint = constraint
        self.radius = radius
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

    def score(
        self,
        X: Data,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
    ) -> float:
        """Return D^2 of the pinball loss: the share of the loss of the best constant that the model explains."""
        y, predicted, weight = map(on_host, (y, self.predict(X, offset, exposure=exposure), sample_weight))
        return float(d2_pinball_score(y, predicted, sample_weight=weight, alpha=self.quantile))

    def _check_settings(self) -> None:
        super()._check_settings()
        if not 0.0 < convert.as_number(self.quantile, "quantile", low=0.0, what="a number between 0 and 1") < 1.0:
            raise ValueError(f"quantile must lie between 0 and 1, both excluded; got {self.quantile!r}.")
        if self.width is not None:
            convert.as_number(self.width, "width", low=1e-60, what="a positive number, or None")

    def _loss(self) -> Loss:
        rounded: Loss = Pinball(float(self.quantile), self.width_)  # type: ignore[assignment]
        return rounded

    def _begin(self, data: Observations, targets: list[np.ndarray]) -> None:
        self.width_ = float(self.width) if self.width is not None else self._default_width(data, targets)

    def _conclude(self, data: Observations, targets: list[np.ndarray], results: list[Result]) -> None:
        of_corners = 0.5 * self.width_ * max(self.quantile, 1.0 - self.quantile) ** 2
        bounds = [
            min(self._rounded_off(data, y, result), of_corners) + result.gap + result.rounding
            for y, result in zip(targets, results, strict=True)
        ]
        self.quantile_gap_ = bounds[0] if len(bounds) == 1 else np.array(bounds)

    def _default_width(self, data: Observations, targets: list[np.ndarray]) -> float:
        """Return the width at which the rounded corner matters at most by _SHARE of the loss of a constant."""
        losses = []
        for y in targets:
            errors = y if data.offset is None else y - data.offset
            errors = errors - np.quantile(errors, self.quantile) if self.fit_intercept else errors
            losses.append(float(np.average(self._pinball(errors), weights=data.weight)))
        smallest = min(filter(None, losses), default=1.0)
        return 2.0 * _SHARE * smallest / max(self.quantile, 1.0 - self.quantile) ** 2

    def _rounded_off(self, data: Observations, y: np.ndarray, result: Result) -> float:
        """Return by how much the mean pinball loss exceeds the rounded one; inf where X is not in memory."""
        if isinstance(data.X, OutsideRows):
            return np.inf
        errors = y - (data.X @ result.w + result.intercept) - (0.0 if data.offset is None else data.offset)
        true = float(np.average(self._pinball(errors), weights=data.weight))
        return max(true - result.objective, 0.0) + _MARGIN * true

    def _pinball(self, errors: np.ndarray) -> np.ndarray:
        losses: np.ndarray = np.maximum(self.quantile * errors, (self.quantile - 1.0) * errors)
        return losses
