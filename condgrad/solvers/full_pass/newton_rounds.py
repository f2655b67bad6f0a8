"""F itself over an l1 ball of few atoms of small dense data, minimised by Newton's method between two passes.

Where all samples of some columns fit into the cache, a round of Newton's method on them takes a small part of the time
of a pass over all columns, with its certificate. So passes are left to find the atoms; and where all columns fit into
the cache, the kernel finds these, too, and one pass is left for the certificate.
"""

from __future__ import annotations

import math

import numpy as np

from condgrad.linalg.newton_on_columns import FEWEST_NEW
from condgrad.problems.active_set import AtomStack, Stack
from condgrad.problems.base import BaseProblem
from condgrad.problems.dense_part import Others
from condgrad.problems.look import Look
from condgrad.solvers.full_pass.descent import Descended, Limits

_FEW_SAMPLES = 3000  # from more, the curvature is estimated from some of them
_MOST_ATOMS = 128  # from more, BLAS and LAPACK are faster than the kernel
_MOST_PRODUCTS = 2e6  # multiply-adds of the curvature from which on they are, too
_MOST_ENTRIES = 500_000  # of X, up to which passes of the kernel take no longer than calls from Python
_MOST_ROUNDS, _MOST_LOOKS = 20, 15  # between two passes, or looks of the kernel at all columns; such looks
_ACCURACY, _FINEST = 0.05, 1e-9  # gap over the atoms, relative to that of the last pass: at most, at least
_LAST = 0.3  # and relative to the gap at which the run can end
_SURELY = 0.9  # share of that gap at which the looks of the kernel end
_SLOW = 0.5  # share of the last gap below which that of a pass must fall, if rounds have not reached their goal


class NewtonRounds:
    """Rounds over some atoms of an l1 ball, as long as they lead far enough.

    Attributes
    ----------
    n_slow : int
        How many steps in sequence did not lead far enough: after one, Taylor models take over.
    """

    name = "newton_rounds"

    def __init__(self, problem: BaseProblem) -> None:
        n, d = problem.n_samples, problem.n_features
        self.room = min(_MOST_ATOMS, math.isqrt(int(2.0 * _MOST_PRODUCTS / n)))
        self.n_slow = 0
        self._has_reached, self._sizes = False, None
        if n * d <= _MOST_ENTRIES:
            self._sizes = problem.constraint.atom_sizes(d)

    @classmethod
    def suited_to(cls, problem: BaseProblem) -> NewtonRounds | None:
        """Return rounds for a problem over an l1 ball; None if models are better: one is enough for a quadratic F."""
        suits = problem.has_dense_parts and not problem.is_quadratic and problem.n_samples <= _FEW_SAMPLES
        return cls(problem) if suits else None

    def suit(self, atoms: Stack) -> bool:
        """Return whether rounds over these atoms cost less than a pass with a model on them."""
        return self.n_slow == 0 and 0 < len(atoms) <= self.room

    def minimise(self, look: Look, atoms: AtomStack, x: np.ndarray, limits: Limits) -> Descended:
        """Go from the weights x of the atoms close to the minimum of F over them, or over all atoms.

        Rounds take no time that a deadline would notice.
        """
        accuracy = min(_ACCURACY * look.gap, max(_LAST * limits.goal, _FINEST * look.gap))
        others = None
        if self._sizes is not None and len(atoms) + FEWEST_NEW <= self.room:
            most, goal = int(min(_MOST_LOOKS, limits.most_looks)), max(_SURELY * limits.goal, 2.0 * accuracy)
            others = Others(self._sizes, self.room, look.gap, goal, most)
        found, z, n_looks, self._has_reached = look.dense_part().minimise(atoms, x, accuracy, _MOST_ROUNDS, others)
        total = float(np.abs(z).sum())
        return Descended(found, z if total <= 1.0 else z / total, n_looks)

    def judge(self, before: float, gap: float, is_still: bool) -> None:
        """Find out, after a step with these gaps, whether rounds should go on: not if it led nowhere."""
        self.n_slow = int(is_still or (not self._has_reached and gap > _SLOW * before))
