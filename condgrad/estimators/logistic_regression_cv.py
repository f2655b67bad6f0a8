"""ConstrainedLogisticRegressionCV: logistic regression whose radius cross-validation picks."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.estimators._cross_validation import Fold, folds
from condgrad.estimators._observations import Observations
from condgrad.estimators.classifier_cv import ValidatedClassifier
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.settings import RandomState
from condgrad.paths.batched import BatchedPaths, mean_losses, with_weights
from condgrad.problems.linear import Problem
from condgrad.storage.device_data import DeviceData


class ConstrainedLogisticRegressionCV(ValidatedClassifier):
    r"""Logistic regression over a ball, with the radius chosen by cross-validation.

    In every fold the radii are solved in ascending order, each started at the last solution and certified to ``tol``;
    the radius with the best mean score is taken for all data (the same one for all classes).

    Parameters
    ----------
    standardize : bool
        As in :class:`ConstrainedClassifier`; every fold has the deviations of the samples that it is fitted to.
    feature_weight, positive, lower, upper, rows
        Weights, limits and linear relations of the coefficients: as in :class:`ConstrainedClassifier`.
    radii : array, optional
        The radii to choose from. By default ``n_radii`` of them, evenly spaced in their logarithm, between a hundredth
        of ``radius_max(X, y, loss="logistic", eps=eps)`` and itself (the largest one of all classes, to two digits),
        and more where the largest one has the best score, as in :class:`ConstrainedRegressorCV`.
    n_radii, eps : int, float
        See ``radii``.
    constraint : str, set or callable
        A set with a radius that contains zero: "l1", "nonnegative-l1", "l2" or "linf"; "group" for a multinomial fit;
        or others as in :class:`ConstrainedRegressorCV`.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn: by default 5, stratified, but at most as many as the largest class has samples.
        ``fit`` takes the ``groups`` of a splitter.
    scoring : str, callable, list or dict, optional
        Scorers of scikit-learn. By default the mean log-probability of the true class.
    refit : str, optional
        Which of several scorers chooses the radius.
    selection : {"best", "one-standard-error"}
        Which radius: the one with the best mean, or the smallest one whose mean is within one standard error of it.
    solver, fit_intercept, tol, max_iter, max_time, multi_class, class_weight, random_state, verbose, device
        As in :class:`ConstrainedClassifier`.
    n_jobs : int, optional
        Number of folds solved at a time, on threads: the kernels release the interpreter lock.

    Attributes
    ----------
    coef_, intercept_, classes_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_,
    feature_names_in_
        As in :class:`ConstrainedClassifier`, for the chosen radius on all data.
    radii_ : array of shape (n_radii,)
        Those tried, ascending.
    score_path_ : array of shape (n_radii, n_folds)
        Scores of the samples left out; larger is better.
    score_paths_ : dict
        The same for each of several scorers, by their names.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> data = datasets.simulate_classification(120, 20, n_informative=3, random_state=0)
    >>> model = cg.ConstrainedLogisticRegressionCV(n_radii=8, cv=3).fit(data.X, data.y)
    >>> bool(model.score(data.X, data.y) > 0.7), model.score_path_.shape
    (True, (8, 3))
    """

    loss = "logistic"

    def __init__(
        self,
        *,
        radii: ArrayLike | None = None,
        n_radii: int = 20,
        eps: float = 1e-2,
        constraint: object = "l1",
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
        solver: object = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: float = 1000,
        max_time: float | None = None,
        multi_class: str = "ovr",
        class_weight: object = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
        device: str | None = None,
    ) -> None:
        self.radii = radii
        self.n_radii = n_radii
        self.eps = eps
        self.constraint = constraint
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
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def _choose_on_sample(self, data: Observations, groups: ArrayLike | None) -> float:
        """Choose on all data where all folds and radii are solved at once, on a device; else on a sample."""
        is_plain = (
            self.scoring is None
            and self.classes_.size == 2
            and self.constraint == "l1"
            and self.solver == "auto"
            and self._allowed_sets(data) is None
        )
        if not (is_plain and isinstance(data.X, DeviceData) and isinstance(data.X.matrix, DenseOnDevice)):
            return super()._choose_on_sample(data, groups)
        outline = scipy.sparse.csr_matrix(data.X.shape)
        parts = folds(self.cv, outline, data.y, data.weight, groups, is_classifier=True)
        used, targets = self._framed(data)
        return self._choose(data, parts, self._grid(used, targets))

    def _validation_scores(self, data: Observations, parts: list[Fold], radii: np.ndarray) -> dict[str, np.ndarray]:
        if not isinstance(data.X, DeviceData):
            return super()._validation_scores(data, parts, radii)
        used, (targets,) = self._framed(data)
        budget = self._budget(used)
        whole = self._problem(used, targets, budget)
        assert isinstance(whole, Problem)
        weight = np.ones(targets.size) if used.weight is None else used.weight
        plain = np.ones(targets.size) if data.weight is None else data.weight
        problems = [with_weights(whole, _only(weight, train)) for train, _ in parts]
        points = BatchedPaths(problems, budget.make, tol=self.tol, max_epochs=self.max_iter).solve(radii)
        held_out = [with_weights(whole, _only(plain, test)) for _, test in parts]
        return {"score": -mean_losses(held_out, points).T}


def _only(weight: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the weights of some samples, and zeros for the others."""
    part = np.zeros(weight.size)
    part[places] = weight[places]
    return part
