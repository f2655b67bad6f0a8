"""ConstrainedLogisticRegression, and ConstrainedLogisticRegressionCV, which picks the radius by cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.metrics import get_scorer
from sklearn.utils.multiclass import check_classification_targets

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.estimators import _cross_validation as validation
from condgrad.estimators._linear_model import as_seed
from condgrad.estimators._observations import Observations
from condgrad.estimators.classifier import ConstrainedClassifier
from condgrad.estimators.radius import two_digits
from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.settings import RandomState
from condgrad.paths.batched import BatchedPaths, mean_losses, with_weights
from condgrad.paths.grids import as_radii, check_grid, shares
from condgrad.paths.smooth import largest_radius, solutions
from condgrad.paths.validation import check_selection, select
from condgrad.problems.linear import Problem
from condgrad.storage.device_data import DeviceData
from condgrad.storage.outside_rows import OutsideRows


class ConstrainedLogisticRegression(ConstrainedClassifier):
    r"""Logistic regression over a ball: minimises (1/n) sum_i log(1 + exp(-y_i (x_i'w + b))) over ||w|| <= radius.

    Parameters
    ----------
    radius : float, optional
        The largest norm of w. By default it is picked by :func:`condgrad.radius_max` with eps = 0.1: for the l1 ball
        the norm of the penalised solution whose penalty is a tenth of the smallest one that gives zero.
        :class:`ConstrainedLogisticRegressionCV` tunes it.
    constraint : str or set
        The l1 ball by default, for sparse models; as in :class:`ConstrainedClassifier`.
    feature_weight, positive, lower, upper
        Weights and limits of the coefficients: as in :class:`ConstrainedClassifier`.
    solver, fit_intercept, tol, max_iter, max_time, multi_class, class_weight, warm_start, random_state, verbose, device
        As in :class:`ConstrainedClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, gap_, rounding_, radius_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
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
        constraint: object = "l1",
        feature_weight: PerFeature = None,
        positive: Which = False,
        lower: PerFeature = None,
        upper: PerFeature = None,
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
        self.constraint = constraint
        self.feature_weight = feature_weight
        self.positive = positive
        self.lower = lower
        self.upper = upper
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


class ConstrainedLogisticRegressionCV(ConstrainedClassifier):
    r"""Logistic regression over a ball, with the radius chosen by cross-validation.

    In every fold the radii are solved in ascending order, each started at the last solution and certified to ``tol``;
    the radius with the best mean score is taken for all data (the same one for all classes).

    Parameters
    ----------
    radii : array, optional
        The radii to choose from. By default ``n_radii`` of them, evenly spaced in their logarithm, between a hundredth
        of ``radius_max(X, y, loss="logistic", eps=eps)`` and itself (the largest one of all classes, to two digits).
    n_radii, eps : int, float
        See ``radii``.
    constraint : str
        A set with a radius that contains zero: "l1", "nonnegative-l1", "l2" or "linf"; "group" for a multinomial fit.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn: by default 5, stratified, but at most as many as the largest class has samples.
    scoring : str or callable, optional
        A scorer of scikit-learn. By default the mean log-probability of the true class.
    selection : {"best", "one-standard-error"}
        Which radius: the one with the best mean, or the smallest one whose mean is within one standard error of it.
    solver, fit_intercept, tol, max_iter, multi_class, class_weight, random_state, verbose, device
        As in :class:`ConstrainedClassifier`.
    n_jobs : int, optional
        Number of folds solved at a time, on threads: the kernels release the interpreter lock.

    Attributes
    ----------
    coef_, intercept_, classes_, gap_, rounding_, radius_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ConstrainedClassifier`, for the chosen radius on all data.
    radii_ : array of shape (n_radii,)
    score_path_ : array of shape (n_radii, n_folds)
        Scores of the samples left out.

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
    learns_in_batches = False

    def __init__(
        self,
        *,
        radii: ArrayLike | None = None,
        n_radii: int = 20,
        eps: float = 1e-2,
        constraint: str = "l1",
        cv: object = None,
        scoring: object = None,
        selection: str = "best",
        solver: object = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: float = 1000,
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
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.n_jobs = n_jobs
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
        """Choose the radius and fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or rows on disk
            For rows that :func:`condgrad.rows.open` returns, the radius is chosen on a sample in memory, and the model
            is then fitted to all rows.
        y : array of shape (n_samples,)
            Class labels.
        sample_weight : array of shape (n_samples,), optional
            Weighs samples in fitting and in the scores. Samples without weight are left out.
        offset : array of shape (n_samples,), optional
            Known numbers that are added to x'w + b in the loss, such as the logarithms of odds; for two classes.
            Predictions of the model then need an offset, too.
        """
        data = self._validated(X, y, sample_weight, offset)
        check_classification_targets(data.y)
        if isinstance(data.X, OutsideRows):
            index = self._number_classes(data.y, data.weight)
            radius = self._choose_on_device(data, index) if self._is_batched(data) else None
            if radius is None:
                radius = self._choose_on_sample(data, ("radii_", "score_path_"))
            self._solve_all(self._with_class_weight(index, data), self._targets(index), radius=radius)
            self.radius_ = radius
            return self
        parts = validation.folds(self.cv, data.X, data.y, data.weight, is_classifier=True)
        whole = data.weighted_only()
        index = self._number_classes(whole.y)
        targets, used = self._targets(index), self._with_class_weight(index, whole)
        self._check_offset(data.offset, targets)
        self.radii_ = self._grid(used, targets)
        tasks = ((self._fold_scores, data, train, test) for train, test in parts)
        scores = validation.on_threads(tasks, self.n_jobs)
        self.score_path_ = np.column_stack(scores)
        radius = float(self.radii_[select(self.score_path_, self.selection)])
        self._solve_all(used, targets, radius=radius)
        self.radius_ = radius
        return self

    def _is_batched(self, data: Observations) -> bool:
        """Whether all folds and radii are solved at once, on a device: two classes, default scores, plain l1 balls."""
        is_plain = (
            self.scoring is None and self.classes_.size == 2 and self.constraint == "l1" and self.solver == "auto"
        )
        return is_plain and isinstance(data.X, DeviceData) and isinstance(data.X.matrix, DenseOnDevice)

    def _choose_on_device(self, data: Observations, index: np.ndarray) -> float:
        """Solve all radii in all folds at once, score the samples left out, and return the chosen radius."""
        used, (targets,) = self._with_class_weight(index, data), self._targets(index)
        self.radii_ = self._grid(used, [targets])
        outline = scipy.sparse.csr_matrix(data.X.shape)
        parts = list(validation.folds(self.cv, outline, data.y, data.weight, is_classifier=True))
        budget = self._budget()
        whole = self._problem(used, targets, budget)
        assert isinstance(whole, Problem)
        weight = np.ones(index.size) if used.weight is None else used.weight
        plain = np.ones(index.size) if data.weight is None else data.weight
        problems = [with_weights(whole, _only(weight, train)) for train, _ in parts]
        paths = BatchedPaths(problems, budget.make, tol=self.tol, max_epochs=self.max_iter)
        points = paths.solve(self.radii_)
        held_out = [with_weights(whole, _only(plain, test)) for _, test in parts]
        self.score_path_ = -mean_losses(held_out, points).T
        return float(self.radii_[select(self.score_path_, self.selection)])

    def score(
        self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> float:
        """Return the score of ``scoring``, or the accuracy where that is None."""
        if self.scoring is None:
            return super().score(X, y, sample_weight, offset)
        if offset is None:
            return float(get_scorer(self.scoring)(self, X, y, **_as_keyword(sample_weight)))
        X, y = convert.as_data(X), np.asarray(y)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        held_out = Observations(X, y, weight, convert.as_vector(offset, "offset", X.shape[0]))
        return self._score_of(self._coefficients(), self.intercept_, held_out)

    def _grid(self, data: Observations, targets: list[np.ndarray]) -> np.ndarray:
        if self.radii is not None:
            return as_radii(self.radii)
        budget = self._budget()
        problem = self._problem(data, targets[0], budget)
        largest = max(largest_radius(problem.with_targets(y), budget.make, self.eps) for y in targets)
        return (two_digits(largest) or 1.0) * shares(self.n_radii)

    def _fold_scores(self, data: Observations, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        """Return the scores on the samples of ``test`` of the models of all radii fitted on those of ``train``."""
        fitted, n_features = data.at(train), data.X.shape[1]
        index = np.searchsorted(self.classes_, fitted.y)
        if np.unique(index).size < self.classes_.size:
            raise ValueError("a fold of cv leaves a class without samples to fit; use fewer folds, or stratified ones.")
        budget = self._budget()
        targets = self._targets(index)
        first = self._problem(self._with_class_weight(index, fitted), targets[0], budget)
        coef = np.empty((self.radii_.size, len(targets), first.n_features))
        intercept = np.empty((self.radii_.size, len(targets), first.n_features // n_features))
        seed = as_seed(self.random_state)
        for c, target in enumerate(targets):
            found = solutions(
                first.with_targets(target),
                budget.make,
                self.solver,
                self.radii_.tolist(),
                tol=self.tol,
                max_epochs=self.max_iter,
                random_state=seed,
            )
            for k, point in enumerate(found):
                coef[k, c], intercept[k, c] = point.w, point.intercept
        coef = coef.reshape(self.radii_.size, -1, n_features)
        intercept = intercept.reshape(coef.shape[:2])
        held_out = data.at(test)
        return np.array([self._score_of(coef[k], intercept[k], held_out) for k in range(self.radii_.size)])

    def _score_of(self, coef: np.ndarray, intercept: np.ndarray, held_out: Observations) -> float:
        X, y, weight, offset = held_out
        if offset is not None:  # a scorer knows no offsets, so they are one more column with the coefficient 1
            column = offset[:, None]
            X = scipy.sparse.hstack([X, column], format="csr") if scipy.sparse.issparse(X) else np.hstack([X, column])
            coef = np.hstack([coef, np.ones((coef.shape[0], 1))])
        if self.scoring is None:
            p = self._probabilities(X @ coef.T + intercept)[np.arange(y.size), np.searchsorted(self.classes_, y)]
            return float(np.average(np.log(np.maximum(p, np.finfo(float).tiny)), weights=weight))
        model = ConstrainedLogisticRegression(multi_class=self.multi_class)
        model.coef_, model.intercept_, model.classes_ = coef, intercept, self.classes_
        model.n_features_in_ = X.shape[1]
        return float(get_scorer(self.scoring)(model, X, y, **_as_keyword(weight)))

    def _check_settings(self) -> None:
        super()._check_settings()
        check_selection(self.selection)
        check_grid(self.n_radii, self.eps)
        if not isinstance(self.constraint, str):
            raise ValueError(f"constraint must be the name of a set with a radius here; got {self.constraint!r}.")


def _only(weight: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the weights of some samples, and zeros for the others."""
    part = np.zeros(weight.size)
    part[places] = weight[places]
    return part


def _as_keyword(weight: ArrayLike | None) -> dict[str, Any]:
    return {} if weight is None else {"sample_weight": weight}
