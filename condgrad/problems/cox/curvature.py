r"""The second derivatives of the partial likelihood on some directions.

With the predictions z_j of the directions, the weights e_j of :mod:`likelihood` and the means zbar of z in the risk
sets, weighted with m_j exp(p_j), the matrix of second derivatives is

    H = sum_j e_j z_j z_j' - sum_g u_g zbar_g zbar_g'.

The means are running ones: a sample that joins the risk set moves the mean by its portion of the whole sum, which needs
no exponential of large numbers. For ties by Efron's rule the d means of a group lie on a line: they are b + phi_k
(o - b) with the mean b of the others, o of the group's events and portions phi_k, so that two rows are enough for them.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from condgrad.compiled import kernel
from condgrad.problems.cox.likelihood import Sums
from condgrad.problems.cox.risk_sets import RiskSets

_BLOCK_ENTRIES = 4_000_000  # largest number of entries of the dense predictions that are used at a time


class Rows(Protocol):
    """Returns the predictions of all directions for some samples: an array with a row for each sample."""

    def __call__(self, samples: np.ndarray) -> np.ndarray: ...


class Ties(NamedTuple):
    """The portion of the events of each group in its risk set, and mean and standard deviation of its phi_k."""

    portion: np.ndarray
    centre: np.ndarray
    spread: np.ndarray


def second_derivatives(
    sets: RiskSets,
    sums: Sums,
    expected: np.ndarray,
    rows: Rows,
    n_directions: int,
    n_known: int = 0,
    gram: np.ndarray | None = None,
) -> np.ndarray:
    """Return H on the directions; entries [:n_known, :n_known] are left out: the caller has them already.

    ``gram`` is the first sum of H, where the caller knows a faster way than a product of dense matrices.
    """
    ties = _ties(sets, sums)
    H = np.zeros((n_directions, n_directions)) if gram is None else gram
    mean, own, group = np.zeros(n_directions), np.zeros(n_directions), 0
    height = max(1, _BLOCK_ENTRIES // max(1, n_directions))
    for start in range(0, sets.order.size, height):
        places = slice(start, start + height)
        Z = np.ascontiguousarray(rows(sets.order[places]))
        means = np.empty((Z.shape[0] + 1, n_directions))
        group, n_rows = _running_means(sets, sums.joining, ties, Z, start, group, mean, own, means)
        means = means[:n_rows]
        H[:, n_known:] -= means.T @ means[:, n_known:]
        if gram is None:
            Z *= np.sqrt(expected[places])[:, None]
            H[:, n_known:] += Z.T @ Z[:, n_known:]
    H[n_known:, :n_known] = H[:n_known, n_known:].T
    return H


def _ties(sets: RiskSets, sums: Sums) -> Ties:
    ties = Ties(*(np.empty(sets.n_groups) for _ in range(3)))
    _fill_ties(sets, sums.before, sums.own, ties)
    return ties


@kernel
def _fill_ties(sets, before, own, ties):
    for g in range(sets.first.shape[0]):
        n_terms, of_one, of_square = sets.n_terms[g], 0.0, 0.0
        for j in range(n_terms):
            part = (n_terms - j) / n_terms * own[g]
            phi = part / (before[g] + part)
            of_one += phi / n_terms
            of_square += phi * phi / n_terms
        ties.portion[g] = own[g] / (before[g] + own[g])
        ties.centre[g] = of_one
        ties.spread[g] = np.sqrt(max(0.0, of_square - of_one * of_one)) if n_terms > 1 else 0.0


@kernel
def _running_means(sets, joining, ties, Z, start, group, mean, own, means):
    """Fill in the rows sqrt(u_g) zbar_g for the groups that end among the samples of Z, which begin at ``start``.

    ``mean`` and ``own`` are the means of the risk set so far and of the events of a group, from block to block; the
    portion 1 of the first sample of a stratum, and of a group, begins a new mean. Returns the next group and the number
    of rows.
    """
    n_groups, n_rows, width = sets.first.shape[0], 0, Z.shape[1]
    for i in range(Z.shape[0]):
        k = start + i
        portion = joining[k]
        if group < n_groups and sets.first[group] <= k:
            for c in range(width):
                own[c] += portion * (Z[i, c] - own[c])
        else:
            for c in range(width):
                mean[c] += portion * (Z[i, c] - mean[c])
        if group < n_groups and sets.stop[group] == k + 1:
            root, of_group = np.sqrt(sets.weight[group]), ties.portion[group]
            centre, spread = ties.centre[group], ties.spread[group]
            for c in range(width):
                means[n_rows, c] = root * (mean[c] + centre * (own[c] - mean[c]))
            n_rows += 1
            if spread > 0.0:
                for c in range(width):
                    means[n_rows, c] = root * spread * (own[c] - mean[c])
                n_rows += 1
            for c in range(width):
                mean[c] += of_group * (own[c] - mean[c])
            group += 1
    return group, n_rows
