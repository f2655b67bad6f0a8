"""When a stochastic run does what is not a step: ends a block, refreshes its sums, asks for a certificate."""

from __future__ import annotations

import numpy as np

_BLOCK_SECONDS = 0.05  # kernels come back this often, for Ctrl-C and time limits
_BLOCK_SAMPLES = 10_000_000  # and draw no more samples at once: they are held in memory
_REFRESH_EPOCHS = 100  # running sums are computed anew this often: 1% of the time, and rounding cannot pile up


class Schedule:
    """How long a block of steps is, and what is due after it; ``n`` gradients of single samples make an epoch."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.block = 1.0  # steps
        self.since_refresh = 0  # gradients of single samples
        self.next_certificate = 0  # in gradients of single samples since the start

    def affordable(self, spent: np.ndarray, max_epochs: float) -> int:
        """Return after how many steps, which will have ``spent`` so many gradients, a limit or a refresh is reached."""
        due = min(max_epochs, _REFRESH_EPOCHS - self.since_refresh / self.n) * self.n
        return int(np.searchsorted(spent, due - 0.5)) + 1

    def time_block(self, seconds: float, sizes: np.ndarray) -> None:
        """Choose the length of the next block after one with batches of the given sizes, which took so many seconds."""
        # Blocks grow towards the wanted time, at most tenfold: the first ones include compilation.
        wanted = _BLOCK_SECONDS / max(seconds / sizes.size, 1e-9)
        self.block = max(1.0, min(wanted, 10 * sizes.size, _BLOCK_SAMPLES / max(1, int(sizes[-1]))))

    def is_refresh_due(self, spent: int) -> bool:
        """Count ``spent`` more gradients, and tell whether running sums are to be computed anew."""
        self.since_refresh += spent
        if self.since_refresh < _REFRESH_EPOCHS * self.n:
            return False
        self.since_refresh = 0
        return True

    def back_off(self, gradient_evaluations: int) -> None:
        """Let the run grow by a tenth, and by an epoch, before the next certificate."""
        self.next_certificate = gradient_evaluations + max(gradient_evaluations // 10, self.n)


class RandomIterate:
    """One of the iterates so far, each as likely as any other: what theorems on non-convex losses are about."""

    def __init__(self, rng: np.random.Generator, is_wanted: bool) -> None:
        self.rng = rng
        self.w: np.ndarray | None = None
        self.due = 1 if is_wanted else np.inf  # the step whose iterate is kept next
        self.t = 0  # steps made

    def replace(self, w: np.ndarray) -> None:
        """Keep ``w``, and draw when the next one will replace it.

        Step m replaces the iterate kept with chance 1/m, which makes every step equally likely to be the one kept; the
        next to do so after t is floor(t / u) + 1 for a uniform u.
        """
        self.w = w
        u = max(self.rng.random(), 1e-300)
        self.due = int(min(self.t / u, 1e18)) + 1
