"""Base classes of stochastic solvers with a table alpha of derivatives and the estimate r = X' alpha."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.convert import as_number
from condgrad.linalg.vectors import Vector
from condgrad.problems.active_atoms import ActiveAtoms
from condgrad.problems.finite_sum import Estimate, Table
from condgrad.solvers.stochastic.base import StepSolver, step_solver
from condgrad.solvers.stochastic.sampling import check_method


class TableSolver(StepSolver):
    """A solver whose arrays have ``w``, ``alpha`` and ``r``; ``table_solver`` adds the methods it does not define."""

    def on_samples(self, arrays, place):
        """Return the arrays with the entries of alpha of the samples of ``place``."""
        return arrays._replace(alpha=Table(arrays.alpha.values[place]))

    def resynchronise(self, space, arrays):
        """Set r to X' alpha."""
        arrays.r.set_to(space.transpose_dot(arrays.alpha.values), arrays.w.to_array())

    def warmed(self, space, arrays):
        """Set the table to the exact derivatives at w0, and return the arrays."""
        arrays.alpha.values[:] = space.derivatives(space.w0)
        self.resynchronise(space, arrays)
        return arrays

    def go_on_from(self, space, arrays, alpha, r):
        """Set the table to alpha and r to the estimate, which from now on changes as X' alpha does."""
        arrays.alpha.values[:] = alpha
        arrays.r.set_to(r, space.w0)


class AtomSolver(TableSolver):
    """A table solver that also stores the atoms of w; ``atom_solver`` adds the methods it does not define.

    It has the fields ``batch_size``, ``sampling`` and ``damping``.
    """

    damping: float

    def check(self):
        """Raise if a parameter is wrong."""
        check_method(self.sampling)
        as_number(self.damping, "damping", low=0.0, what="a number of at least 0")

    def start(self, space):
        """Return w0 with alpha_0 = 0 and r_0 = 0."""
        L = space.problem.loss_smoothness() * (1.0 + self.damping * space.n / space.batch_size)
        if not math.isfinite(L):
            raise ValueError(
                f"the steps of {type(self).__name__} need a bound of the loss's second derivative, which "
                f"{type(space.problem.loss).__name__} does not have. Use 'sfw', or 'corrective'."
            )
        return AtomArrays(space.iterate(), space.table(), space.estimate(), space.atoms(), space.column_norms(), L)

    def resynchronise(self, space, arrays):
        """Set w to the combination of its atoms and r to X' alpha."""
        arrays.w.set_to(arrays.atoms.combination(space.d))
        TableSolver.resynchronise(self, space, arrays)


@compiled
class Correction(NamedTuple):
    """The unbiased correction of r = X' alpha by a batch: new derivatives and predictions of its samples."""

    new: np.ndarray
    p: np.ndarray

    def add_to(self, r, F, rows, w, alpha):
        """Turn r into g = r + (n/b) sum over the batch of (new alpha_i - alpha_i) x_i."""
        for q in range(rows.size()):
            i = rows.at(q)
            p = F.predict(i, w)
            new = F.derivative(i, p)
            self.new[q], self.p[q] = new, p
            r.add_row(F, i, rows.share(i) * (new - alpha.at(i)), p)

    def settle(self, r, F, rows, alpha):
        """Turn g back into r = X' alpha, with the batch's new derivatives in alpha."""
        for q in range(rows.size()):
            i = rows.at(q)
            r.add_row(F, i, -rows.share(i) * (self.new[q] - alpha.at(i)), self.p[q])
        for q in range(rows.size()):
            i = rows.at(q)
            r.add_row(F, i, alpha.replace(i, self.new[q]), self.p[q])


def correction(batch_size: int) -> Correction:
    """Return the arrays for a batch."""
    return Correction(np.zeros(batch_size), np.zeros(batch_size))


@compiled
class AtomArrays(NamedTuple):
    """The arrays of SFW, the atoms of w, the norms of the columns of X, and the damped smoothness L of the loss."""

    w: Vector
    alpha: Table
    r: Estimate
    atoms: ActiveAtoms
    norms: np.ndarray
    L: float


table_solver = functools.partial(step_solver, protocol=TableSolver)
atom_solver = functools.partial(step_solver, protocol=AtomSolver)
