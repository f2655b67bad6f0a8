"""ColumnPart: F as a function of the coefficients of some features, the others being zero, through their columns."""

from __future__ import annotations

import numpy as np

from condgrad.linalg.column_sweeps import measure, sweep
from condgrad.linalg.conjugate_gradients import Diagonal, Flatness, ThreadedGradients
from condgrad.linalg.passes import add_chosen, count_chosen, dot_chosen
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import DenseVector
from condgrad.problems.samples import Samples

_FLAT = 1e-6  # share of the curvature of single coefficients below which a direction has no minimum
_LOST = 1e-11  # the same share, for what rounding may have put there
_MOST_HALVINGS = 20  # of a step on which the Taylor model does not hold
_ROUNDING = 1e-13  # share of F that rounding may add to it
_STRAIGHT = 0.02  # least curvature of a sample in a model, relative to their mean


class ColumnPart:
    """F at some coefficients w of the chosen columns and an intercept b, to second order.

    Parameters
    ----------
    columns : Slices
    chosen : array of int
        The columns to which coefficients belong; the coefficients of the others are zero.
    samples : Samples
    l2 : float
        The penalty l2 ||w||^2 / 2 is a part of F.
    has_intercept : bool
    is_dense : bool
        Whether the columns are dense, in single precision: then it is enough for what sweeps change for each sample.

    Attributes
    ----------
    w, b, value : array, float, float
        The coefficients, the intercept and F, after :meth:`go_to`.
    slopes, bends : array
        The first and second derivatives by each coefficient, after :meth:`measure`; the latter without ``l2``.
    """

    def __init__(
        self,
        columns: Slices,
        chosen: np.ndarray,
        samples: Samples,
        l2: float,
        has_intercept: bool,
        is_dense: bool,
    ) -> None:
        self.columns, self.chosen, self.samples = columns, chosen, samples
        self.l2, self.has_intercept, self.is_dense = l2, has_intercept, is_dense
        self._tilt = np.zeros(chosen.size)  # what rounded columns lack of the first derivatives of F
        self._random = np.random.default_rng(0)  # the same for every part, so that a run that is continued is the same
        self.slopes, self.bends = np.empty(chosen.size), np.empty(chosen.size)

    @property
    def n_stored(self) -> int:
        """The number of entries of the chosen columns."""
        return int(count_chosen(self.columns, self.chosen))

    def go_to(self, w: np.ndarray, b: float) -> None:
        """Go to these coefficients and this intercept."""
        self.w, self.b = w, b
        self._p = self._predictions(np.flatnonzero(w), w[w != 0.0])
        self._expand()

    def lean(self, slopes: np.ndarray) -> None:
        """Add a linear function to F, so that its first derivatives by the coefficients are these, where it is now."""
        lacking = slopes - self.slopes
        self.value += float(lacking @ self.w)
        self._tilt, self.slopes = self._tilt + lacking, slopes.copy()

    def approach(self, w: np.ndarray, b: float, way: np.ndarray | None = None) -> bool:
        """Go towards these coefficients and this intercept, as far as the Taylor model holds; return False if nowhere.

        The Taylor model holds where F grows beyond its tangent no more than twice as much as the model does: then a
        step to the minimum of the model descends. ``way`` is by how much the predictions change, where that is known.
        """
        before, slopes, bends, value = self._p, self._alpha, self._d, self.value
        way_w, way_b = w - self.w, b - self.b
        way_p = self._predictions(np.flatnonzero(w), w[w != 0.0]) - before if way is None else way - way_b
        along = way_p + way_b
        slope = float(slopes @ along) + float((self.l2 * self.w + self._tilt) @ way_w)
        bend = float(bends @ (along * along)) + self.l2 * float(way_w @ way_w)
        w_before, b_before = self.w, self.b
        for t in range(_MOST_HALVINGS):
            share = 0.5**t
            self.w, self.b, self._p = w_before + share * way_w, b_before + share * way_b, before + share * way_p
            self._expand()
            if self.value <= value + share * slope + share * share * bend + _ROUNDING * abs(value):
                return True
        self.go_to(w_before, b_before)
        return False

    def _expand(self) -> None:
        """Compute F and its derivatives by the predictions."""
        totals, self._alpha, d = self.samples.expand(self._p, self.b)
        # Where the loss is almost straight, a model would lead far beyond the place where it bends.
        self._d = np.maximum(d, _STRAIGHT * max(0.0, float(d.mean())))
        self.value = totals.value + float((0.5 * self.l2 * self.w + self._tilt) @ self.w)

    def measure(self) -> None:
        """Compute the derivatives by the coefficients."""
        measure(self.columns, self.chosen, self._alpha, self._d, self.slopes, self.bends)
        self.slopes += self.l2 * self.w + self._tilt

    def sweep(
        self, price: np.ndarray, multiplier: float, stiffness: float, n_sweeps: int
    ) -> tuple[np.ndarray, float, float, np.ndarray]:
        """Return coefficients, their intercept and the multiplier after some sweeps over the Taylor model.

        The last array is by how much predictions, with the intercept, change: the sweeps find it, times the curvatures.
        See :func:`condgrad.linalg.column_sweeps.sweep`. Dense columns may have much in common, and then no sweeps are
        slower than those in one order [1]_: each has a random order of its own. Sparse columns are read as they lie.

        References
        ----------
        .. [1] Sun & Ye (2021), Worst-case complexity of cyclic coordinate descent.
        """
        w, precision = self.w.copy(), np.float32 if self.is_dense else np.float64
        orders = np.tile(np.arange(w.size), (n_sweeps, 1))
        if self.is_dense:
            self._random.permuted(orders, axis=1, out=orders)
        balance = float(self._alpha.sum()) if self.has_intercept else 0.0
        d, a = self._d.astype(precision, copy=False), np.zeros(self._d.size, precision)
        multiplier, shift = sweep(
            self.columns, self.chosen, d, a, balance, self.slopes - self.l2 * w, self.bends, self.l2, price, w,
            multiplier, stiffness, orders, self.has_intercept,
        )  # fmt: skip
        way = np.divide(a, d, out=np.zeros(a.size), where=d > 0.0)
        return w, self.b + shift, multiplier, way

    def newton(self, normal: np.ndarray, missing: float, n_products: int) -> tuple[np.ndarray, float]:
        """Return coefficients and intercept close to the minimum of the Taylor model over the coefficients in use.

        The step has <normal, step> = ``missing``; a ``normal`` of zeros leaves it free. It is found by conjugate
        gradients, by so many products with the second derivatives.
        """
        support = np.flatnonzero(self.w)
        products = _Products(self, support, normal[support])
        step = products.across(missing)
        rest = np.empty(support.size)
        products.apply(step, rest)
        # The intercept follows the coefficients: at its own minimum its derivative is zero.
        gradients = ThreadedGradients(products.projected(products.mixed * products.lag - self.slopes[support]) - rest)
        flatness = Flatness(self.bends[support], self.l2, _FLAT, _LOST)
        gradients.solve(products, Diagonal(products.inverse), flatness, 0.0, n_products)
        step += gradients.x
        w = self.w.copy()
        w[support] += step
        return w, self.b - products.lag - products.of_intercept(step)

    def _predictions(self, places: np.ndarray, w: np.ndarray) -> np.ndarray:
        p = np.zeros(self.samples.y.size)
        add_chosen(self.columns, self.chosen[places], w, DenseVector(p))
        return p


class _Products:
    """Products with the second derivatives of F by the coefficients in use, for the best intercept of each.

    The steps of interest have <normal, step> = 0. What a product has across that plane is taken out, in the metric of
    the diagonal: so it does not drown the rest in its rounding, and conjugate gradients stay on the plane.
    """

    def __init__(self, part: ColumnPart, support: np.ndarray, normal: np.ndarray) -> None:
        self.part, self.support, self.normal, self.d = part, support, normal, part._d
        curvature = part.bends[support] + part.l2
        self.inverse = np.divide(1.0, curvature, out=np.zeros(support.size), where=curvature > 0.0)
        self.width = float(normal @ (self.inverse * normal))
        self.mixed, self.total, self.lag = np.zeros(support.size), float(self.d.sum()), 0.0
        if part.has_intercept and self.total > 0.0:
            self.mixed = dot_chosen(part.columns, part.chosen[support], self.d)
            self.lag = float(part._alpha.sum()) / self.total  # by how much b exceeds its minimum, to first order

    def across(self, distance: float) -> np.ndarray:
        """Return the shortest step, in that metric, with <normal, step> = ``distance``; 0 if there is none."""
        step: np.ndarray = self.inverse * self.normal * (distance / self.width if self.width > 0.0 else 0.0)
        return step

    def projected(self, v: np.ndarray) -> np.ndarray:
        """Return v without its part across the plane."""
        if self.width == 0.0:
            return v
        inside: np.ndarray = v - self.normal * (float(self.normal @ (self.inverse * v)) / self.width)
        return inside

    def of_intercept(self, step: np.ndarray) -> float:
        """Return by how much the best intercept falls with a step of the coefficients."""
        return float(self.mixed @ step) / self.total if self.total > 0.0 else 0.0

    def apply(self, v: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` with the product."""
        part = self.part
        bent = dot_chosen(part.columns, part.chosen[self.support], self.d * part._predictions(self.support, v))
        out[:] = self.projected(bent + part.l2 * v - self.of_intercept(v) * self.mixed)
