"""ConstrainedCoxRegressionCV: Cox's model with the radius chosen by cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._allowance import PerFeature, Which
from condgrad.constraints._row_sentences import Rows
from condgrad.estimators._concordance import concordance
from condgrad.estimators._cross_validation import CrossValidated
from condgrad.estimators._observations import Observations
from condgrad.estimators._survival_model import SurvivalModel, events_of, survival_of
from condgrad.linalg.convert import Data
from condgrad.problems.cox.problem import BRESLOW

_METRICS = _LIKELIHOOD, _CONCORDANCE = "partial-likelihood", "concordance"


class ConstrainedCoxRegressionCV(SurvivalModel, CrossValidated):
    r"""Cox's proportional hazards model over any set, with the radius chosen by cross-validation.

    In every fold the radii are solved in ascending order, each started at the last solution and certified to ``tol``.
    By default a model is judged by the log partial likelihood of all samples minus that of the samples that it was
    fitted to (Verweij & van Houwelingen), as in glmnet: so events that were left out are compared with all samples at
    risk, not only with those left out.

    Parameters
    ----------
    radii, n_radii, eps, constraint, cv, selection, n_jobs
        As in :class:`ConstrainedRegressorCV`; by default folds have equal shares of the events.
    scoring : {"partial-likelihood", "concordance"}, or a list of both
        "concordance" is Harrell's index of the samples left out, which is :meth:`score`.
    refit : str, optional
        Which of several scorings chooses the radius.
    ties, feature_weight, positive, lower, upper, rows, solver, tol, max_iter, max_time, verbose
        As in :class:`ConstrainedCoxRegression`.

    Attributes
    ----------
    coef_, baseline_, event_times_, strata_, gap_, rounding_, radius_, alpha_, result_, trace_, n_iter_,
    n_features_in_, feature_names_in_
        As in :class:`ConstrainedCoxRegression`, for the chosen radius on all data.
    radii_, score_path_, score_paths_
        As in :class:`ConstrainedRegressorCV`.

    References
    ----------
    Verweij & van Houwelingen (1993). Simon, Friedman, Hastie & Tibshirani (2011).

    Examples
    --------
    >>> import numpy as np
    >>> import condgrad as cg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 5))
    >>> y = np.column_stack([rng.exponential(np.exp(-X[:, 0])), rng.random(100) < 0.7])  # times, and events seen
    >>> model = cg.ConstrainedCoxRegressionCV(n_radii=5, cv=3).fit(X, y)
    >>> int(np.abs(model.coef_).argmax()), model.score_path_.shape[1]
    (0, 3)
    """

    validates_classes = True

    def __init__(
        self,
        *,
        radii: ArrayLike | None = None,
        n_radii: int = 20,
        eps: float = 1e-2,
        ties: str = BRESLOW,
        constraint: object = "l1",
        feature_weight: PerFeature = None,
        positive: Which = False,
        lower: PerFeature = None,
        upper: PerFeature = None,
        rows: Rows = None,
        cv: object = None,
        scoring: object = _LIKELIHOOD,
        refit: str | None = None,
        selection: str = "best",
        solver: object = "auto",
        tol: float = 1e-6,
        max_iter: float = 1000,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.radii = radii
        self.n_radii = n_radii
        self.eps = eps
        self.ties = ties
        self.constraint = constraint
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
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Data,
        y: Any,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        strata: ArrayLike | None = None,
    ) -> Self:
        """Choose the radius and fit the model.

        Parameters
        ----------
        X, y, sample_weight, offset, strata
            As in :meth:`ConstrainedCoxRegression.fit`.
        groups : array of shape (n_samples,), optional
            Labels of samples that ``cv`` keeps together, such as ``GroupKFold()``.
        """
        self._fit_validated(self._observed(X, y, sample_weight, offset, strata), groups)
        self._flatten()
        return self

    def _framed(self, data: Observations) -> tuple[Observations, list[np.ndarray]]:
        return data, [data.y]

    def _fold_labels(self, y: np.ndarray) -> np.ndarray:
        return events_of(y)

    def _scorers(self) -> dict[str, str]:
        """Return the metrics by their names."""
        names = [self.scoring] if isinstance(self.scoring, str) else self.scoring
        if not isinstance(names, list | tuple) or not names or not set(names) <= set(_METRICS):
            raise ValueError(
                f"scoring must be 'partial-likelihood', 'concordance' or a list of both; got {self.scoring!r}."
            )
        return {name: name for name in names}

    def _fold_scores(
        self, data: Observations, train: np.ndarray, test: np.ndarray, radii: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the scores of the models of all radii that were fitted on ``train``."""
        fitted, held_out = data.at(train), data.at(test)
        coef, _ = self._fold_models(fitted, radii)
        judges = {_LIKELIHOOD: self._by_likelihood, _CONCORDANCE: self._by_concordance}
        return {name: judges[name](data, fitted, held_out, coef[:, 0]) for name in self._scorers()}

    def _by_likelihood(
        self, data: Observations, fitted: Observations, held_out: Observations, coef: np.ndarray
    ) -> np.ndarray:
        """Return what the samples left out add to the log partial likelihood, over their weight."""
        budget = self._budget(data)
        whole, part = (self._problem(some, some.y, budget) for some in (data, fitted))
        weight = float(len(held_out.y) if held_out.weight is None else held_out.weight.sum())
        gains = [whole.objective(w) * whole.mass.sum() - part.objective(w) * part.mass.sum() for w in coef]
        return -np.array(gains) / weight

    def _by_concordance(
        self, data: Observations, fitted: Observations, held_out: Observations, coef: np.ndarray
    ) -> np.ndarray:
        X, y, weight, offset = held_out
        scores = X @ coef.T + (0.0 if offset is None else offset[:, None])
        return np.array([concordance(survival_of(y), p, weight) for p in scores.T])
