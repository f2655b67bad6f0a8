"""The schedule of a stochastic run: when it ends a block, recomputes its running sums, and computes a certificate."""

from __future__ import annotations

import numpy as np

_BLOCK_SECONDS = 0.05  # seconds after which a kernel returns, for Ctrl-C and time limits
_BLOCK_SAMPLES = 10_000_000  # largest number of samples drawn for a block: their indices are in memory
_REFRESH_EPOCHS = 100  # epochs between two recomputations of running sums: 1% of the time, and little rounding error


class Schedule:
    """The length of a block of steps, and the work that is due after it; an epoch is ``n`` single-sample gradients."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.block = 1.0  # length of the next block, in steps
        self.since_refresh = 0  # single-sample gradients since the last refresh
        self.next_certificate = 0  # earliest time of the next certificate, in single-sample gradients since the start

    def affordable(self, spent: np.ndarray, max_epochs: float) -> int:
        """Return the number of steps until a limit or a refresh; ``spent`` are the gradients after each step."""
        due = min(max_epochs, _REFRESH_EPOCHS - self.since_refresh / self.n) * self.n
        return int(np.searchsorted(spent, due - 0.5)) + 1

    def time_block(self, seconds: float, sizes: np.ndarray) -> None:
        """Set the length of the next block from the time of the last one, which had batches of the given sizes."""
        # The length grows towards the wanted time, at most tenfold: the times of the first blocks include compilation.
        wanted = _BLOCK_SECONDS / max(seconds / sizes.size, 1e-9)
        self.block = max(1.0, min(wanted, 10 * sizes.size, _BLOCK_SAMPLES / max(1, int(sizes[-1]))))

    def is_refresh_due(self, spent: int) -> bool:
        """Count ``spent`` more gradients, and return whether running sums must be recomputed now."""
        self.since_refresh += spent
        if self.since_refresh < _REFRESH_EPOCHS * self.n:
            return False
        self.since_refresh = 0
        return True

    def back_off(self, gradient_evaluations: int) -> None:
        """Delay the next certificate until the run has grown by a tenth, and at least by an epoch."""
        self.next_certificate = gradient_evaluations + max(gradient_evaluations // 10, self.n)


class RandomIterate:
    """One of the iterates so far, drawn uniformly: theorems on non-convex losses are about this iterate."""

    def __init__(self, rng: np.random.Generator, is_wanted: bool) -> None:
        self.rng = rng
        self.w: np.ndarray | None = None
        self.due = 1 if is_wanted else np.inf  # the step whose iterate is stored next
        self.t = 0  # number of steps made

    def replace(self, w: np.ndarray) -> None:
        """Store ``w``, and draw the step whose iterate will replace it.

        Step m replaces the stored iterate with probability 1/m, so that every step is equally likely to be the stored
        one; after step t the next replacement is at step floor(t / u) + 1 for a uniform u.
        """
        self.w = w
        u = max(self.rng.random(), 1e-300)
        self.due = int(min(self.t / u, 1e18)) + 1
