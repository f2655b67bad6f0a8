"""ConstrainedLogisticRegression: the logistic loss over a ball."""

from __future__ import annotations

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.estimators._observations import Observations
from condgrad.estimators.classifier import ConstrainedClassifier
from condgrad.linalg.settings import RandomState


class ConstrainedLogisticRegression(ConstrainedClassifier):
    r"""Logistic regression over a ball: minimises (1/n) sum_i log(1 + exp(-y_i (x_i'w + b))) over ||w|| <= radius.

    Parameters
    ----------
    radius : float, optional
        The largest norm of w. By default held-out samples pick it, as in :class:`ConstrainedClassifier`;
        :class:`ConstrainedLogisticRegressionCV` tunes it.
    C : float, optional
        In place of ``radius``: scikit-learn's ``C``, for the penalty alpha = 1 / (C n) of the mean loss, with n the sum
        of the weights; ``radius_`` is then the l1 norm of that solution.
    constraint : str or set
        The l1 ball by default, for sparse models; as in :class:`ConstrainedClassifier`.
    standardize : bool
        As in :class:`ConstrainedClassifier`.
    feature_weight, positive, lower, upper, rows
        Weights, limits and linear relations of the coefficients: as in :class:`ConstrainedClassifier`.
    solver, fit_intercept, tol, max_iter, max_time, multi_class, class_weight, warm_start, random_state, verbose, device
        As in :class:`ConstrainedClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_,
    feature_names_in_
        As in :class:`ConstrainedClassifier`.

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]], [0, 0, 1, 1]
    >>> model = cg.ConstrainedLogisticRegression(radius=2.0).fit(X, y)
    >>> model.coef_.round(6), model.predict(X)
    (array([[2., 0.]]), array([0, 0, 1, 1]))
    """

    loss = "logistic"

    def __init__(
        self,
        radius: float | None = None,
        *,
        C: float | None = None,
        constraint: object = "l1",
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
        multi_class: str = "ovr",
        class_weight: object = None,
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: bool = False,
        device: str | None = None,
    ) -> None:
        self.radius = radius
        self.C = C
        self.constraint = constraint
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
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def _check_settings(self) -> None:
        super()._check_settings()
        self._check_norm_penalty("C", self.C)

    def _norm_penalty(self, data: Observations) -> float | None:
        if self.C is None:
            return None
        total = data.X.shape[0] if data.weight is None else data.weight.sum()
        return 1.0 / (float(self.C) * float(total))
