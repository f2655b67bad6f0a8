"""CoxProblem: the partial likelihood of Cox's proportional hazards model over a constraint set."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints.vertices import Vertex
from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.device.arrays import refuse_on_device
from condgrad.linalg.factored import IterateLike
from condgrad.linalg.fingerprint import fingerprint_of
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.rounding import UNIT, Bounds, gamma
from condgrad.problems.base import Feature
from condgrad.problems.cox import likelihood
from condgrad.problems.cox.look import CoxLook, Seen
from condgrad.problems.cox.risk_sets import RiskSets, risk_sets
from condgrad.problems.cox.survival import Survival, as_strata, as_survival
from condgrad.problems.evaluation import Support, certify, gap_at, vertex_rounding
from condgrad.problems.offset import as_offset
from condgrad.problems.outputs import OutputsProblem
from condgrad.storage.outside_rows import refuse_outside

TIES = BRESLOW, EFRON = "breslow", "efron"
_WHY = "a sample of a Cox model has no term of its own: its risk is compared with that of all others"
_SLACK = 1.01  # factor that covers the rounding of the bounds themselves
_SMALLEST_SCALE = 1e-9  # smallest loss_scale, over the share of events: for events without anybody else at risk


class CoxProblem(OutputsProblem):
    r"""Minimise over w in C the negative log partial likelihood of Cox's proportional hazards model, over n.

    The hazard of sample i at a time t is h(t) exp(x_i'w) with an unknown h. Given that an event happens at t, it meets
    sample i with the probability exp(x_i'w) / sum_R exp(x_j'w), where R are the samples at risk: those whose event or
    censoring is at t or later. With the events E,

        F(w) = (1/n) sum_(i in E) [log sum_(R_i) exp(x_j'w) - x_i'w],

    for n samples, as glmnet and scikit-survival scale it. With ``sample_weight`` v the terms of the sums are
    multiplied by v_j, those of the events by v_i, and n is the sum of the weights: so n F is minus the log likelihood
    of R's package survival. Events at the same time are treated by Breslow's rule, the formula above, or by Efron's
    (with weights as there: each of the d logarithms counts for the mean weight of the d events).

    F is not a mean over samples with a term each, so solvers of single samples do not apply. A pass costs two products
    with X and O(n): the samples are sorted once. Besides "corrective", which "auto" chooses, "fw", "lazy", "away",
    "pairwise", "bpcg" and "boosted" solve it.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Used without a copy, as by :class:`~condgrad.Problem`. Sums are accumulated in float64.
    y : array of shape (n_samples, 2), structured array or data frame
        Two columns: times, and 1 for an event or 0 for a censored sample. In a structured array (as scikit-survival
        makes them) and in a data frame, a boolean column holds the events, whatever its place.
    constraint : a set of :mod:`condgrad.constraints`, or any object with a method ``lmo``
    ties : {"breslow", "efron"}
    strata : array of shape (n_samples,), optional
        Labels: samples are compared within their stratum only, so that each stratum has its own h.
    sample_weight : array of shape (n_samples,), optional
    offset : array of shape (n_samples,), optional
        Known numbers o_i: the hazard of sample i is h(t) exp(x_i'w + o_i).

    Examples
    --------
    >>> import condgrad as cg
    >>> X, y = [[0.0], [1.0], [0.0], [1.0]], [[5.0, 1], [1.0, 1], [4.0, 0], [2.0, 1]]
    >>> problem = cg.CoxProblem(X, y, cg.constraints.L1Ball(1.0))
    >>> cg.minimize(problem).w
    array([1.])
    """

    is_convex = True
    remedies: ClassVar = dict.fromkeys((Feature.SAMPLES, Feature.CHUNKS, Feature.PREDICTIONS), _WHY)
    n_outputs = 1
    matrix: Matrix

    def __init__(
        self,
        X: Data,
        y: Any,
        constraint: object,
        *,
        ties: str = BRESLOW,
        strata: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> None:
        refuse_outside(X, type(self).__name__)
        refuse_on_device(X, type(self).__name__)
        # A number added to all predictions changes no probability, so columns may be centred.
        super().__init__(Matrix(convert.as_data(X)), sample_weight, is_centred=True)
        if ties not in TIES:
            raise ValueError(f"ties must be 'breslow' or 'efron'; got {ties!r}.")
        self.ties, self.offset = ties, as_offset(offset, self.n_samples)
        self.mass = np.ones(self.n_samples) if sample_weight is None else self._masses(sample_weight)
        stratum, _ = as_strata(strata, self.n_samples)
        self._set_targets(as_survival(y, self.n_samples, stratum))
        self._constrain(constraint)

    def _masses(self, sample_weight: ArrayLike) -> np.ndarray:
        return convert.as_vector(sample_weight, "sample_weight", self.n_samples)

    def _set_targets(self, y: Survival) -> None:
        """Set the targets, or raise if there is no event."""
        if not self._has_events_of(y):
            raise ValueError("y has no event among the samples with weight; the partial likelihood needs at least one.")

    def _has_events_of(self, y: Survival) -> bool:
        """Set the targets, and return whether there are events."""
        self.y = y
        self.sets: RiskSets = risk_sets(y, self.mass, is_efron=self.ties == EFRON)
        return self.sets.n_groups > 0

    def __repr__(self) -> str:
        n_events = int(np.count_nonzero(self.sets.share))
        sizes = f"n_samples={self.n_samples}, n_events={n_events}, n_features={self.n_features}"
        return f"CoxProblem({self.constraint!r}, ties={self.ties!r}, {sizes})"

    @property
    def event_share(self) -> float:
        """The weight of all events, over that of all samples."""
        return float(self.sets.weight.sum())

    def value_of(self, S: np.ndarray) -> float:
        """Return F for the scores S."""
        p = self._in_order(S)
        return likelihood.value_of(self.sets, p, likelihood.sums_at(self.sets, p))[0]

    def derivatives_of(self, S: np.ndarray) -> np.ndarray:
        """Return the derivatives of F with respect to the scores S: expected events minus events."""
        p = self._in_order(S)
        return self._spread(likelihood.expected_events(self.sets, p, likelihood.sums_at(self.sets, p)))

    def _in_order(self, S: np.ndarray) -> np.ndarray:
        """Return the predictions plus offsets in the order of the risk sets."""
        p: np.ndarray = self.offset.added_to(self.sets.order, S[0][self.sets.order])
        return p

    def _spread(self, expected: np.ndarray) -> np.ndarray:
        """Return the derivatives of all samples in the order of X, from the expected events."""
        A = np.zeros((1, self.n_samples))
        A[0, self.sets.order] = expected - self.sets.share
        return A

    def intercept_for(self, w: np.ndarray, S: np.ndarray) -> float:
        """Return 0: the unknown h takes the place of an intercept."""
        return 0.0

    def look(self, w: IterateLike) -> CoxLook:
        """Make a pass at w and return objective, gradient, gap, vertex and, on demand, the curvature."""
        w = convert.as_point(w, self.n_features, "w")
        p = self._in_order(self.scores(w))
        sums = likelihood.sums_at(self.sets, p)
        value, size = likelihood.value_of(self.sets, p, sums)
        seen = Seen(p, sums, likelihood.expected_events(self.sets, p, sums))
        A = self._spread(seen.expected)
        r = self.gradient_of(A)
        s = self.lmo(r)
        oracle = vertex_rounding(self.constraint, r, Support.of(w), s)
        rounding = self._rounding_at(w, s, seen, size).with_oracle(oracle)
        found = certify(True, value, r, gap_at(r, w, s), s, 0.0, rounding)
        return CoxLook(self.matrix, self.sets, found, seen)

    def _rounding_at(self, w: np.ndarray, s: Vertex, seen: Seen, size: float) -> Bounds:
        """Return bounds of the rounding errors of gradient and objective at w, without those of the oracle.

        An error of the derivatives A changes the gap by at most ||A|| times what the predictions can change from w to
        another point of the set. Two pairs of norms bound it: sqrt(sum_i A_i^2 / weight_i) with the norms of the
        columns, and sum_i |A_i| with the largest entry of X, which is better if few samples have most of the risk.
        """
        errors = likelihood.errors_of(self.sets, seen.p, seen.sums, size, self._prediction_error(w))
        slopes, root = np.abs(seen.expected - self.sets.share), np.sqrt(self.weight[self.sets.order])
        unit, share = gamma(self.n_samples + 8), self.event_share  # the sum of all shares, and their norm squared
        in_norm = errors.expected * float(np.linalg.norm(seen.expected / root)) + 4.0 * UNIT * math.sqrt(share)
        in_norm += unit * float(np.linalg.norm(slopes / root))
        in_sum = errors.expected * float(seen.expected.sum()) + 4.0 * UNIT * share + unit * float(slopes.sum())
        far, apart = float(self.constraint.diameter(1, w.size)), float(np.abs(w - s.to_dense(w.size)).sum())
        far = far + apart if apart > far else far  # the first: for a point outside the set
        of_gap = min(in_norm * self.reach_from(w, s), in_sum * self.largest_entry * far)
        return Bounds(_SLACK * of_gap, _SLACK * errors.value)

    def _prediction_error(self, w: np.ndarray) -> float:
        """Return a bound of the rounding error of a prediction with its offset."""
        size = self.largest_entry * float(np.abs(w).sum())
        of_sum = gamma(int(np.count_nonzero(w)) + 4) * size
        return of_sum + self.offset.rounding(size)

    def lipschitz(self) -> float:
        """Return a Lipschitz constant of grad F in the l2 norm: the share of events times the largest ||x_i||^2.

        Along a direction d of length 1 no x_i'd is larger than ||x_i||, and a variance is at most the largest square.
        """
        return self.event_share * float(self.matrix.row_norms().max()) ** 2

    def curvature_along(self, Q: np.ndarray) -> float:
        """Return a bound of the second derivative of F along a line on which the scores change at the rate Q."""
        return likelihood.largest_variance(self.sets, Q[0][self.sets.order])

    def _take_targets_of(self, whole: Self, rows: np.ndarray) -> bool:
        self.mass, self.offset = whole.mass[rows], whole.offset.chosen(rows)
        return self._has_events_of(whole.y.at(rows))

    def with_targets(self, y: Any) -> Self:
        """Return the same problem with other times and events in the same strata; both share the data and views."""
        other = self._without()
        other._set_targets(as_survival(y, self.n_samples, self.y.stratum))
        return other

    def null_objective(self) -> float:
        """Return the objective at w = 0, without a pass over X."""
        return self.value_of(np.zeros((1, self.n_samples)))

    def least_value(self) -> float:
        """Return the infimum of F over all predictions: minus the log likelihood of a saturated model, over n."""
        return likelihood.least_value(self.sets)

    def loss_scale(self) -> float:
        """Return half the mean deviance of w = 0: F there, minus its infimum; tolerances are relative to it."""
        return max(self.null_objective() - self.least_value(), _SMALLEST_SCALE * self.event_share)

    def derivative_size(self) -> float:
        """Return a bound of the sum of the derivatives' sizes: those of expected events, and those of events."""
        return 2.0 * self.event_share

    def prediction_size(self) -> float:
        """Return a typical size of predictions: the loss of w = 0, over the size of its derivatives."""
        A = self.derivatives_of(np.zeros((1, self.n_samples)))[0, self.sets.order]
        size = math.sqrt(float(A @ (A / self.weight[self.sets.order])))
        return self.loss_scale() / size if size > 0.0 else 1.0

    def fingerprint(self) -> str:
        """Return a hash of all that defines the problem, by which a checkpoint recognises it."""
        own = (*self.y, self.mass, *self.offset.definition(), self.ties, self.constraint)
        return fingerprint_of((type(self).__name__, *self._data(), *own))
