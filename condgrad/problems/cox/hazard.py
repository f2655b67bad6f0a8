"""BaselineHazard: the hazard that all samples of a stratum share, by Breslow's estimator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.problems.cox import likelihood
from condgrad.problems.cox.problem import CoxProblem


class BaselineHazard(NamedTuple):
    """The cumulative hazard of x'w = 0 as a step function, which jumps at the times of events.

    Attributes
    ----------
    times : array
        The times of events, ascending.
    log_cumulative_hazard : array
        The logarithms of the cumulative hazard from these times on; before the first one the hazard is 0.
    """

    times: np.ndarray
    log_cumulative_hazard: np.ndarray

    @property
    def cumulative_hazard(self) -> np.ndarray:
        """The cumulative hazard from the times of events on."""
        hazard: np.ndarray = np.exp(self.log_cumulative_hazard)
        return hazard

    def log_at(self, times: np.ndarray) -> np.ndarray:
        """Return the logarithm of the cumulative hazard at any times."""
        steps: np.ndarray = np.append(-np.inf, self.log_cumulative_hazard)
        return steps[np.searchsorted(self.times, times, side="right")]


def baseline_hazards(problem: CoxProblem, w: np.ndarray) -> dict[int, BaselineHazard]:
    """Return the baseline hazard of every stratum with samples of positive weight, by the number of the stratum.

    The cumulative hazard at t is the sum of (weight of the events) / (sum_R m_j exp(p_j)) over the times of events up
    to t; with Efron's rule each time has the mean of d such terms.
    """
    sets = problem.sets
    p = problem.offset.added_to(sets.order, problem.scores(w)[0][sets.order])
    of_mass = np.log(problem.mass.sum())  # the weights of groups are shares of it
    jumps = likelihood.log_hazards(sets, likelihood.sums_at(sets, p)) + of_mass - problem.matrix.along_shift(w)
    times = problem.y.time[sets.order[sets.first]]
    found = {}
    for h, start in enumerate(sets.strata[:-1]):
        own = slice(sets.groups[h], sets.groups[h + 1])
        ascending = jumps[own][::-1]
        total = np.logaddexp.accumulate(ascending) if ascending.size else ascending
        found[int(problem.y.stratum[sets.order[start]])] = BaselineHazard(times[own][::-1].copy(), total)
    return found
