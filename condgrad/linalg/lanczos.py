"""Lanczos: the largest singular values of a matrix known by its products, and a reliable upper bound of its norm.

Ritz values approach the largest singular value from below, so they alone would make every Frank-Wolfe gap too small. A
bound from above comes from the randomness of the start b: unless b is almost orthogonal to the best singular vector,
which has a tiny and known probability, an eigenvalue far above the Ritz values would have appeared among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_FAILURE = 1e-10  # the probability that a bound does not hold
_MOSTLY_NEW = 0.7  # share of a vector that is left by a projection without much cancellation
_RANDOM = 0.5  # weight of the random part of a start that also uses a guess


class Lanczos:
    r"""Golub-Kahan-Lanczos bidiagonalisation with full reorthogonalisation: G'U_k = V_(k+1) B_k'.

    The bound of ||G||: let b be the start and u the best right singular vector, with eigenvalue mu of G'G. Where p_0,
    p_1, ... are the orthonormal polynomials of the spectral measure of b, <b, u>^2 sum_j p_j(mu)^2 <= 1, since a point
    mass of the measure is at most the Christoffel function there. The p_j come from B_k by their recurrence and grow
    quickly beyond the largest Ritz value. For a random direction in n dimensions P(|<b, u>| < x) <= x sqrt(2 n / pi),
    so that with probability 1 - 1e-10 mu is at most the root of sum_j p_j^2 = 1 / x^2. A fixed part of b (a guess from
    an earlier call) only moves the centre of that distribution, which makes small values less likely still.

    References
    ----------
    van Dorsselaer, Hochstenbach & van der Vorst (2000), on probabilistic bounds from Lanczos polynomials.

    Parameters
    ----------
    dot, transpose_dot : callables, products with G and with G'
    shape : the shape of G
    rng : numpy Generator
    guess : array, optional
        An approximate right singular vector; it is half of the start, and the other half is random.

    Examples
    --------
    >>> G = np.diag([3.0, 2.0, 1.0])
    >>> lanczos = Lanczos(G.dot, G.T.dot, G.shape, np.random.default_rng(0))
    >>> lanczos.extend(3)
    >>> U, s, V = lanczos.triplets(1)
    >>> round(float(s[0]), 6), bool(3.0 <= lanczos.bound() < 3.0 + 1e-5)
    (3.0, True)
    """

    def __init__(
        self,
        dot: Callable[[np.ndarray], np.ndarray],
        transpose_dot: Callable[[np.ndarray], np.ndarray],
        shape: tuple[int, int],
        rng: np.random.Generator,
        guess: np.ndarray | None = None,
    ) -> None:
        self.dot, self.transpose_dot, self.shape = dot, transpose_dot, shape
        start = rng.standard_normal(shape[1])
        start /= np.linalg.norm(start)
        share = 1.0
        if guess is not None and guess.any():
            mixed = _RANDOM * start + (1.0 - _RANDOM) * guess / np.linalg.norm(guess)
            if mixed.any():  # in one dimension the two may cancel: then the random part alone is enough
                start, share = mixed, _RANDOM
        length = float(np.linalg.norm(start))
        # the lower bound that we assume of |<b, u>|, relative to the length of b
        self._least = 0.5 * _FAILURE * math.sqrt(2.0 * math.pi / shape[1]) * share / length
        self._left, self._right = _Basis(shape[0]), _Basis(shape[1])
        self._right.add(start / length)
        self._alpha: list[float] = []  # the diagonal of B, and the entries above it
        self._beta: list[float] = []
        self.is_exhausted = False  # whether the Krylov space of b cannot grow any more

    @property
    def n_steps(self) -> int:
        """The number of steps made: two products each."""
        return len(self._alpha)

    def extend(self, count: int) -> None:
        """Make ``count`` more steps, or fewer if the Krylov space is exhausted."""
        for _ in range(min(count, min(self.shape) - self.n_steps)):
            if self.is_exhausted:
                return
            u = self._left.orthogonalised(self.dot(self._right.last))
            alpha = float(np.linalg.norm(u))
            if alpha <= self._negligible():
                self.is_exhausted = True
                return
            self._left.add(u / alpha)
            self._alpha.append(alpha)
            v = self._right.orthogonalised(self.transpose_dot(self._left.last))
            beta = float(np.linalg.norm(v))
            if beta <= self._negligible():
                self.is_exhausted = True
                return
            self._right.add(v / beta)
            self._beta.append(beta)
        self.is_exhausted = self.is_exhausted or self.n_steps == min(self.shape)

    def triplets(self, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return U, s, V for the ``count`` largest Ritz values, largest first."""
        if self.n_steps == 0:
            return np.zeros((self.shape[0], 0)), np.zeros(0), np.zeros((self.shape[1], 0))
        left, s, right = np.linalg.svd(self._bidiagonal(), full_matrices=False)
        U = self._left.vectors.T @ left[:, :count]
        V = self._right.vectors.T @ right.T[:, :count]
        return U, s[:count], V

    def largest(self) -> float:
        """Return the largest Ritz value."""
        return float(np.linalg.norm(self._bidiagonal(), 2)) if self.n_steps else 0.0

    def bound(self) -> float:
        """Return an upper bound of ||G||, which fails with probability 1e-10."""
        if self.n_steps == 0 and not self.is_exhausted:
            return math.inf
        largest = self.largest()
        rounding = 1e-14 * largest * max(self.shape) ** 0.5
        if self.is_exhausted:  # with probability one b has a part along every eigenvector: Ritz values are exact
            return largest + rounding
        wanted = -2.0 * math.log(self._least)
        low, high = largest**2, 4.0 * largest**2
        while self._log_growth(high) < wanted:
            high *= 4.0
        while high - low > 1e-6 * (high - largest**2) + 1e-15 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._log_growth(middle) < wanted else (low, middle)
        return math.sqrt(high) + rounding

    def _negligible(self) -> float:
        return 1e-14 * max(self._alpha, default=0.0)

    def _bidiagonal(self) -> np.ndarray:
        """Return U'G V, with one column more than rows unless the last v was negligible."""
        B = np.zeros((self.n_steps, self.n_steps + 1))
        np.fill_diagonal(B, self._alpha)
        np.fill_diagonal(B[:, 1:], self._beta)
        return B[:, : len(self._beta) + 1]

    def _log_growth(self, mu: float) -> float:
        """Return log sum_j p_j(mu)^2; T = B'B has a_k^2 + b_(k-1)^2 on its diagonal and a_k b_k beside it."""
        before, p, total = 0.0, 1.0, 1.0
        shift, beside = 0.0, 0.0  # log of the factor divided out of total; last entry of T beside the diagonal
        for k, (alpha, beta) in enumerate(zip(self._alpha, self._beta, strict=False)):
            diagonal = alpha * alpha + (self._beta[k - 1] ** 2 if k else 0.0)
            before, p = p, ((mu - diagonal) * p - beside * before) / (alpha * beta)
            beside = alpha * beta
            total += p * p
            if total > 1e200:
                before, p, total, shift = before * 1e-100, p * 1e-100, total * 1e-200, shift + 200.0 * math.log(10.0)
        return math.log(total) + shift


class _Basis:
    """A growing list of orthonormal vectors."""

    def __init__(self, length: int) -> None:
        self._memory = np.empty((16, length))
        self._count = 0

    @property
    def vectors(self) -> np.ndarray:
        """The vectors, one per row."""
        return self._memory[: self._count]

    @property
    def last(self) -> np.ndarray:
        """The vector added last."""
        return self._memory[self._count - 1]

    def add(self, x: np.ndarray) -> None:
        """Add a vector."""
        if self._count == len(self._memory):
            self._memory = np.concatenate([self._memory, np.empty_like(self._memory)])
        self._memory[self._count] = x
        self._count += 1

    def orthogonalised(self, x: np.ndarray) -> np.ndarray:
        """Return x minus its projection onto the vectors.

        Without rounding errors only the part along the last vector would not be 0, so it is subtracted first. Where the
        projection of the rest is so large that subtracting it leaves a rounding error, it is subtracted twice.
        """
        if self._count:
            x = x - (self.last @ x) * self.last
        for _ in range(2):
            size = np.linalg.norm(x)
            x = x - self.vectors.T @ (self.vectors @ x)
            if np.linalg.norm(x) > _MOSTLY_NEW * size:
                break
        return x
