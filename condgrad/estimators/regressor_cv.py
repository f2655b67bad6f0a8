"""ConstrainedRegressorCV: a linear regressor of any loss whose radius cross-validation picks."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.estimators._cross_validation import CrossValidated
from condgrad.estimators._observations import Observations
from condgrad.estimators.regressor import ConstrainedRegressor
from condgrad.linalg.convert import Data
from condgrad.linalg.settings import RandomState
from condgrad.storage.outside_rows import OutsideRows


class ValidatedRegressor(CrossValidated, ConstrainedRegressor):
    """Base of the regressors with cross-validation: their targets and scores."""

    def _framed(self, data: Observations) -> tuple[Observations, list[np.ndarray]]:
        return data, self._targets(data.y)

    def _own_score(self, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> float:
        losses = self._loss().value(scores, y.reshape(scores.shape))
        return -float(np.average(losses.mean(axis=1), weights=weight))

    def _with_coefficients(self, coef: np.ndarray, intercept: np.ndarray, *, is_single: bool) -> Self:
        model = super()._with_coefficients(coef, intercept, is_single=is_single)
        if is_single:
            model._flatten()
        return model

    def score(
        self,
        X: Data,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
    ) -> float:
        """Return the score of ``scoring`` that has chosen the radius; where that is None, the usual one."""
        y, weight = self._of_trials(y, sample_weight)
        return super().score(X, y, weight, self._whole_offset(X, offset, exposure))

    def fit(
        self,
        X: Data | OutsideRows,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Choose the radius and fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or rows on disk
            or of a cluster. For these the radius is chosen on a sample in memory, and the model is then fitted to all
            rows; :class:`ConstrainedLassoCV` and :class:`ConstrainedElasticNetCV` choose it on all rows, too, where
            sums of products of two columns serve.
        y : array of shape (n_samples,), or (n_samples, n_outputs) where the estimator takes several outputs
        sample_weight : array of shape (n_samples,), optional
            Weighs samples in fitting and in the scores. Samples without weight are left out.
        offset : array of shape (n_samples,), optional
            Known numbers that are added to x'w + b in the loss. Predictions of the model then need an offset, too.
        groups : array of shape (n_samples,), optional
            Labels of samples that ``cv`` keeps together, such as ``GroupKFold()``.
        exposure : array of shape (n_samples,), optional
            As in :meth:`ConstrainedRegressor.fit`; folds have the exposures of their samples.
        """
        offset = self._whole_offset(X, offset, exposure)
        takes_several = self.__sklearn_tags__().target_tags.multi_output
        data = self._validated(X, y, sample_weight, offset, multi_output=takes_several, y_numeric=True)
        data = data._replace(y=data.y.astype(np.float64, copy=False))
        self._fit_validated(data, groups)
        if data.y.ndim == 1:
            self._flatten()
        return self


class ConstrainedRegressorCV(ValidatedRegressor):
    r"""Linear regressor of any loss over any set, with the radius chosen by cross-validation.

    In every fold the radii are solved in ascending order, each started at the last solution and certified to ``tol``;
    the radius with the best mean score is taken for all data, the same one for all outputs.

    Parameters
    ----------
    loss : str or loss object
        As in :class:`ConstrainedRegressor`.
    radii : array, optional
        The radii to choose from. By default ``n_radii`` of them, evenly spaced in their logarithm, between a hundredth
        of ``radius_max(X, y, loss=loss, eps=eps)`` and itself. If the largest one has the best mean score, and not just
        by a thousandth of what the others bring, this grid is extended, up to ten thousand times its end; if the
        largest one is the best even then, a ``RadiusWarning`` says so.
    n_radii, eps : int, float
        See ``radii``.
    constraint : str, set or callable
        The name of a set, or a set with a radius, such as ``GroupBall(groups, 1.0)``, of which only the radius is
        replaced, or a function that makes the set of a radius. One that does not contain zero (the simplex) needs
        ``radii``.
    standardize : bool
        As in :class:`ConstrainedRegressor`; every fold has the deviations of the samples that it is fitted to.
    feature_weight, positive, lower, upper, rows
        Weights, limits and linear relations of the coefficients: as in :class:`ConstrainedRegressor`.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn: 5 by default. ``fit`` takes the ``groups`` of a splitter.
    scoring : str, callable, list or dict, optional
        Scorers of scikit-learn. By default minus the mean loss (the mean over outputs).
    refit : str, optional
        Which of several scorers chooses the radius.
    selection : {"best", "one-standard-error"}
        Which radius: the one with the best mean, or the smallest one whose mean is within one standard error of it.
    max_time : float, optional
        Seconds for the whole fit, four fifths of them for the choice of the radius, of which folds have equal shares.
        Where a fold runs out of time, the radii that all folds have solved are compared, at least the smallest one as
        far as it came, and a ``ConvergenceWarning`` says so.
    solver, fit_intercept, tol, max_iter, multi_output, random_state, verbose, device
        As in :class:`ConstrainedRegressor`.
    n_jobs : int, optional
        Number of folds solved at a time, on threads: the kernels release the interpreter lock.

    Attributes
    ----------
    coef_, intercept_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`ConstrainedRegressor`, for the chosen radius on all data.
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
    >>> data = datasets.simulate_regression(80, 20, n_informative=3, noise=0.5, random_state=0)
    >>> model = cg.ConstrainedRegressorCV("huber", n_radii=8, cv=3).fit(data.X, data.y)
    >>> bool(model.score(data.X, data.y) > 0.5), model.score_path_.shape[1]
    (True, 3)
    """

    def __init__(
        self,
        loss: object = "squared",
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
        multi_output: str = "separate",
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
        self.multi_output = multi_output
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.device = device
