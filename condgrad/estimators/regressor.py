"""ConstrainedRegressor: a linear regressor of any loss over any set."""

from __future__ import annotations

import functools
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if

from condgrad import constraints, losses
from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.estimators._counts import shares_of, with_exposure
from condgrad.estimators._deviance import explained_deviance
from condgrad.estimators._fits import Budget
from condgrad.estimators._like import like
from condgrad.estimators._linear_model import ConstrainedLinearModel
from condgrad.estimators._observations import Observations
from condgrad.estimators._partial_fit import supports_partial_fit
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import on_host
from condgrad.linalg.settings import RandomState
from condgrad.problems.linear import Problem
from condgrad.problems.multi_output import MultiOutputProblem
from condgrad.problems.outputs import OutputsProblem
from condgrad.storage.outside_rows import OutsideRows


class ConstrainedRegressor(RegressorMixin, ConstrainedLinearModel):
    r"""Linear regressor: minimises the mean loss of the predictions x'w + b over w in a constraint set.

    Several outputs make one problem each, or one problem together. With the losses "poisson", "gamma", "tweedie" and
    "negative-binomial" the predicted mean is exp(x'w + b); exposures are offsets, log(exposure). With "binomial" it is
    a share, 1 / (1 + exp(-(x'w + b))), of as many trials as ``sample_weight`` says.

    Parameters
    ----------
    loss : str or loss object
        A name of :func:`condgrad.losses.by_name`, or an object with its parameters.
    constraint : str or set
        "l1", "nonnegative-l1", "l2", "linf" or "simplex", of size ``radius``; or a set of
        :mod:`condgrad.constraints`, or any object with a method ``lmo``.
    radius : float, optional
        The size of a named set. By default the one is taken, for each output, that predicts held-out samples best: a
        quick search on one split of the samples, or five of less than a thousand. It needs 30 different samples; with
        fewer it is :func:`condgrad.radius_max` with eps = 0.1. The CV estimators tune it. (The simplex has radius 1.)
    standardize : bool
        Whether the budget counts coefficients of features that are divided by their standard deviations (weighted as
        the samples are; root mean squares without an intercept). It multiplies ``feature_weight`` with the deviations,
        so that nothing is copied, and ``coef_`` is that of the features as given. Only for l1 balls.
    feature_weight : array of shape (n_features,), dict or float, optional
        What a unit of each coefficient costs: the budget is sum_j feature_weight_j |w_j| <= radius, 1 for features that
        a dict (of names, or of numbers) leaves out. A feature of weight 0 is free: it is minimised like the intercept.
        It needs the constraint "l1", as the three below.
    positive : bool, mask of shape (n_features,) or list of names
        Which coefficients must be at least 0; True: all.
    lower, upper : float, array of shape (n_features,) or dict, optional
        Limits of the coefficients, besides the budget.
    rows : list of sentences, or dict of arrays, optional
        Linear relations between coefficients: sentences such as "a <= b <= c", "2 a - b = 0" and "sum = 0", with the
        names of a data frame (else x0, x1, ...); or {"A_ub": ..., "b_ub": ..., "A_eq": ..., "b_eq": ...}. For every set
        that :class:`~condgrad.constraints.LinearlyConstrained` can cut; ``multipliers_`` tells what they cost.
    solver : str or solver object
        As in :func:`condgrad.minimize`.
    fit_intercept : bool
        Whether to add an intercept, which is free. Convex losses only.
    tol : float
        Accuracy: stop when the exact Frank-Wolfe gap is at most this share of the loss of the best constant.
    max_iter : float
        The largest number of epochs; an epoch is n evaluations of a single-sample gradient.
    max_time : float, optional
        Seconds after which to stop.
    multi_output : {"separate", "joint"}
        How several outputs are fitted: by one problem for each, each with its own set; or by one problem for all, which
        minimises the sum of their losses over one set of all coefficients (:class:`condgrad.MultiOutputProblem`),
        certified by one gap. It needs a solver of full passes ("auto" is one). Its set constrains the entries of
        ``coef_``, row after row, and has two more names: "group" selects features for all outputs at once, by
        sum_j ||coef_[:, j]||_2 <= radius, and "nuclear" makes the rank of ``coef_`` low, by bounding the sum of its
        singular values.
    warm_start : bool
        Whether ``fit`` starts from the last solution (scaled down if the set has become smaller).
    random_state : int, RandomState, Generator or None
        For solvers that draw samples.
    verbose : bool
        Show progress on the terminal.
    device : "cuda", optional
        Fit on the GPU; arrays that are there already (CuPy, PyTorch) stay there without it, and predictions for them
        are there, too.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
        Sparse after ``sparsify()``.
    intercept_ : float or array of shape (n_outputs,)
    n_outputs_ : int
    gap_ : float, or array with one entry per output that was fitted separately
        The exact Frank-Wolfe gap: a convex loss exceeds its optimum by at most this.
    rounding_ : float, or array
        A bound of the rounding error of ``gap_``: ``gap_ + rounding_`` is always a valid bound.
    radius_ : float, or array with one entry per output
        The radius that was used, for named sets.
    alpha_ : float, or array
        The multiplier of the radius: the rate at which the objective would fall if it grew. For a norm ball this is the
        penalty of the norm with the same solution, scikit-learn's ``alpha`` for the Lasso.
    result_, trace_ : Result and Trace, or a list of one per output
    n_iter_ : int
        The largest number of epochs of any output.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]], [0.0, 1.0, 2.0, 30.0]
    >>> model = cg.ConstrainedRegressor(loss="huber", constraint="simplex").fit(X, y)
    >>> model.coef_, bool(model.gap_ < 1e-5)
    (array([1., 0.]), True)
    """

    multi_output: str = "separate"  # value for estimators that do not offer it as a parameter

    def __init__(
        self,
        loss: object = "squared",
        *,
        constraint: object = "l1",
        radius: float | None = None,
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
        multi_output: str = "separate",
        warm_start: bool = False,
        random_state: RandomState = None,
        verbose: bool = False,
        device: str | None = None,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
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
        self.multi_output = multi_output
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = self._link() in ("log", "logit")
        return tags

    def fit(
        self,
        X: Data | OutsideRows,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or rows on disk
            Rows that :func:`condgrad.rows.open` returns bring their own y, weights and offsets.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            For the loss "binomial" two columns are counts of successes and of failures: trials multiply the weights.
        sample_weight : array of shape (n_samples,), optional
            Samples without weight are left out, as if never given.
        offset : array of shape (n_samples,), optional
            Known numbers that are added to x'w + b in the loss. Predictions of the model then need an offset, too.
        exposure : array of shape (n_samples,), optional
            For losses with a log link: positive numbers that multiply the mean, such as years of risk. Their logarithms
            are added to the offsets, and predictions need an exposure or an offset, too.
        """
        offset = self._whole_offset(X, offset, exposure)
        data = self._validated(X, y, sample_weight, offset, multi_output=True, y_numeric=True).weighted_only()
        targets = self._targets(data.y)
        self._solve_all(data, targets, self._starts(len(targets), (self.n_outputs_, data.X.shape[1])))
        if data.y.ndim == 1:
            self._flatten()
        return self

    @available_if(supports_partial_fit)
    def partial_fit(
        self,
        X: Data,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Learn from a batch: one epoch of the stochastic solver over it, from the coefficients of earlier batches.

        It needs ``solver`` "sfw", "saga", "mokhtari", "lu-freund" or "one-sample", or an object of these solvers, and a
        given ``radius``. Step sizes and an estimate of the gradient continue from batch to batch, so that repeated
        passes over all batches converge to the model of all data. An intercept moves after each batch. The iterate is
        in the set at every step, and ``gap_`` is the exact gap of the coefficients *on this batch*, with the intercept
        as it is: it certifies nothing about the data of other batches.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight, offset, exposure : array of shape (n_samples,), optional
        """
        offset = self._whole_offset(X, offset, exposure)
        is_first = not hasattr(self, "coef_")
        data = self._validated(X, y, sample_weight, offset, multi_output=True, y_numeric=True, reset=is_first)
        self._fit_batch(data, self._targets(data.y))
        if data.y.ndim == 1:
            self._flatten()
        return self

    def predict(
        self, X: Data | OutsideRows, offset: ArrayLike | None = None, *, exposure: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the prediction for each sample: x'w + b + offset, or the mean that it stands for.

        A model that was fitted with offsets or exposures needs them here, too; offsets of 0, or exposures of 1, give
        predictions without.
        """
        scores = self._scores(X, self._whole_offset(X, offset, exposure))
        p = scores[:, 0] if np.ndim(self.intercept_) == 0 else scores
        return like(X, self._loss().mean(p))

    def score(
        self,
        X: Data,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
    ) -> float:
        """Return the coefficient of determination R^2, or for families D^2, the explained share of the deviance.

        Families are the losses with a log link (Poisson, Gamma, Tweedie, NegativeBinomial) and Binomial.
        """
        loss, offset = self._loss(), self._whole_offset(X, offset, exposure)
        if loss.link != "identity":
            scores, (y, weight) = self._scores(X, offset), self._of_trials(y, sample_weight)
            return explained_deviance(loss, y, scores, weight)
        y, predicted, weight = map(on_host, (y, self.predict(X, offset), sample_weight))
        return float(r2_score(y, predicted, sample_weight=weight))

    def _whole_offset(
        self, X: Data | OutsideRows, offset: ArrayLike | None, exposure: ArrayLike | None
    ) -> ArrayLike | None:
        """Return the offsets with those of exposures."""
        if exposure is None:
            return offset
        if self._link() != "log":
            raise ValueError(
                "exposure multiplies the mean, for losses with a log link: 'poisson', 'negative-binomial', 'gamma' and "
                f"'tweedie'; got loss={self.loss!r}. Use offset, which is added to x'w + b."
            )
        return with_exposure(X, offset, exposure)

    def _validated(
        self,
        X: Data | OutsideRows,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        offset: ArrayLike | None,
        **settings: object,
    ) -> Observations:
        data = super()._validated(X, y, sample_weight, offset, **settings)
        y, weight = self._of_trials(data.y, data.weight)
        return data._replace(y=y, weight=weight)

    def _of_trials(self, y: ArrayLike, weight: ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Return targets and weights as arrays: shares and trials where y are successes and failures."""
        y, weight = np.asarray(on_host(y)), None if weight is None else np.asarray(on_host(weight))
        is_binomial = isinstance(self.loss, losses.Binomial) or (isinstance(self.loss, str) and self.loss == "binomial")
        return shares_of(y, weight) if is_binomial and y.ndim == 2 and y.shape[1] == 2 else (y, weight)

    @property
    def _is_joint(self) -> bool:
        """Whether all outputs are one problem."""
        return self.multi_output == "joint"

    def _targets(self, y: np.ndarray) -> list[np.ndarray]:
        """Set ``n_outputs_`` and return the targets of each problem."""
        Y = y.reshape(y.shape[0], -1)
        self.n_outputs_ = Y.shape[1]
        return [Y] if self._is_joint else list(Y.T)

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.multi_output not in ("separate", "joint"):
            raise ValueError(f"multi_output must be 'separate' or 'joint'; got {self.multi_output!r}.")

    def _budget(self, data: Observations) -> Budget:
        is_of_matrices = isinstance(self.constraint, str) and self.constraint in ("group", "nuclear")
        if not (is_of_matrices and self._is_joint):
            return super()._budget(data)
        self._allowed_sets(data)  # tells that matrices have none
        radius = None if self.radius is None else float(self.radius)
        k, d = self.n_outputs_, self.n_features_in_
        if self.constraint == "nuclear":
            return Budget(None, functools.partial(constraints.NuclearBall, shape=(k, d)), radius)
        return Budget(None, functools.partial(constraints.GroupBall, np.tile(np.arange(d), k)), radius)

    def _problem(self, data: Observations, y: np.ndarray, budget: Budget) -> Problem | OutputsProblem:
        if not self._is_joint:
            return super()._problem(data, y, budget)
        if isinstance(data.X, OutsideRows):
            raise ValueError("rows on disk or on a GPU are fitted one problem at a time; use multi_output='separate'.")
        return MultiOutputProblem(
            data.X, y, self._loss(), budget.unit_set(), sample_weight=data.weight, intercept=bool(self.fit_intercept)
        )

    def _flatten(self) -> None:
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
