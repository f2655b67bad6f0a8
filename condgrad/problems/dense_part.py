"""DensePart: F as a function of the weights of some atoms alone, through a dense copy of their columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import Bound, compiled
from condgrad.linalg.gram_model import empty_model
from condgrad.linalg.newton_in_ball import OFFSET, VALUE, NewtonInBall, newton_in_ball
from condgrad.problems.samples import Samples, derive_block, value_of_range


@compiled
class LossOfPart(NamedTuple):
    """The loss at some predictions, for a kernel that was compiled without knowing it."""

    samples: Samples
    has_intercept: bool
    p: np.ndarray
    a: np.ndarray
    d: np.ndarray
    numbers: np.ndarray

    def serve(self, what):
        """Compute the derivatives, the curvatures, the loss and, if there is one, the best intercept at p."""
        samples, p, numbers = self.samples, self.p, self.numbers
        if self.has_intercept:
            numbers[OFFSET] = samples.best_intercept(p, numbers[OFFSET])
        derive_block(samples, 0, p, numbers[OFFSET], self.a, self.d)
        numbers[VALUE] = value_of_range(samples, p, numbers[OFFSET], 0, p.shape[0])


class DensePart:
    """F on the atoms v_k, whose predictions X v_k are the rows of Z.

    Parameters
    ----------
    Z : array of shape (n_atoms, n_samples)
    samples : Samples
    ridge : array of shape (n_atoms,)
        The penalty sum_k ridge_k x_k^2 / 2 is a part of F.
    offset : float or None
        A guess of the intercept; None: there is none.
    """

    def __init__(self, Z: np.ndarray, samples: Samples, ridge: np.ndarray, offset: float | None) -> None:
        k, n = Z.shape
        p, a, d, numbers = np.empty(n), np.empty(n), np.empty(n), np.zeros(2)
        has_intercept = offset is not None
        numbers[OFFSET] = offset if has_intercept else 0.0
        self._loss = Bound(LossOfPart(samples, has_intercept, p, a, d, numbers))
        self._search = NewtonInBall(
            Z, ridge, has_intercept, self._loss.errand, p, a, d, numbers, np.empty(k), empty_model(k)
        )

    def minimise(self, x: np.ndarray, goal: float, max_rounds: int) -> tuple[np.ndarray, float]:
        """Return weights with sum |x| <= 1 close to the minimum of F, after at most so many rounds, and their gap.

        The ``goal`` is the gap at which it ends.
        """
        x = x.copy()
        return x, float(newton_in_ball(self._search, x, goal, max_rounds))
