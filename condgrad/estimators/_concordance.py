"""Harrell's concordance index: how often, of two samples, the one with the higher risk has its event first."""

from __future__ import annotations

import numpy as np

from condgrad.compiled import kernel
from condgrad.problems.cox.risk_sets import risk_sets
from condgrad.problems.cox.survival import Survival


def concordance(data: Survival, risk: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the share of comparable pairs whose risks are in the right order, in O(n log n).

    Two samples of a stratum are comparable if the event of one is seen while the other is still at risk: it has a later
    time, or is censored at the same one. Equal risks count one half. With weights a pair counts the product of its two.
    """
    mass = np.ones(risk.size) if weight is None else weight
    sets = risk_sets(data, mass, is_efron=False)
    rank = _ranks(risk[sets.order], np.repeat(np.arange(sets.strata.size - 1), np.diff(sets.strata)))
    right, ties, total = _count_pairs(sets, rank, np.zeros(sets.order.size + 1))
    if total <= 0.0:
        raise ValueError(
            "no two samples can be compared: there must be an event at a time when another sample is still at risk."
        )
    return float((right + 0.5 * ties) / total)


def _ranks(risk: np.ndarray, stratum: np.ndarray) -> np.ndarray:
    """Return the rank of every risk in its stratum, from 0 on; equal risks have one rank."""
    order = np.lexsort((risk, stratum))
    is_next = risk[order][1:] != risk[order][:-1]
    is_new_stratum = np.append(True, stratum[order][1:] != stratum[order][:-1])
    number = np.cumsum(is_new_stratum | np.append(True, is_next))
    first = number[is_new_stratum][np.cumsum(is_new_stratum) - 1]
    rank = np.empty(risk.size, np.int64)
    rank[order] = number - first
    return rank


@kernel
def _count_pairs(sets, rank, tree):
    """Return the weights of the pairs in the right order, of those with equal risks, and of all.

    ``tree`` is a Fenwick tree of the weights by rank, of the samples that are at risk after the present time.
    """
    right, ties, total = 0.0, 0.0, 0.0
    for h in range(sets.strata.shape[0] - 1):
        size, at_risk = sets.strata[h + 1] - sets.strata[h], 0.0
        for i in range(size + 1):
            tree[i] = 0.0
        k = sets.strata[h]
        for g in range(sets.groups[h], sets.groups[h + 1]):
            for i in range(k, sets.first[g]):
                _add(tree, size, rank[i], sets.mass[i])
                at_risk += sets.mass[i]
            for i in range(sets.first[g], sets.stop[g]):
                below, up_to = _sum_before(tree, rank[i]), _sum_before(tree, rank[i] + 1)
                right += sets.mass[i] * below
                ties += sets.mass[i] * (up_to - below)
                total += sets.mass[i] * at_risk
            for i in range(sets.first[g], sets.stop[g]):
                _add(tree, size, rank[i], sets.mass[i])
                at_risk += sets.mass[i]
            k = sets.stop[g]
    return right, ties, total


@kernel
def _add(tree, size, place, value):
    k = place + 1
    while k <= size:
        tree[k] += value
        k = k + (k & -k)


@kernel
def _sum_before(tree, place):
    """Return the sum of the values at places below ``place``."""
    total, k = 0.0, place
    while k > 0:
        total += tree[k]
        k = k - (k & -k)
    return total
