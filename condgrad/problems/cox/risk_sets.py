"""RiskSets: the samples in the order of their times, so that the sums over all risk sets are running sums.

At the time of an event, the samples at risk are those of its stratum with this time or a later one. The samples are
sorted by stratum, by falling time and, at one time, censored ones first. The risk set of a group of events at the same
time is then everything from the beginning of the stratum to the last event of the group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.problems.cox.survival import Survival

_MOST_SAMPLED_GROUPS = 1000.0  # number of different risk sets, in each stratum, of a curvature from some samples


class RiskSets(NamedTuple):
    """Samples in their order, and groups of events at the same time. ``place`` below means a place in this order.

    Attributes
    ----------
    order : array
        The sample at every place; samples without weight have no place.
    mass : array
        The weight of the sample at every place, as the user gave it.
    share : array
        For events their weight over the sum of all weights, 0 for censored samples.
    strata, groups : array, one number more than strata
        The first place, and the first group, of every stratum.
    first, stop : array
        The events of a group have the places from ``first`` up to ``stop``, without it.
    weight : array
        The sum of the shares of the events of a group.
    n_terms : array
        The number of logarithms of a group: one (Breslow), or one for each event (Efron).
    """

    order: np.ndarray
    mass: np.ndarray
    share: np.ndarray
    strata: np.ndarray
    groups: np.ndarray
    first: np.ndarray
    stop: np.ndarray
    weight: np.ndarray
    n_terms: np.ndarray

    @property
    def n_groups(self) -> int:
        """The number of groups of events."""
        return self.first.size

    def sampled(self, places: np.ndarray, factor: np.ndarray) -> RiskSets:
        """Return the risk sets of the samples at some places, each counted ``factor`` times, for all events.

        Events that follow each other closely, with about a thousandth of the weight of all events, have one risk set,
        and so have those with the same sampled one; those that have none are left out.
        """
        portion = np.cumsum(self.weight) * (_MOST_SAMPLED_GROUPS / float(self.weight.sum()))
        of_group = np.repeat(np.arange(self.strata.size - 1), np.diff(self.groups))
        is_last = np.append((np.floor(portion[1:]) > np.floor(portion[:-1])) | (of_group[1:] > of_group[:-1]), True)
        last = np.flatnonzero(is_last)[np.append(0, np.cumsum(is_last)[:-1])]  # the last group that shares a risk set
        stop, strata = np.searchsorted(places, self.stop[last]), np.searchsorted(places, self.strata)
        is_met = stop > strata[of_group]
        single, at = np.unique(stop[is_met], return_inverse=True)
        return RiskSets(
            order=self.order[places],
            mass=self.mass[places] * factor,
            share=np.zeros(places.size),
            strata=strata,
            groups=np.searchsorted(single, strata, side="right"),
            first=single,  # all samples count as censored ones, as if ties were broken
            stop=single,
            weight=np.bincount(at, weights=self.weight[is_met], minlength=single.size),
            n_terms=np.ones(single.size, np.int64),
        )


def risk_sets(data: Survival, mass: np.ndarray, *, is_efron: bool) -> RiskSets:
    """Return the risk sets of samples with these weights."""
    used = np.flatnonzero(mass > 0.0)
    time, event, stratum = data.at(used)
    by_time = np.lexsort((event, -time, stratum))
    order = used[by_time]
    time, event, stratum = time[by_time], event[by_time], stratum[by_time]
    total = float(mass.sum())
    mass = mass[order]
    share = np.where(event, mass / total, 0.0)
    is_new_stratum = np.append(True, stratum[1:] != stratum[:-1])
    strata = np.append(np.flatnonzero(is_new_stratum), order.size)
    is_new = is_new_stratum | np.append(True, (time[1:] != time[:-1]) | (event[1:] != event[:-1]))
    begins = np.flatnonzero(is_new)
    ends = np.append(begins[1:], order.size)
    first, stop = begins[event[begins]], ends[event[begins]]
    n_events = stop - first
    return RiskSets(
        order=order,
        mass=mass,
        share=share,
        strata=strata,
        groups=np.searchsorted(first, strata),
        first=first,
        stop=stop,
        weight=np.add.reduceat(share, first),  # the shares between two groups are zeros
        n_terms=n_events if is_efron else np.ones(first.size, np.int64),
    )
