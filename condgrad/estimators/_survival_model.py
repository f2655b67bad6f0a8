"""SurvivalModel: what the estimators of Cox's model share: their problem, their predictions and their score."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from condgrad.estimators._concordance import concordance
from condgrad.estimators._fits import Budget
from condgrad.estimators._linear_model import ConstrainedLinearModel
from condgrad.estimators._observations import Observations
from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import refuse_on_device
from condgrad.losses import Loss
from condgrad.problems.cox.hazard import BaselineHazard, baseline_hazards
from condgrad.problems.cox.problem import BRESLOW, CoxProblem
from condgrad.problems.cox.survival import Survival, as_strata, as_survival, as_times_and_events
from condgrad.run.result import Result
from condgrad.storage.outside_rows import refuse_outside

_TIME, _EVENT, _STRATUM = range(3)  # columns of the targets inside the estimators


class SurvivalModel(ConstrainedLinearModel):
    """Base of the estimators of Cox's model. Inside them y is a table: time, event, number of the stratum."""

    loss = "cox"
    fit_intercept = False
    learns_in_batches = False
    ties: str = BRESLOW

    baseline_: BaselineHazard | dict[Any, BaselineHazard]
    event_times_: np.ndarray
    strata_: np.ndarray | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _observed(
        self, X: Data, y: Any, sample_weight: ArrayLike | None, offset: ArrayLike | None, strata: ArrayLike | None
    ) -> Observations:
        """Return the samples of a fit, checked, and set the labels of the strata."""
        for refuse in (refuse_outside, refuse_on_device):
            refuse(X, type(self).__name__)
        time, event = as_times_and_events(y)
        codes, labels = as_strata(strata, time.size)
        table = np.column_stack([time, event, codes])
        data = self._validated(X, table, sample_weight, offset, multi_output=True, y_numeric=True)
        self.strata_ = labels
        return data

    def _problem(self, data: Observations, y: np.ndarray, budget: Budget) -> CoxProblem:
        return CoxProblem(
            data.X, y[:, [_TIME, _EVENT]], budget.unit_set(), ties=self.ties, strata=y[:, _STRATUM],
            sample_weight=data.weight, offset=data.offset,
        )  # fmt: skip

    def _check_offset(self, offset: np.ndarray | None, targets: list[np.ndarray]) -> None:
        """Do nothing: a sample has one score."""

    def _loss(self) -> Loss:
        raise TypeError(f"{type(self).__name__} has no loss of single samples.")

    @property
    def model_(self) -> NoReturn:
        """Raise: model files hold models of losses of single samples."""
        name = type(self).__name__
        raise AttributeError(f"model files have no place for the hazards of {name}; use pickle or joblib.")

    def _conclude(self, data: Observations, targets: list[np.ndarray], results: list[Result]) -> None:
        problem = self._problem(data, targets[0], self._budget(data))
        hazards = baseline_hazards(problem, results[0].w)
        self.event_times_ = np.unique(problem.y.time[problem.sets.order[problem.sets.first]])
        codes = np.unique(targets[0][:, _STRATUM]).astype(int)  # those of the samples with weight
        if self.strata_ is None:
            self.baseline_ = hazards[0]
        else:
            self.baseline_ = {self.strata_[code].item(): hazards[h] for h, code in enumerate(codes)}

    def _flatten(self) -> None:
        self.coef_, self.intercept_ = self.coef_[0], 0.0

    def predict(self, X: Data, offset: ArrayLike | None = None) -> np.ndarray:
        """Return the logarithm of the relative hazard of each sample, x'w + offset: larger is a higher risk."""
        return self._scores(X, offset)[:, 0]

    def predict_cumulative_hazard_function(
        self,
        X: Data,
        times: ArrayLike | None = None,
        *,
        strata: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the cumulative hazard of each sample at each time, an array of shape (n_samples, n_times).

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        times : array, optional
            By default ``event_times_``.
        strata : array of shape (n_samples,), optional
            The strata of the samples, for a model that was fitted with strata.
        offset : array of shape (n_samples,), optional
            For a model that was fitted with offsets.
        """
        p = self.predict(X, offset)
        at = self.event_times_ if times is None else np.array(times, dtype=np.float64, ndmin=1)
        if at.ndim != 1 or np.isnan(at).any():
            raise ValueError(f"times must be a sequence of numbers; got {times!r}.")
        return np.exp(self._log_baselines(at, p.size, strata) + p[:, None])

    def predict_survival_function(
        self,
        X: Data,
        times: ArrayLike | None = None,
        *,
        strata: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the probability that the event of each sample is after each time, of shape (n_samples, n_times).

        The parameters are those of :meth:`predict_cumulative_hazard_function`, H: the probability is exp(-H).
        """
        return np.exp(-self.predict_cumulative_hazard_function(X, times, strata=strata, offset=offset))

    def _log_baselines(self, times: np.ndarray, n_samples: int, strata: ArrayLike | None) -> np.ndarray:
        """Return the logarithms of the cumulative baseline hazards, one row for each sample or one for all."""
        if not isinstance(self.baseline_, dict):
            if strata is not None:
                raise ValueError("this model was fitted without strata; leave strata out.")
            return self.baseline_.log_at(times)[None]
        if strata is None:
            raise ValueError("this model was fitted with strata, and each has its own hazard; pass strata.")
        codes, labels = as_strata(strata, n_samples)
        assert labels is not None
        unknown = [label for label in labels.tolist() if label not in self.baseline_]
        if unknown:
            raise ValueError(f"strata has the label {unknown[0]!r}, which was not there in the fit.")
        return np.array([self.baseline_[label].log_at(times) for label in labels.tolist()])[codes]

    def score(
        self,
        X: Data,
        y: Any,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        strata: ArrayLike | None = None,
    ) -> float:
        """Return Harrell's concordance index: the share of pairs of samples whose risks are in the order of the events.

        Pairs are compared within strata. Equal risks count one half, so that 0.5 is the score of a constant.
        """
        check_is_fitted(self)
        p = self.predict(X, offset)
        weight = None if sample_weight is None else convert.as_weights(sample_weight, p.size)
        return concordance(as_survival(y, p.size, as_strata(strata, p.size)[0]), p, weight)


def survival_of(table: np.ndarray) -> Survival:
    """Return the times, events and strata of a table of targets."""
    return Survival(table[:, _TIME], table[:, _EVENT] > 0.0, table[:, _STRATUM].astype(np.int64))


def events_of(table: np.ndarray) -> np.ndarray:
    """Return the events of a table of targets."""
    return table[:, _EVENT]
