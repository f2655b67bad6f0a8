"""Lanczos: the largest singular values of a matrix known by its products, and a reliable upper bound of its norm.

Ritz values approach the largest singular value from below, so they alone would make every Frank-Wolfe gap too small. A
bound from above comes from the randomness of the start b: unless b is almost orthogonal to the best singular vector,
which has a tiny and known probability, an eigenvalue far above the Ritz values would have appeared among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.linalg

from condgrad.compiled import kernel

_FAILURE = 1e-10  # the probability that a bound does not hold
_MOSTLY_NEW = 0.7  # share of a vector that is left by a projection without much cancellation
_RANDOM = 0.5  # weight of the random part of a start that also uses a guess


class Lanczos:
    r"""Lanczos steps with full reorthogonalisation for A = G'G, of which the largest eigenvalues are accurate.

    The bound of ||G||: let b be the start and u the best right singular vector, with eigenvalue mu of A. Where p_0,
    p_1, ... are the orthonormal polynomials of the spectral measure of b, <b, u>^2 sum_j p_j(mu)^2 <= 1, since a point
    mass of the measure is at most the Christoffel function there. The p_j come from the tridiagonal matrix of the steps
    by their recurrence and grow quickly beyond the largest Ritz value. For a random direction in n dimensions
    P(|<b, u>| < x) <= x sqrt(2 n / pi), so that with probability 1 - 1e-10 mu is at most the root of
    sum_j p_j^2 = 1 / x^2. A fixed part of b (a guess from an earlier call) only moves the centre of that distribution,
    which makes small values less likely still.

    References
    ----------
    van Dorsselaer, Hochstenbach & van der Vorst (2000), on probabilistic bounds from Lanczos polynomials.

    Parameters
    ----------
    dot : callable, the product with G'G
    shape : the shape of G
    rng : numpy Generator
    guess : array, optional
        An approximate right singular vector; it is half of the start, and the other half is random.

    Examples
    --------
    >>> G = np.diag([3.0, 2.0, 1.0])
    >>> lanczos = Lanczos((G.T @ G).dot, G.shape, np.random.default_rng(0))
    >>> lanczos.extend(3)
    >>> s, V = lanczos.pairs(1)
    >>> round(float(s[0]), 6), bool(3.0 <= lanczos.bound() < 3.0 + 1e-5)
    (3.0, True)
    """

    def __init__(
        self,
        dot: Callable[[np.ndarray], np.ndarray],
        shape: tuple[int, int],
        rng: np.random.Generator,
        guess: np.ndarray | None = None,
    ) -> None:
        self.dot, self.shape = dot, shape
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
        self._basis = _Basis(shape[1])
        self._basis.add(start / length)
        self._diagonal: list[float] = []  # of the tridiagonal matrix, and the entries beside it
        self._beside: list[float] = []
        self.is_exhausted = False  # whether the Krylov space of b cannot grow any more

    @property
    def n_steps(self) -> int:
        """The number of steps made: one product each."""
        return len(self._diagonal)

    def extend(self, count: int) -> None:
        """Make ``count`` more steps, or fewer if the Krylov space is exhausted."""
        for _ in range(count):
            if self.is_exhausted:
                return
            last = self._basis.last
            image = self.dot(last)
            self._diagonal.append(float(last @ image))
            rest = self._basis.orthogonalised(image)
            beside = float(np.linalg.norm(rest))
            self.is_exhausted = beside <= 1e-14 * max(self._diagonal) or self.n_steps == self.shape[1]
            if not self.is_exhausted:
                self._basis.add(rest / beside)
                self._beside.append(beside)

    def pairs(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ``count`` largest Ritz values s, largest first, and their vectors, the columns of V."""
        last = self.n_steps - 1
        if last < 0 or count == 0:
            return np.zeros(0), np.zeros((self.shape[1], 0))
        chosen = (max(0, last - count + 1), last)
        squares, Y = scipy.linalg.eigh_tridiagonal(self._diagonal, self._beside[:last], select="i", select_range=chosen)
        return np.sqrt(np.maximum(squares[::-1], 0.0)), self._basis.vectors[: last + 1].T @ Y[:, ::-1]

    def values(self) -> np.ndarray:
        """Return all Ritz values, largest first."""
        squares = scipy.linalg.eigvalsh_tridiagonal(self._diagonal, self._beside[: max(0, self.n_steps - 1)])
        return np.sqrt(np.maximum(squares[::-1], 0.0))

    def largest(self) -> float:
        """Return the largest Ritz value."""
        last = self.n_steps - 1
        if last < 0:
            return 0.0
        square = scipy.linalg.eigvalsh_tridiagonal(
            self._diagonal, self._beside[:last], select="i", select_range=(last, last)
        )
        return math.sqrt(max(float(square[0]), 0.0))

    def bound(self) -> float:
        """Return an upper bound of ||G||, which fails with probability 1e-10."""
        if self.n_steps == 0:
            return math.inf
        largest = self.largest()
        rounding = 1e-14 * largest * max(self.shape) ** 0.5
        if self.is_exhausted:  # with probability one b has a part along every eigenvector: Ritz values are exact
            return largest + rounding
        diagonal, beside = np.array(self._diagonal), np.array(self._beside)
        wanted = -2.0 * math.log(self._least)
        low, high = largest**2, 4.0 * largest**2
        while _log_growth(diagonal, beside, high) < wanted:
            high *= 4.0
        while high - low > 1e-6 * (high - largest**2) + 1e-15 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if _log_growth(diagonal, beside, middle) < wanted else (low, middle)
        return math.sqrt(high) + rounding


@kernel
def _log_growth(diagonal, beside, mu):
    """Return log sum_j p_j(mu)^2."""
    earlier, p, total = 0.0, 1.0, 1.0
    shift, last = 0.0, 0.0  # log of the factor divided out of total; the entry beside the last one of the diagonal
    for k in range(beside.shape[0]):
        earlier, p = p, ((mu - diagonal[k]) * p - last * earlier) / beside[k]
        last = beside[k]
        total += p * p
        if total > 1e200:
            earlier, p, total, shift = earlier * 1e-100, p * 1e-100, total * 1e-200, shift + 200.0 * math.log(10.0)
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

        Without rounding errors only the parts along the last two vectors would not be 0, so they are subtracted first.
        Where the projection of the rest is so large that subtracting it leaves a rounding error, this is done twice.
        """
        for vector in self.vectors[-2:]:
            x = x - (vector @ x) * vector
        for _ in range(2):
            size = np.linalg.norm(x)
            x = x - self.vectors.T @ (self.vectors @ x)
            if np.linalg.norm(x) > _MOSTLY_NEW * size:
                break
        return x
