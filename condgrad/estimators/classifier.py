"""ConstrainedClassifier: a linear classifier of any loss over any set."""

from __future__ import annotations

import functools
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from condgrad import constraints, losses
from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.estimators._counts import refuse_counts
from condgrad.estimators._fits import Budget
from condgrad.estimators._like import like
from condgrad.estimators._linear_model import ConstrainedLinearModel
from condgrad.estimators._observations import Observations
from condgrad.estimators._partial_fit import supports_partial_fit
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import on_host
from condgrad.linalg.settings import RandomState
from condgrad.losses import Loss
from condgrad.models.multi import MULTINOMIAL, REST, log_probabilities
from condgrad.problems.linear import Problem
from condgrad.problems.outputs import OutputsProblem
from condgrad.problems.softmax import SoftmaxProblem
from condgrad.storage.device_data import DeviceData
from condgrad.storage.outside_rows import OutsideRows


def _has_probabilities(estimator: ConstrainedClassifier) -> bool:
    """Return True if the predictions of the loss are logits; raise AttributeError if not."""
    if estimator._link() == "logit":
        return True
    raise AttributeError(f"probabilities need loss='logistic' or 'sigmoid-squared'; got {estimator.loss!r}.")


class ConstrainedClassifier(ClassifierMixin, ConstrainedLinearModel):
    r"""Linear classifier: minimises the mean loss of the decisions x'w + b over w in a constraint set.

    Two classes make one problem with targets -1 and 1 (0 and 1 where the loss needs these); 1 is the second class of
    ``classes_``. More classes make one problem each, one class against the rest, or one multinomial problem together.

    Parameters
    ----------
    loss : str or loss object
        A name of :func:`condgrad.losses.by_name`, or an object with its parameters.
    constraint : str or set
        "l1", "nonnegative-l1", "l2", "linf" or "simplex", of size ``radius``; or a set of
        :mod:`condgrad.constraints`, or any object with a method ``lmo``.
    radius : float, optional
        The size of a named set. By default the one is taken, for each class, that predicts held-out samples best: a
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
    multi_class : {"ovr", "multinomial"}
        How three or more classes are separated: by one problem for each class against the rest, each with its own set;
        or by one problem for all, the multinomial loss log sum_c exp(x'w_c + b_c) - (x'w_y + b_y) over one set of all
        coefficients (:class:`condgrad.SoftmaxProblem`), certified by one gap. It needs the logistic loss and a solver
        of full passes ("auto" is one). Its set constrains the entries of ``coef_``, row after row, and has one more
        name: "group" selects features for all classes at once, by sum_j ||coef_[:, j]||_2 <= radius. Two classes are
        one problem either way, and then "group" is the l1 ball.
    class_weight : dict or "balanced", optional
        Weights of the classes; they multiply the weights of the samples.
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
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Sparse after ``sparsify()``.
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    gap_ : float, or array with one entry per class
        The exact Frank-Wolfe gap: a convex loss exceeds its optimum by at most this. One number for a multinomial
        problem; after ``partial_fit`` the gap on the last batch.
    rounding_ : float, or array
        A bound of the rounding error of ``gap_``: ``gap_ + rounding_`` is always a valid bound.
    radius_ : float, or array with one entry per class
        The radius that was used, for named sets.
    alpha_ : float, or array
        The multiplier of the radius: the rate at which the objective would fall if it grew. For a norm ball this is the
        penalty of the norm with the same solution, scikit-learn's ``alpha`` for the Lasso.
    result_, trace_ : Result and Trace, or a list of one per class
    n_iter_ : int
        The largest number of epochs of any class.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]], ["no", "no", "yes", "yes"]
    >>> model = cg.ConstrainedClassifier(loss="squared-hinge", radius=1.0).fit(X, y)
    >>> model.predict(X)
    array(['no', 'no', 'yes', 'yes'], dtype='<U3')
    >>> bool(model.gap_ < 1e-6)
    True
    """

    loss: object = "logistic"
    multi_class: str = "ovr"
    class_weight: object = None
    classes_: np.ndarray

    def __init__(
        self,
        loss: object = "logistic",
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
        multi_class: str = "ovr",
        class_weight: object = None,
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
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def fit(
        self,
        X: Data | OutsideRows,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or rows on disk
            Rows that :func:`condgrad.rows.open` returns bring their own y, weights and offsets.
        y : array of shape (n_samples,)
            Class labels.
        sample_weight : array of shape (n_samples,), optional
            Samples without weight are left out, as if never given.
        offset : array of shape (n_samples,), optional
            Known numbers that are added to x'w + b in the loss, such as the logarithms of odds; for two classes.
            Predictions of the model then need an offset, too.
        """
        data = self._validated(X, refuse_counts(y), sample_weight, offset)
        check_classification_targets(data.y)
        data = data.weighted_only()
        index = self._number_classes(data.y, data.weight)
        targets = self._targets(index)
        n_rows = self.classes_.size if self._is_joint else len(targets)
        starts = self._starts(len(targets), (n_rows, data.X.shape[1]))
        self._solve_all(self._with_class_weight(index, data), targets, starts)
        return self

    @available_if(supports_partial_fit)
    def partial_fit(
        self,
        X: Data,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
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
        y : array of shape (n_samples,)
            Class labels.
        classes : array of shape (n_classes,), optional
            All labels that batches may have: required in the first call; later left out or the same.
        sample_weight, offset : array of shape (n_samples,), optional
        """
        is_first = not hasattr(self, "coef_")
        data = self._validated(X, refuse_counts(y), sample_weight, offset, reset=is_first)
        check_classification_targets(data.y)
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all data; give partial_fit the weights as a dict.")
        if classes is None and is_first:
            raise ValueError("the first call of partial_fit needs classes=, the labels of all batches to come.")
        if classes is not None:
            index = np.unique(classes)
            if not is_first and not np.array_equal(index, self.classes_):
                raise ValueError(f"classes must stay those of the first call, {self.classes_}; got {index}.")
            self._number_classes(index)
        if self._is_joint:
            raise ValueError("partial_fit fits one class against the rest; use multi_class='ovr'.")
        unknown = np.setdiff1d(data.y, self.classes_)
        if unknown.size:
            raise ValueError(f"y has the label {unknown[0]!r}, which is not among classes={self.classes_}.")
        index = np.searchsorted(self.classes_, data.y)
        self._fit_batch(self._with_class_weight(index, data), self._targets(index))
        return self

    def decision_function(self, X: Data | OutsideRows, offset: ArrayLike | None = None) -> np.ndarray:
        """Return x'w + b + offset: for two classes one number per sample, else one per sample and class.

        A model that was fitted with offsets needs them here and in all predictions; zeros give those without.
        """
        scores = self._scores(X, offset)
        return like(X, scores[:, 0] if scores.shape[1] == 1 else scores)

    def predict(self, X: Data | OutsideRows, offset: ArrayLike | None = None) -> np.ndarray:
        """Return the class of each sample."""
        scores = self._scores(X, offset)
        best = (scores[:, 0] > 0.0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return like(X, self.classes_[best])

    @available_if(_has_probabilities)
    def predict_proba(self, X: Data | OutsideRows, offset: ArrayLike | None = None) -> np.ndarray:
        """Return the probability of each class: the multinomial one, or those of one against the rest, normalised."""
        return like(X, np.exp(self._log_probabilities(self._scores(X, offset))))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Data | OutsideRows, offset: ArrayLike | None = None) -> np.ndarray:
        """Return the logarithms of the probabilities, which are right where these are rounded to 0 or 1, too."""
        return like(X, self._log_probabilities(self._scores(X, offset)))

    def score(
        self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> float:
        """Return the accuracy of the predicted classes."""
        y, predicted, weight = map(on_host, (y, self.predict(X, offset), sample_weight))
        return float(accuracy_score(y, predicted, sample_weight=weight))

    def _number_classes(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """Set ``classes_`` and return the number of the class of each sample; a class without weight is no class."""
        classes, index = np.unique(y, return_inverse=True)
        if weight is not None and not weight.all():
            classes = np.unique(y[weight > 0.0])
            index = np.minimum(np.searchsorted(classes, y), classes.size - 1)
        if classes.size < 2:
            raise ValueError(
                f"a classifier needs samples of at least two classes; y has only one class, {classes[0]!r}."
            )
        self.classes_ = classes
        return index

    @property
    def _is_joint(self) -> bool:
        """Whether all classes are one multinomial problem."""
        return self.multi_class == "multinomial" and self.classes_.size > 2

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.multi_class not in ("ovr", "multinomial"):
            raise ValueError(f"multi_class must be 'ovr' or 'multinomial'; got {self.multi_class!r}.")
        if self.multi_class == "multinomial" and not isinstance(self._loss(), losses.Logistic):
            raise ValueError(f"multi_class='multinomial' needs loss='logistic'; got {self.loss!r}.")

    def _budget(self, data: Observations) -> Budget:
        is_by_name = isinstance(self.constraint, str) and self.constraint == "group"
        if not (is_by_name and self.multi_class == "multinomial"):
            return super()._budget(data)
        self._allowed_sets(data)  # tells that groups have none
        radius = None if self.radius is None else float(self.radius)
        if not self._is_joint:  # a feature has one coefficient, whose size is the norm of its group
            return Budget(None, constraints.L1Ball, radius)
        groups = np.tile(np.arange(self.n_features_in_), self.classes_.size)
        return Budget(None, functools.partial(constraints.GroupBall, groups), radius)

    def _problem(self, data: Observations, y: np.ndarray, budget: Budget) -> Problem | OutputsProblem:
        if not self._is_joint:
            return super()._problem(data, y, budget)
        if isinstance(data.X, OutsideRows) and not isinstance(data.X, DeviceData):
            raise ValueError("rows on disk or of a cluster are fitted one problem at a time; use multi_class='ovr'.")
        return SoftmaxProblem(
            data.X,
            y,
            budget.unit_set(),
            n_classes=self.classes_.size,
            sample_weight=data.weight,
            intercept=bool(self.fit_intercept),
        )

    @property
    def _kind(self) -> str:
        return MULTINOMIAL if self._is_joint else REST

    def _log_probabilities(self, scores: np.ndarray) -> np.ndarray:
        return log_probabilities(scores, self._kind)

    def _targets(self, index: np.ndarray) -> list[np.ndarray]:
        """Return the targets of each problem: -1 and 1, 0 and 1 where the loss needs these, or all class numbers."""
        if self._is_joint:
            return [index]
        n_classes = self.classes_.size
        low = _lower_target(self._loss())
        return [np.where(index == k, 1.0, low) for k in ((1,) if n_classes == 2 else range(n_classes))]

    def _with_class_weight(self, index: np.ndarray, data: Observations) -> Observations:
        """Return the samples with weights that are multiplied by those of their classes."""
        weight = data.weight
        if self.class_weight is None:
            return data
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            totals = np.bincount(index, weights=weight)
            per_class = totals.sum() / (totals.size * totals)
        else:
            labels = self.classes_[index]
            per_class = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        return data._replace(weight=per_class[index] if weight is None else per_class[index] * weight)


def _lower_target(loss: Loss) -> float:
    """Return the target of the class that is not 1; losses of regression have one too."""
    classes = getattr(loss, "classes", None)
    if classes is not None:
        return float(classes[0])
    return -1.0 if getattr(loss, "link", "identity") == "identity" else 0.0  # no mean with another link is negative
