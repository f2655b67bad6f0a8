r"""The negative log partial likelihood of predictions p, its derivatives, and bounds of their rounding errors.

With the weights m_i of the samples, R the risk set of a group g of events D at the same time, and shares u_i (m_i over
the sum of all weights) with the sum u_g in the group, the group's part of F is

    Breslow:  u_g log A - sum_D u_i p_i,                            A = sum_R m_j exp(p_j)
    Efron:    u_g / d sum_(k=0)^(d-1) log A_k - sum_D u_i p_i,      A_k = sum_(R - D) m_j exp(p_j)
                                                                          + (1 - k/d) sum_D m_j exp(p_j)

for d events. The sums run over samples in the order of falling times. Each is kept as a number times exp(top), where
``top`` is the largest prediction so far, so that nothing overflows, and a risk set whose predictions are far below
those of others keeps its digits. All terms are positive and none is subtracted: so relative errors stay small.

*Rounding.* Let all predictions be wrong by at most eta. Then log A is wrong by at most eta, and the expected events
e_j = m_j exp(p_j) sum_g u_g / A_g, sums of positive terms, are wrong by the factor exp(2 eta) at most. A sum of n terms
has the relative error gamma(n); each of the c changes of ``top`` multiplies it by an exponential once more, with an
error of a few units; and the errors of the differences p_j - top, of at most ``span``, add up to a unit of span.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import kernel
from condgrad.compiled.elementary import exp
from condgrad.linalg.rounding import FORMULA, UNIT, gamma
from condgrad.problems.cox.risk_sets import RiskSets

_LARGEST_EXPONENT = 708.0  # exponentials of less than minus this are 0


class Sums(NamedTuple):
    """The sums over the risk set of every group of events, each times exp(-top).

    Attributes
    ----------
    top : array
        The largest prediction in the risk set of each group.
    before : array
        The sum of m_j exp(p_j - top) over the risk set without the events of the group.
    own : array
        The same sum over the events of the group.
    joining : array
        The portion of the sample at every place in the sum of itself and the samples before it; that of an event among
        the events of its group.
    n_tops : int
        How often ``top`` changed.
    """

    top: np.ndarray
    before: np.ndarray
    own: np.ndarray
    joining: np.ndarray
    n_tops: int


def sums_at(sets: RiskSets, p: np.ndarray) -> Sums:
    """Return the sums for predictions p in the order of the sets."""
    top, before, own = (np.empty(sets.n_groups) for _ in range(3))
    joining = np.ones(p.size)
    return Sums(top, before, own, joining, int(_add_up(sets, p, top, before, own, joining)))


def value_of(sets: RiskSets, p: np.ndarray, sums: Sums) -> tuple[float, float]:
    """Return F, and the sum of the sizes of its terms."""
    value, size = _value(sets, p, sums.top, sums.before, sums.own)
    return float(value), float(size)


def expected_events(sets: RiskSets, p: np.ndarray, sums: Sums) -> np.ndarray:
    """Return e_j: how many events, as a share of all weights, the model expects at the sample of every place."""
    out = np.zeros(p.size)
    _expect(sets, p, sums.top, sums.before, sums.own, out)
    return out


def log_hazards(sets: RiskSets, sums: Sums) -> np.ndarray:
    """Return the logarithm of the jump u_g / A (Efron: their mean) of the baseline hazard at every group."""
    jumps = np.empty(sets.n_groups)
    _jumps(sets, sums.before, sums.own, jumps)
    logs: np.ndarray = np.log(jumps) - sums.top
    return logs


def least_value(sets: RiskSets) -> float:
    """Return a lower bound of F over all predictions, rounding included.

    It is approached where nobody else is at risk at an event, and where the events of a group have equal risks.
    """
    zeros = np.zeros(sets.n_groups)
    own = np.add.reduceat(np.where(sets.share > 0.0, sets.mass, 0.0), sets.first)
    value, size = _value(sets, np.zeros(sets.mass.size), zeros, zeros, own)
    return float(value) - 2.0 * gamma(sets.mass.size + FORMULA) * (float(size) + float(sets.weight.sum()))


def largest_variance(sets: RiskSets, q: np.ndarray) -> float:
    """Return sum_g u_g (max_R q - min_R q)^2 / 4, a bound of the second derivative of F along q at any predictions.

    The second derivative is sum_g u_g times the variance of q in the risk set, with weights that depend on p.
    """
    return float(_largest_variance(sets, q))


class Errors(NamedTuple):
    """Bounds of rounding errors: relative for every e_j, absolute for F."""

    expected: float
    value: float


def errors_of(sets: RiskSets, p: np.ndarray, sums: Sums, size: float, eta: float) -> Errors:
    """Return the bounds for predictions that are wrong by at most ``eta``; see the top of this file."""
    n, share = p.size, float(sets.weight.sum())
    span = min(float(p.max() - p.min()), _LARGEST_EXPONENT)
    # Terms that are 0 here: they are below exp(-708) times a mass, or subnormal, beside the mass of the largest one.
    lost = n * float((sets.mass.max() + 1.0) / sets.mass.min()) * math.exp(-_LARGEST_EXPONENT)
    of_sum = gamma(n + FORMULA * (sums.n_tops + 3)) + 2.0 * UNIT * span + lost
    of_terms = gamma(n + FORMULA)
    return Errors(
        expected=math.expm1(min(2.0 * eta, _LARGEST_EXPONENT)) + 4.0 * of_sum,
        value=2.0 * share * (eta + of_sum) + of_terms * (size + share),
    )


@kernel
def _add_up(sets, p, top, before, own, joining):
    """Fill in the sums and portions, and return how often the largest prediction changed."""
    n_tops = 0
    for h in range(sets.strata.shape[0] - 1):
        k = sets.strata[h]
        high, total = -np.inf, 0.0
        for g in range(sets.groups[h], sets.groups[h + 1]):
            high, total, changed = _add_range(sets, p, k, sets.first[g], high, total, joining)
            own_high, own_total, own_changed = _add_range(sets, p, sets.first[g], sets.stop[g], -np.inf, 0.0, joining)
            k = sets.stop[g]
            largest = max(high, own_high)
            before[g] = total * exp(high - largest)
            own[g] = own_total * exp(own_high - largest)
            top[g] = largest
            high, total = largest, before[g] + own[g]
            n_tops = n_tops + changed + own_changed
    return n_tops


@kernel
def _add_range(sets, p, start, stop, high, total, joining):
    """Add m_k exp(p_k) for the places from start on to total exp(high), and fill in their portions."""
    changed = 0
    for k in range(start, stop):
        if p[k] > high:
            total = total * exp(high - p[k])
            high = p[k]
            changed += 1
        term = sets.mass[k] * exp(p[k] - high)
        total = total + term
        joining[k] = term / total
    return high, total, changed


@kernel
def _value(sets, p, top, before, own):
    """Return F and the sum of the sizes of its terms: of u_i (top - p_i), which are not negative, and of logarithms."""
    value, size = 0.0, 0.0
    for g in range(sets.first.shape[0]):
        distance = 0.0
        for k in range(sets.first[g], sets.stop[g]):
            distance += sets.share[k] * (top[g] - p[k])
        n_terms = sets.n_terms[g]
        logs, sizes = 0.0, 0.0
        for j in range(n_terms):
            log = math.log(before[g] + (n_terms - j) / n_terms * own[g])
            logs += log
            sizes += abs(log)
        value += distance + sets.weight[g] / n_terms * logs
        size += distance + sets.weight[g] / n_terms * sizes
    return value, size


@kernel
def _expect(sets, p, top, before, own, out):
    """Fill in e_k, from the earliest group of a stratum, which has the largest risk set, to the latest.

    ``rate`` exp(-high) is the sum of u_g / A_g over the groups so far; the largest prediction ``high`` falls.
    """
    for h in range(sets.strata.shape[0] - 1):
        low, n_groups = sets.groups[h], sets.groups[h + 1]
        rate, high = 0.0, 0.0
        for step in range(n_groups - low):
            g = n_groups - 1 - step
            rate = rate * exp(top[g] - high) if step > 0 else 0.0
            high = top[g]
            n_terms = sets.n_terms[g]
            of_all, of_own = 0.0, 0.0
            for j in range(n_terms):
                portion = (n_terms - j) / n_terms
                inverse = 1.0 / (before[g] + portion * own[g])
                of_all += inverse
                of_own += portion * inverse
            each = sets.weight[g] / n_terms
            for k in range(sets.first[g], sets.stop[g]):
                out[k] = sets.mass[k] * exp(p[k] - high) * (rate + each * of_own)
            rate += each * of_all
            start = sets.strata[h] if g == low else sets.stop[g - 1]
            for k in range(start, sets.first[g]):
                out[k] = sets.mass[k] * exp(p[k] - high) * rate


@kernel
def _jumps(sets, before, own, out):
    for g in range(sets.first.shape[0]):
        n_terms, total = sets.n_terms[g], 0.0
        for j in range(n_terms):
            total += 1.0 / (before[g] + (n_terms - j) / n_terms * own[g])
        out[g] = sets.weight[g] / n_terms * total


@kernel
def _largest_variance(sets, q):
    total = 0.0
    for h in range(sets.strata.shape[0] - 1):
        k = sets.strata[h]
        low, high = np.inf, -np.inf
        for g in range(sets.groups[h], sets.groups[h + 1]):
            for i in range(k, sets.stop[g]):
                low, high = min(low, q[i]), max(high, q[i])
            k = sets.stop[g]
            total += sets.weight[g] * (0.5 * (high - low)) ** 2
    return total
