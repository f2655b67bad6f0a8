"""F itself over an l1 ball of few atoms of small dense data, minimised by Newton's method between two passes.

Where all samples of some columns fit into the cache, a round of Newton's method on them takes a small part of the time
of a pass over all columns, with its certificate. So passes are left to find the atoms.
"""

from __future__ import annotations

import numpy as np

from condgrad.problems.active_set import AtomStack, Stack
from condgrad.problems.base import BaseProblem
from condgrad.problems.look import Look

_FEW_SAMPLES = 3000  # from more, the curvature is estimated from some of them
_MOST_ATOMS = 128  # from more, BLAS and LAPACK are faster than the kernel
_MOST_PRODUCTS = 1e6  # multiply-adds of the curvature from which on they are, too
_MOST_ROUNDS = 20  # between two passes
_ACCURACY, _FINEST = 0.05, 1e-7  # gap over the atoms, relative to that of the last pass: at most, at least
_LAST = 0.3  # and relative to the gap at which the run can end
_SLOW = 0.5  # share of the last gap below which that of a pass must fall, if rounds have not reached their goal


class NewtonRounds:
    """Rounds over some atoms of an l1 ball, as long as they lead far enough.

    Attributes
    ----------
    are_slow : bool
        Whether rounds did not lead far enough: then Taylor models take over.
    """

    name = "newton_rounds"

    def __init__(self, n_samples: int) -> None:
        self.n_samples = n_samples
        self.are_slow = False
        self._has_reached = False

    @classmethod
    def suited_to(cls, problem: BaseProblem) -> NewtonRounds | None:
        """Return rounds for a problem over an l1 ball; None if models are better: one is enough for a quadratic F."""
        suits = problem.has_dense_parts and not problem.is_quadratic and problem.n_samples <= _FEW_SAMPLES
        return cls(problem.n_samples) if suits else None

    def suit(self, atoms: Stack) -> bool:
        """Return whether rounds over these atoms cost less than a pass with a model on them."""
        k = len(atoms)
        return not self.are_slow and 0 < k <= _MOST_ATOMS and 0.5 * k * k * self.n_samples <= _MOST_PRODUCTS

    def minimise(self, look: Look, atoms: AtomStack, x: np.ndarray, goal: float, deadline: float) -> np.ndarray:
        """Return weights z of the atoms, with sum |z| <= 1, close to the minimum of F over them.

        The run can end at the gap ``goal``. Rounds take no time that a ``deadline`` would notice.
        """
        accuracy = min(_ACCURACY * look.gap, max(_LAST * goal, _FINEST * look.gap))
        z, gap = look.dense_part(atoms).minimise(x, accuracy, _MOST_ROUNDS)
        self._has_reached = gap <= accuracy
        total = float(np.abs(z).sum())
        return z if total <= 1.0 else z / total

    def judge(self, before: float, gap: float, is_still: bool) -> None:
        """Find out, after a step with these gaps, whether rounds should go on: not if it led nowhere."""
        self.are_slow = is_still or (not self._has_reached and gap > _SLOW * before)
