"""FiniteSum: the form of a problem for kernels, one sample at a time, and the estimate of its gradient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints.vertices import AtomMemory, DenseMemory
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import Vector
from condgrad.problems.samples import Samples
from condgrad.problems.terms import Terms

# The places of the numbers in the ``scalars`` of an Estimate; a checkpoint stores them in this order.
_ALONG, _TOWARDS, _GAP, _CALLS = range(4)  # <r, w>, the last <r, s>, the smoothed gap, the number of oracle calls


@compiled
class FiniteSum(NamedTuple):
    """The sum over samples of weight_i f(x_i'w + b, y_i), over a constraint set."""

    X: Slices
    samples: Samples
    constraint: ConstraintSet
    b: np.ndarray

    def predict(self, i, w):
        """Return x_i'w + b for a vector ``w``."""
        return w.dot_slice(self.X, i) + self.b[0]

    def derivative(self, i, p):
        """Return weight_i f'(p, y_i): the gradient of the i-th term is this times x_i."""
        return self.samples.derivative_at(i, p)

    def curvature(self, i, p):
        """Return weight_i f''(p, y_i): the Hessian of the i-th term is this times x_i x_i'."""
        return self.samples.curvature_at(i, p)


@compiled
class GeneralSum(NamedTuple):
    """The sum over samples of weight f_i(w) for terms f_i of any form, over a constraint set."""

    terms: Terms
    constraint: ConstraintSet
    weight: float  # 1/n


@compiled
class Table(NamedTuple):
    """One number per sample."""

    values: np.ndarray

    def at(self, i):
        """Return the number of sample ``i``."""
        return self.values[i]

    def replace(self, i, new):
        """Store ``new`` for sample ``i`` and return the change."""
        change = new - self.values[i]
        self.values[i] = new
        return change


@compiled
class Estimate(NamedTuple):
    """An estimate r of the gradient, with <r, w> updated as a scalar and the stochastic gap of equation (31)."""

    vector: Vector
    scalars: np.ndarray
    smoothing: float

    def add_row(self, F, i, c, p):
        """Add c x_i to r, where p = x_i'w + b."""
        F.X.add_slice(i, c, self.vector)
        self.scalars[_ALONG] += c * (p - F.b[0])

    def add_array(self, c, v, w):
        """Add c v to r for an array v, where the iterate is the vector ``w``."""
        self.vector.add_array(c, v)
        self.scalars[_ALONG] += c * w.inner(v)

    def renew_sample(self, F, i, alpha, w):
        """Set alpha_i to the derivative at x_i'w and update r = X' alpha: Negiar et al., algorithm 1, lines 3 to 6."""
        p = F.predict(i, w)
        self.add_row(F, i, alpha.replace(i, F.derivative(i, p)), p)

    def shrink(self, factor):
        """Multiply r by ``factor``."""
        self.vector.shrink(factor)
        self.scalars[_ALONG] *= factor

    def average_in(self, F, rows, w, rho):
        """Set r to (1 - rho) r + rho g, where g is the mean over the batch of f_i'(x_i'w) x_i."""
        self.shrink(1.0 - rho)
        for q in range(rows.size()):
            i = rows.at(q)
            p = F.predict(i, w)
            self.add_row(F, i, rho * rows.share(i) * F.derivative(i, p), p)

    def best_vertex(self, F):
        """Return s = LMO(r), and record the gap <r, w - s>."""
        s = F.constraint.lmo(self.vector)
        self.scalars[_TOWARDS] = s.inner(self.vector)
        if self.scalars[_CALLS] == 0.0:
            self.scalars[_GAP] = self.gap()
        self.scalars[_GAP] += self.smoothing * (self.gap() - self.scalars[_GAP])
        self.scalars[_CALLS] += 1.0
        return s

    def renew(self, s):
        """Recompute <r, s> for an r that changed since the oracle returned s."""
        self.scalars[_TOWARDS] = s.inner(self.vector)

    def gap(self):
        """Return the stochastic gap <r, w - s> for the s that the oracle last returned."""
        return self.scalars[_ALONG] - self.scalars[_TOWARDS]

    def along(self):
        """Return <r, w>."""
        return self.scalars[_ALONG]

    def smoothed_gap(self):
        """Return the average of the stochastic gaps over about an epoch; inf before the first one."""
        return self.scalars[_GAP]

    def oracle_calls(self):
        """Return the number of oracle calls."""
        return self.scalars[_CALLS]

    def move(self, w, s, gamma):
        """Set w to (1 - gamma) w + gamma s, for the s that the oracle last returned."""
        self.scalars[_ALONG] = (1.0 - gamma) * self.scalars[_ALONG] + gamma * self.scalars[_TOWARDS]
        s.blend_into(w, gamma)

    def pursue(self, F, w, pursuit):
        """Let the pursuit find a direction from w that is close to -r; its end takes the place of the vertex."""
        s = self.best_vertex(F)
        n_calls = pursuit.aim(F.constraint, self.vector.to_array(), w.to_array(), s)
        self.head_for(pursuit.end)
        self.scalars[_CALLS] += n_calls

    def head_for(self, point):
        """Recompute <r, point> for an r that changed since the pursuit found the array ``point``."""
        self.scalars[_TOWARDS] = self.vector.inner(point)

    def move_to(self, w, point, gamma):
        """Set w to (1 - gamma) w + gamma point, where the array ``point`` is the end of the last pursuit."""
        self.scalars[_ALONG] = (1.0 - gamma) * self.scalars[_ALONG] + gamma * self.scalars[_TOWARDS]
        w.shrink(1.0 - gamma)
        w.add_array(gamma, point)

    def set_to(self, r, w):
        """Make r the array ``r``, where the iterate is the array ``w``."""
        self.vector.set_to(r)
        self.synchronise(w)

    def shift(self, change):
        """Add to <r, w> the ``change`` caused by a move of w."""
        self.scalars[_ALONG] += change

    def synchronise(self, w):
        """Compute <r, w> anew from the array ``w``: this removes the rounding errors of the running value."""
        self.scalars[_ALONG] = self.vector.to_array() @ w


@compiled
class Trail(NamedTuple):
    """The previous iterate ``w``, with the vertex and the step size that lead from it to the current iterate."""

    w: Vector
    memory: AtomMemory | DenseMemory
    gamma: np.ndarray

    def follow(self, s, gamma):
        """Move ``w`` to the current iterate, and store the move (``s``, ``gamma``) that the iterate makes now."""
        self.memory.get().blend_into(self.w, self.gamma[0])
        self.memory.put(s)
        self.gamma[0] = gamma

    def is_sound(self):
        """Return whether the stored vertex is one of existing features."""
        return isinstance(self.memory, DenseMemory) or bool(0 <= self.memory.index[0] < self.w.size())


def estimate(vector: Vector, smoothing: float) -> Estimate:
    """Return an estimate of the gradient that is stored in ``vector`` (zeros)."""
    return Estimate(vector, np.array([0.0, 0.0, np.inf, 0.0]), smoothing)
