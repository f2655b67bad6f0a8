"""ConstrainedClassifierCV: a linear classifier of any loss whose radius cross-validation picks."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.estimators._counts import refuse_counts
from condgrad.estimators._cross_validation import CrossValidated
from condgrad.estimators._observations import Observations
from condgrad.estimators.classifier import ConstrainedClassifier
from condgrad.linalg.convert import Data
from condgrad.linalg.settings import RandomState
from condgrad.storage.outside_rows import OutsideRows


class ValidatedClassifier(CrossValidated, ConstrainedClassifier):
    """Base of the classifiers with cross-validation: their targets and scores."""

    validates_classes = True

    def _framed(self, data: Observations) -> tuple[Observations, list[np.ndarray]]:
        index = self._number_classes(data.y, data.weight)
        return self._with_class_weight(index, data), self._targets(index)

    def _framed_fold(self, data: Observations) -> tuple[Observations, list[np.ndarray]]:
        index = np.searchsorted(self.classes_, data.y)
        if np.unique(index).size < self.classes_.size:
            raise ValueError("a fold of cv leaves a class without samples to fit; use fewer folds, or stratified ones.")
        return self._with_class_weight(index, data), self._targets(index)

    def _own_score(self, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> float:
        """Return the mean log-probability of the true class, or minus the mean loss where there are none."""
        index = np.searchsorted(self.classes_, y)
        if self._link() == "logit":
            return float(np.average(self._log_probabilities(scores)[np.arange(y.size), index], weights=weight))
        losses = self._loss().value(scores, np.column_stack(self._targets(index)))
        return -float(np.average(losses.mean(axis=1), weights=weight))

    def _with_coefficients(self, coef: np.ndarray, intercept: np.ndarray, *, is_single: bool) -> Self:
        model = super()._with_coefficients(coef, intercept, is_single=is_single)
        model.classes_ = self.classes_
        return model

    def fit(
        self,
        X: Data | OutsideRows,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
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
        groups : array of shape (n_samples,), optional
            Labels of samples that ``cv`` keeps together, such as ``GroupKFold()``.
        """
        data = self._validated(X, refuse_counts(y), sample_weight, offset)
        check_classification_targets(data.y)
        return self._fit_validated(data, groups)


class ConstrainedClassifierCV(ValidatedClassifier):
    r"""Linear classifier of any loss over any set, with the radius chosen by cross-validation.

    In every fold the radii are solved in ascending order, each started at the last solution and certified to ``tol``;
    the radius with the best mean score is taken for all data, the same one for all classes.

    Parameters
    ----------
    loss : str or loss object
        As in :class:`ConstrainedClassifier`.
    radii, n_radii, eps, constraint, refit, selection, n_jobs
        As in :class:`ConstrainedRegressorCV`.
    standardize : bool
        As in :class:`ConstrainedClassifier`; every fold has the deviations of the samples that it is fitted to.
    feature_weight, positive, lower, upper, rows
        Weights, limits and linear relations of the coefficients: as in :class:`ConstrainedClassifier`.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn: by default 5, stratified, but at most as many as the largest class has samples.
        ``fit`` takes the ``groups`` of a splitter.
    scoring : str, callable, list or dict, optional
        Scorers of scikit-learn. By default the mean log-probability of the true class, or minus the mean loss where the
        loss knows no probabilities.
    max_time : float, optional
        Seconds for the whole fit, four fifths of them for the choice of the radius, of which folds have equal shares.
        Where a fold runs out of time, the radii that all folds have solved are compared, at least the smallest one as
        far as it came, and a ``ConvergenceWarning`` says so.
    solver, fit_intercept, tol, max_iter, multi_class, class_weight, random_state, verbose, device
        As in :class:`ConstrainedClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_,
    feature_names_in_
        As in :class:`ConstrainedClassifier`, for the chosen radius on all data.
    radii_, score_path_, score_paths_
        As in :class:`ConstrainedRegressorCV`.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad import datasets
    >>> data = datasets.simulate_classification(120, 20, n_informative=3, random_state=0)
    >>> model = cg.ConstrainedClassifierCV("squared-hinge", n_radii=8, cv=3, scoring=["accuracy", "roc_auc"],
    ...                                    refit="roc_auc").fit(data.X, data.y)
    >>> bool(model.score_paths_["accuracy"].max() > 0.7), model.score_path_.shape[1]
    (True, 3)
    """

    def __init__(
        self,
        loss: object = "logistic",
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
        self.loss = loss
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
