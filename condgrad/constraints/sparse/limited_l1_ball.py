"""The l1 ball with limits for each coefficient, and with free features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from condgrad.constraints._budget import decompose_within_budget, most_within_budget, project_within_budget
from condgrad.constraints._parameters import as_integer, as_reals, shown
from condgrad.constraints._protocol import best_vertex, constraint_set, known_features
from condgrad.constraints._rounding import rounded_up, shortfall
from condgrad.constraints.linear_rows import LinearRows, split_rows
from condgrad.constraints.vertices import SparseVertex, nonzeros
from condgrad.linalg.selection import largest, pop, push
from condgrad.linalg.settings import check_positive

_NAME = "LimitedL1Ball"
_MORE = 1.0 + 1e-9  # features are kept until their prices exceed the budget by this factor: sums of prices are rounded


@constraint_set
class LimitedL1Ball(NamedTuple):
    """The set {w : sum_j weights_j |w_j| <= radius, lower_j <= w_j <= upper_j}: sparse models with limits.

    A feature of weight 0 is *free*: it costs nothing, and needs finite limits. At a vertex, free features are at a
    limit, and of the others all but one are 0 or at a limit. The oracle spends the budget where it lowers <r, w> most,
    on the largest |r_j| / weights_j first: O(d + k log d) for k features that it spends on.

    Parameters
    ----------
    radius : float
        The budget.
    weights : float or array of shape (n_features,), optional
        The price of each feature, at least 0; by default 1.
    lower, upper : float or array of shape (n_features,), optional
        The limits of each coefficient, with lower <= 0 <= upper; by default only the budget limits it. A number stands
        for all features. ``lower=0.0`` makes all coefficients at least 0.
    size : int, optional
        The number of features, 0 for any; by default it follows from the arrays.

    Examples
    --------
    >>> ball = LimitedL1Ball(radius=2.0, weights=[1.0, 1.0, 0.0], lower=[0.0, -np.inf, -9.0], upper=[1.5, np.inf, 9.0])
    >>> ball.contains([1.5, -0.5, 8.0]), ball.contains([-0.5, 1.0, 0.0]), ball.contains([1.5, 1.0, 0.0])
    (True, False, False)
    """

    radius: float
    weights: ArrayLike | None = None
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    size: int | None = None

    vertex = SparseVertex
    is_polytope = True
    has_projection = True

    def __repr__(self):
        parts = [f"radius={self.radius!r}"]
        shorter = (("weights", self.weights, 1.0), ("lower", self.lower, -np.inf), ("upper", self.upper, np.inf))
        for name, values, default in shorter:
            if (values != default).any():
                parts.append(f"{name}={shown(values) if self.size else format(values[0], 'g')}")
        return f"{_NAME}({', '.join(parts)})"

    @property
    def n_features(self):
        """The number of features, None for a set of any dimension."""
        return self.size or None

    @property
    def is_symmetric(self):
        """Whether the set contains -w for every w in it."""
        return bool((self.lower == -self.upper).all())

    def prepare(self):
        """Return the fields with arrays of the length ``size``; a set of any dimension stores one entry of each."""
        given = {"weights": (self.weights, 1.0), "lower": (self.lower, -np.inf), "upper": (self.upper, np.inf)}
        lengths = {np.size(value) for value, _ in given.values() if np.ndim(value) > 0}
        size = max(lengths, default=0) if self.size is None else as_integer(_NAME, "size", self.size)
        if not lengths <= {max(size, 1)}:
            raise ValueError(
                f"weights, lower and upper of {_NAME} must be numbers or arrays of one length; "
                f"got lengths {sorted(lengths)}" + ("." if self.size is None else f" and size={size}.")
            )
        arrays = []
        for name, (value, default) in given.items():
            value = default if value is None else value
            value = [value] * max(size, 1) if np.ndim(value) == 0 else value
            arrays.append(as_reals(_NAME, name, value, is_finite=name == "weights"))
        return self.radius, *arrays, size

    def check(self):
        """Raise unless the radius is positive, 0 is within all limits, and no feature is unbounded."""
        check_positive(_NAME, "radius", self.radius)
        if self.weights.min() < 0.0:
            raise ValueError(f"weights of {_NAME} must be at least 0; got {float(self.weights.min())!r}.")
        if not (self.lower.max() <= 0.0 <= self.upper.min()):  # a nan is no limit either
            raise ValueError(
                f"0 must lie between lower and upper of {_NAME}; got a lower limit of {float(self.lower.max())!r} and "
                f"an upper limit of {float(self.upper.min())!r}. Use LinearlyConstrained(L1Ball(...), bounds=...)."
            )
        is_unbounded = ~np.isfinite(self.ends()).all(axis=0)
        if is_unbounded.any():
            j = int(is_unbounded.argmax())
            raise ValueError(
                f"lower and upper of {_NAME} must be finite where a feature has the weight 0, or almost 0; "
                f"got lower = {self.lower[j]:g}, upper = {self.upper[j]:g} and the weight {self.weights[j]:g} at "
                f"feature {j}."
            )

    def ends(self):
        """Return -w_j for the smallest w_j of the set, and the largest w_j, as two rows."""
        with np.errstate(divide="ignore", over="ignore"):
            most = self.radius / self.weights
        return np.minimum([-self.lower, self.upper], most)

    def lmo(self, r):
        """Return limits at the free features, and spend the budget in the order of |r_j| / weights_j."""
        d = r.size()
        stride = 0 if self.size == 0 else 1
        steepest = abs(r.at(r.argmax_abs()))
        scale = 1.0 if steepest == 0.0 else steepest
        values, gains, heap = np.zeros(d), np.empty(d), np.empty(d, np.int64)
        # The features with the largest gains that the budget is enough for, and one more; what they cost together; the
        # least gain that is worth buying.
        n_bought, cost, least = 0, 0.0, 0.0
        for j in range(d):
            weight = self.weights[stride * j]
            size = abs(r.at(j)) / scale
            if size <= least * weight and weight > 0.0:
                continue
            limit = -self.lower[stride * j] if r.at(j) > 0.0 else self.upper[stride * j]
            if weight == 0.0:
                values[j] = -limit if r.at(j) > 0.0 else limit
            elif limit > 0.0:
                gains[j] = size / weight
                push(heap, gains, n_bought, j)
                n_bought += 1
                cost += self.price(r, stride, j)
                while n_bought > 1 and cost - self.price(r, stride, heap[0]) >= _MORE * self.radius:
                    cost -= self.price(r, stride, heap[0])
                    pop(heap, gains, n_bought)
                    n_bought -= 1
                least = gains[heap[0]] if cost >= _MORE * self.radius else 0.0
        for k in range(n_bought):
            pop(heap, gains, n_bought - k)
        self.spend(r, stride, heap, n_bought, values)
        return nonzeros(values)

    def price(self, r, stride, j):
        """Return the budget that feature j can use in the direction of -r_j."""
        limit = -self.lower[stride * j] if r.at(j) > 0.0 else self.upper[stride * j]
        return min(self.radius, self.weights[stride * j] * limit)

    def spend(self, r, stride, features, count, values):
        """Spend the budget on the first ``count`` of the ``features``, one after the other."""
        budget = self.radius
        for k in range(count):
            j = features[k]
            limit = -self.lower[stride * j] if r.at(j) > 0.0 else self.upper[stride * j]
            amount = min(limit, budget / self.weights[stride * j])
            values[j] = -amount if r.at(j) > 0.0 else amount
            budget = max(0.0, budget - self.weights[stride * j] * amount)  # rounding must not make it negative

    def restricted(self, features):
        """Return the set on the chosen features alone."""
        if self.size == 0:
            return self
        return LimitedL1Ball(self.radius, self.weights[features], self.lower[features], self.upper[features])

    def best_features(self, r, count, most):
        """Return the free features, those of the best vertex, and others with a large |r_j| / weights_j."""
        weights, gains = np.broadcast_to(self.weights, r.size), self.gains(r)
        others = largest(gains, min(count, int(np.count_nonzero(gains))))
        return np.unique(np.concatenate([np.flatnonzero(weights == 0.0), best_vertex(self, r).indices, others]))

    def limits_along(self, r):
        """Return the largest |w_j| on the side of zero to which -r_j points."""
        below, above = self.ends()
        return np.where(r > 0.0, below, above)

    def multiplier(self, r):
        """Return the rate at which the least <r, w> falls as the radius grows: the gain of the last feature bought."""
        gains = self.gains(r)
        order = np.argsort(-gains, kind="stable")
        costs = np.broadcast_to(self.weights * self.limits_along(r), r.size)
        is_spent = np.cumsum(costs[order]) >= self.radius
        return float(gains[order[is_spent.argmax()]]) if is_spent.any() else 0.0

    def gains(self, r):
        """Return |r_j| / weights_j, 0 for free features and for those whose limit does not let them move along -r_j."""
        weights = np.broadcast_to(self.weights, r.size)
        gains = np.zeros(r.size)
        np.divide(np.abs(r), weights, out=gains, where=(weights > 0.0) & (self.limits_along(r) > 0.0))
        return gains

    def oracle_rounding(self, r, s):
        """Return the most that the budget can gain along -r, plus <r, s>, rounded up."""

        def top(x):
            limits, weights = _wide(self.limits_along(x), x.size), _wide(self.weights, x.size)
            return most_within_budget(np.abs(x), weights, limits, self.radius)

        return shortfall(top, r, s)

    def reach(self, c):
        """Return sum_j c_j (upper_j - lower_j) of the free features, and twice what the budget can reach: a bound."""
        below, above = (_wide(end, c.size) for end in self.ends())
        weights, sizes = _wide(self.weights, c.size), _wide(c, c.size)
        is_free = weights == 0.0
        limits = np.where(is_free, 0.0, np.maximum(below, above))
        most = 2.0 * most_within_budget(sizes, weights, limits, self.radius)
        return rounded_up(most + (sizes * (below + above))[is_free].sum(), c.size)

    def diameter(self, order=2, n_features=None):
        """Return a bound, exact for ``order=inf``: the box of the free features, and sizes of sums for the others.

        The latter is ||x||_p^p <= ||x||_1 ||x||_inf^(p - 1) for the difference x of two points.
        """
        widths = self.ends().sum(axis=0)
        if order == np.inf:
            return float(widths.max())
        d = known_features(self, n_features)
        is_paid, widths = np.broadcast_to(self.weights > 0.0, d), np.broadcast_to(widths, d)
        free, box = (float(np.linalg.norm(widths[chosen], order)) for chosen in (~is_paid, is_paid))
        total, longest = self.reach(is_paid.astype(np.float64)), float(widths[is_paid].max(initial=0.0))
        return float(np.linalg.norm([free, min(box, total ** (1.0 / order) * longest ** (1.0 - 1.0 / order))], order))

    def linear_rows(self, n_features):
        """Return the row sum_j weights_j |w_j| <= radius, with the limits."""
        weights, below, above = (np.broadcast_to(part, n_features) for part in (self.weights, *self.ends()))
        if not below.any():
            return LinearRows(below, above, A_ub=weights[None, :], b_ub=np.array([self.radius]))
        return split_rows(weights, self.radius, above, below)

    def violation(self, w):
        """Return the largest of sum_j weights_j |w_j| - radius, lower_j - w_j and w_j - upper_j."""
        spent = (self.weights * np.abs(w)).sum()
        return float(np.max([spent - self.radius, (self.lower - w).max(), (w - self.upper).max()]))

    def decompose(self, w):
        """Return one vertex more than ``w`` has entries that are neither 0 nor at a limit, or two."""
        weights = np.broadcast_to(self.weights, w.size)
        features = np.flatnonzero((w != 0.0) | (weights == 0.0))
        if features.size == 0:
            return [(1.0, SparseVertex(np.zeros(1, np.int64), np.zeros(1)))]
        # Amounts u >= 0: those of free features count from the lower limit, those of the others from 0.
        below, above = (np.broadcast_to(end, w.size)[features] for end in self.ends())
        prices, values = weights[features], w[features]
        is_free, sign = prices == 0.0, np.where((values < 0.0) & (prices > 0.0), -1.0, 1.0)
        first = np.where(is_free, -below, 0.0)
        limits = np.where(is_free, below + above, np.where(values < 0.0, below, above))
        parts = decompose_within_budget(sign * (values - first), prices, limits, self.radius)
        return [(weight, SparseVertex(features, first + sign * u)) for weight, u in parts]

    def project(self, w):
        """Return the point of the set nearest to ``w``: |w_j| shrinks by theta weights_j, and stays within limits."""
        weights = np.broadcast_to(self.weights, w.size)
        sizes = project_within_budget(np.abs(w), weights, self.limits_along(-w), self.radius)
        return np.copysign(sizes, w)


def _wide(values: np.ndarray, n_features: int) -> np.ndarray:
    """Return one wide float for each feature."""
    return np.broadcast_to(values, n_features).astype(np.longdouble)
