"""SquareRootLasso: the Lasso whose penalty needs no noise level."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.stats

from condgrad.estimators._observations import Observations
from condgrad.estimators.regressor import ConstrainedRegressor
from condgrad.linalg import convert
from condgrad.linalg.coded_matrix import matrix_of
from condgrad.linalg.interrupts import at_most
from condgrad.linalg.rounding import UNIT
from condgrad.linalg.settings import RandomState
from condgrad.paths import lasso_path
from condgrad.paths.radius_search import go_on_unless_interrupted
from condgrad.run.result import Result, Status

_MOST_ROUNDS = 200  # most Lasso problems that are solved for one penalty
_INNER = 1e-2  # share of the tolerance to which they are solved
_PERFECT = 1e-7  # residual, over the deviation of y, that counts as a perfect fit
_CONFIDENCE = 0.05, 1.1  # of the default penalty: level and slack of Belloni, Chernozhukov & Wang (2011), section 4


class SquareRootLasso(ConstrainedRegressor):
    r"""Square-root (scaled) Lasso: minimises sqrt(mean (y - x'w - b)^2) + penalty ||w||_1.

    At its solution w the size of the residuals, ``noise_`` = s, estimates the noise, and w is the solution of the Lasso
    with alpha = penalty s. So a penalty that suits one noise level suits all: it needs no noise level. It
    is found by alternating the two (Sun & Zhang 2012): alpha <- penalty s(alpha), until the duality gap is small. Over
    the l1 ball of radius ||w||_1 the square-root Lasso *is* the Lasso, because the root is increasing: ``gap_`` is
    that of :class:`ConstrainedLasso` there.

    Parameters
    ----------
    penalty : float, optional
        By default 1.1 / sqrt(n) times the normal quantile of 1 - 0.05 / (2 d), for features of unit standard deviation:
        with probability 0.95 it exceeds all correlations with the noise.
    solver, fit_intercept, tol, max_iter, max_time, warm_start, random_state, verbose
        As in :class:`ConstrainedRegressor`; ``tol`` also bounds ``duality_gap_``, relative to the deviation of y.

    Attributes
    ----------
    noise_ : float
        The root mean square of the residuals.
    penalty_ : float
    duality_gap_ : float
        A bound for the excess of sqrt(mean (y - x'w - b)^2) + penalty ||w||_1 over its minimum, rounding included.
    radius_, alpha_ : float
        The l1 norm of w, and the penalty of the Lasso with this solution.
    coef_, intercept_, gap_, rounding_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ConstrainedRegressor`.

    References
    ----------
    Belloni, Chernozhukov & Wang (2011). Sun & Zhang (2012).

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> data = datasets.simulate_regression(200, 50, n_informative=3, noise=0.5, random_state=0)
    >>> model, tenfold = (cg.SquareRootLasso().fit(data.X, scale * data.y) for scale in (1.0, 10.0))
    >>> bool(abs(tenfold.noise_ / model.noise_ - 10.0) < 1e-3), bool(model.duality_gap_ < 1e-5)
    (True, True)
    """

    loss = "squared"
    constraint = "l1"
    learns_in_batches = False
    radius = None

    def __init__(
        self,
        penalty: float | None = None,
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
        self.penalty = penalty
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.penalty is not None:
            convert.as_number(
                self.penalty, "penalty", low=1e-12, what="a positive, finite number, or None", below=math.inf
            )

    def _validated(self, *given: Any, **settings: Any) -> Observations:
        return super()._validated(*given, **settings | {"multi_output": False})

    def _begin(self, data: Observations, targets: list[np.ndarray]) -> None:
        n, d = data.X.shape
        level, slack = _CONFIDENCE
        pivotal = slack / math.sqrt(n) * float(scipy.stats.norm.ppf(1.0 - level / (2.0 * d)))
        self.penalty_ = pivotal if self.penalty is None else float(self.penalty)
        target = targets[0] if data.offset is None else targets[0] - data.offset
        centre = np.average(target, weights=data.weight) if self.fit_intercept else 0.0
        size = _root_mean_square(target - centre, data.weight)
        self._alpha = self.penalty_ * (size or 1.0)
        with at_most(None if self.max_time is None else 0.5 * self.max_time):
            self._find_alpha(data, targets[0], size)

    def _find_alpha(self, data: Observations, y: np.ndarray, size: float) -> None:
        """Find the penalty of the Lasso with the same solution, for targets whose deviations have this size."""
        target = y if data.offset is None else y - data.offset
        for _ in range(_MOST_ROUNDS if size > 0.0 else 0):
            _, coefs, info = lasso_path(
                data.X, y, alphas=[self._alpha], tol=min(_INNER * self.tol, 1e-8), offset=data.offset,
                sample_weight=data.weight, fit_intercept=bool(self.fit_intercept),
            )  # fmt: skip
            go_on_unless_interrupted(info.status)
            noise = math.sqrt(2.0 * float(info.objective[0]))
            if noise <= _PERFECT * size:
                raise ValueError(
                    f"penalty={self.penalty_:.3g} is so small that the fit is perfect, and its noise 0; raise it."
                )
            w, b = coefs.toarray()[:, 0], float(info.intercept[0])
            if self._duality_gap(data, target, w, b) <= 0.5 * self.tol * size or info.status is Status.MAX_TIME:
                break
            self._alpha = self.penalty_ * noise

    def _norm_penalty(self, data: Observations) -> float | None:
        """Return the penalty of the Lasso with the same solution."""
        return self._alpha

    def _conclude(self, data: Observations, targets: list[np.ndarray], results: list[Result]) -> None:
        target = targets[0] if data.offset is None else targets[0] - data.offset
        w, b = results[0].w, float(results[0].intercept)
        self.noise_ = _root_mean_square(target - data.X @ w - b, data.weight)
        self.duality_gap_ = self._duality_gap(data, target, w, b)

    def _duality_gap(self, data: Observations, target: np.ndarray, w: np.ndarray, b: float) -> float:
        """Return the gap between the objective at w and that of a dual point, rounding included.

        The dual is: maximise <v u, y> over sum v u^2 <= 1 and |<v u, x_j>| <= penalty, and <v u, 1> = 0 with an
        intercept, for weights v that sum to one. The residuals over their size are u, shrunk until they are feasible.
        """
        matrix = matrix_of(data.X)
        weight = np.full(target.size, 1.0 / target.size) if data.weight is None else data.weight / data.weight.sum()
        residual = target - data.X @ w - b
        if self.fit_intercept:
            residual = residual - weight @ residual
        size = _root_mean_square(residual, weight)
        value = size + self.penalty_ * float(np.abs(w).sum())
        if size == 0.0:
            return value
        dual = weight * residual / size
        largest = float(np.abs(matrix.transpose_dot(dual)).max(initial=0.0))
        shrunk = min(1.0, self.penalty_ / largest) if largest > 0.0 else 1.0
        spread = _root_mean_square(target, weight) + float(np.abs(w).sum()) * matrix.largest_entry() + abs(b)
        rounding = 8.0 * (target.size + w.size + 8) * UNIT * (spread + value)
        return max(value - shrunk * float(dual @ target), 0.0) + rounding


def _root_mean_square(values: np.ndarray, weight: np.ndarray | None) -> float:
    return math.sqrt(float(np.average(values**2, weights=weight)))
