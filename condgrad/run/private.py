"""Differentially private Frank-Wolfe over the l1 ball: minimize_private, and the accounting of its privacy."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from condgrad.compiled import kernel
from condgrad.linalg.convert import Data, as_data, as_number, as_targets
from condgrad.linalg.draw_tree import draw, draw_tree, n_uniforms, rebuild
from condgrad.linalg.matrix import Matrix
from condgrad.linalg.settings import RandomState, as_generator, check_positive
from condgrad.losses._protocol import as_loss

_FRESH = 0.9  # all derivatives are renewed once steps have shrunk the predictions by more than this factor
_ENTRY = 8  # a change of one entry of the tree costs as much as this many entries when all sums are made anew


class PrivateResult(NamedTuple):
    """The result of :func:`minimize_private`.

    It has no objective, gap or trace: they look at the data.

    Attributes
    ----------
    w : array
        The coefficients, in the l1 ball.
    epsilon, delta : float
        The privacy of w with respect to the replacement of one sample.
    n_steps : int
    step_epsilon : float
        The parameter of the exponential mechanism in each step.
    sensitivity : float
        By how much one sample can change the score of a vertex: 2 radius G feature_bound / n.
    """

    w: np.ndarray
    epsilon: float
    delta: float
    n_steps: int
    step_epsilon: float
    sensitivity: float


def minimize_private(
    X: Data,
    y: ArrayLike,
    loss: Any,
    radius: float,
    *,
    epsilon: float,
    delta: float,
    feature_bound: float,
    n_steps: int = 100,
    random_state: RandomState = None,
) -> PrivateResult:
    r"""Minimise the mean loss over an l1 ball with (epsilon, delta)-differential privacy.

    Each of ``n_steps`` Frank-Wolfe steps draws its vertex by the exponential mechanism: a vertex v of the 2d vertices
    has a chance proportional to exp(step_epsilon <-r, v> / (2 sensitivity)), where r = X' alpha is the gradient. If G
    bounds the slope of the loss and all entries of X are clipped to [-feature_bound, feature_bound], replacing one
    sample changes <r, v> by at most the sensitivity 2 radius G feature_bound / n.

    On sparse data the derivatives alpha_i are renewed only for samples that have the drawn feature, and for all samples
    after the shrinking of w has changed predictions by a tenth. This does not change the privacy: alpha_i depends on
    sample i and on the published vertices alone, and is bounded by G / n all the same.

    Composition: a step is step_epsilon-private, and step_epsilon^2 / 8-zero-concentrated private because the
    exponential mechanism has a bounded range; T steps add up, and rho-zCDP gives (rho + 2 sqrt(rho log(1/delta)),
    delta). With delta = 0, step_epsilon = epsilon / T. See :func:`step_epsilon`.

    A step costs one pass over dense X and O(d). On sparse data it costs O(log d) for the draw and for each stored entry
    of the samples that have the drawn feature; T steps make about 20 log(T) passes.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    loss : a loss of :mod:`condgrad.losses` with a bounded slope
        Logistic, Huber, PseudoHuber, SmoothedHinge or Pinball; or your own with a method ``lipschitz``.
    radius : float
    epsilon, delta : float
        The privacy that w has. The number of samples and all arguments but X and y count as public.
    feature_bound : float
        The bound to which entries of X are clipped. Choose it without looking at the data.
    n_steps : int
    random_state : int, Generator or None
        None takes entropy from the operating system. A number makes the run repeatable, and whoever knows it can undo
        the noise.

    References
    ----------
    Talwar, Thakurta & Zhang (2015), algorithm 2; Cesar & Rogers (2021) for the composition.

    Examples
    --------
    >>> import condgrad as cg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, (5000, 20))
    >>> y = np.where(X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(5000) > 0.0, 1.0, -1.0)
    >>> result = cg.minimize_private(
    ...     X, y, cg.losses.Logistic(), 5.0, epsilon=2.0, delta=1e-6, feature_bound=1.0, n_steps=50, random_state=0
    ... )
    >>> bool(np.mean(np.sign(X @ result.w) == y) > 0.9)
    True
    """
    X, loss, rng = as_data(X), as_loss(loss), as_generator(random_state)
    n = X.shape[0]
    y = as_targets(y, n)
    loss.check_targets(y)
    _check_sizes(loss, radius, feature_bound)
    n_steps = int(as_number(n_steps, "n_steps", low=1, what="a whole number of at least 1"))
    sensitivity = 2.0 * radius * loss.lipschitz() * feature_bound / n
    spent = step_epsilon(epsilon, delta, n_steps)
    noisy = PrivateGradient(clipped(X, feature_bound), y, loss, radius, spent / (2.0 * sensitivity))
    for t in range(n_steps):
        j, v = noisy.draw_vertex(rng)  # the vertex v e_j, by the exponential mechanism
        noisy.move(j, v, 2.0 / (t + 2.0))  # w <- w + gamma (v e_j - w)
    return PrivateResult(noisy.w, float(epsilon), float(delta), n_steps, spent, sensitivity)


def step_epsilon(epsilon: float, delta: float, n_steps: int) -> float:
    """Return the parameter of each of ``n_steps`` exponential mechanisms that together are (epsilon, delta)-private.

    It is the better of basic composition, epsilon / T, and of concentrated privacy: rho = T step_epsilon^2 / 8 with
    rho + 2 sqrt(rho log(1/delta)) = epsilon.

    Examples
    --------
    >>> step_epsilon(1.0, 0.0, 10)
    0.1
    >>> step_epsilon(1.0, 1e-6, 100) > 0.01
    True
    """
    check_positive("minimize_private", "epsilon", epsilon)
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta must be a number in [0, 1); got {delta!r}. Use a number well below 1 / n_samples.")
    basic = epsilon / n_steps
    if delta == 0.0:
        return basic
    log = math.log(1.0 / delta)
    rho = (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2
    return max(basic, math.sqrt(8.0 * rho / n_steps))


def clipped(X: Any, bound: float) -> Any:
    """Return X with its entries clipped to [-bound, bound], in float64: each sample on its own."""
    if sp.issparse(X):
        X = X.astype(np.float64)
        X.sum_duplicates()
        X.data = np.clip(X.data, -bound, bound)
        return X
    return np.clip(np.asarray(X, dtype=np.float64), -bound, bound)


class PrivateGradient:
    """An iterate w, the derivatives alpha of its samples, and r = X' alpha in a tree from which vertices are drawn.

    Parameters
    ----------
    X : array or sparse matrix, clipped
    y : array
    loss : a loss
    radius : float
    factor : float
        Vertices have chances proportional to exp(factor <-r, v>).
    """

    def __init__(self, X: Any, y: np.ndarray, loss: Any, radius: float, factor: float) -> None:
        self.matrix, self.y, self.loss, self.radius = Matrix(X), y, loss, radius
        self.columns = X.tocsc() if self.matrix.is_sparse else None
        n, d = X.shape
        self._w, self._p, self._scale = np.zeros(d), np.zeros(n), 1.0  # w and its predictions, divided by the scale
        self._staleness = 1.0  # by what all predictions have shrunk since all derivatives were renewed
        self.alpha = np.empty(n)
        self.tree = draw_tree(np.zeros(d), factor * radius)
        self._renew_all()

    @property
    def w(self) -> np.ndarray:
        """The iterate."""
        return self._scale * self._w

    @property
    def r(self) -> np.ndarray:
        """The gradient that belongs to alpha."""
        return self.tree.values

    def draw_vertex(self, rng: np.random.Generator) -> tuple[int, float]:
        """Return j and v = +-radius, with a chance proportional to exp(-factor r_j v)."""
        j, sign = draw(self.tree, rng.random(n_uniforms(self.tree)))
        return int(j), -self.radius * float(sign)

    def move(self, j: int, v: float, gamma: float) -> None:
        """Go to (1 - gamma) w + gamma v e_j, and renew derivatives."""
        if gamma >= 1.0:
            self._w[:], self._p[:], self._scale = 0.0, 0.0, 1.0
        else:
            self._scale *= 1.0 - gamma
        weight = min(gamma, 1.0) * v / self._scale
        self._w[j] += weight
        self._staleness *= 1.0 - gamma
        if self.columns is None:
            self._p += weight * self.matrix.X[:, j]
            self._renew_all()
            return
        place = slice(self.columns.indptr[j], self.columns.indptr[j + 1])
        rows, values = self.columns.indices[place], self.columns.data[place]
        self._p[rows] += weight * values
        if self._staleness < _FRESH:  # when that is depends on the steps alone, not on the data
            self._renew_all()
        else:
            self._renew(rows)

    def _renew_all(self) -> None:
        self.alpha[:] = self.loss.derivative(self._scale * self._p, self.y) / self.y.size
        self.tree.values[:] = self.matrix.transpose_dot(self.alpha)
        self._staleness = 1.0
        rebuild(self.tree)

    def _renew(self, rows: np.ndarray) -> None:
        new = self.loss.derivative(self._scale * self._p[rows], self.y[rows]) / self.y.size
        change, self.alpha[rows] = new - self.alpha[rows], new
        if _ENTRY * self.matrix.count_stored(rows) < self.r.size:
            _add_rows(self.matrix.rows, rows, change, self.tree)
        else:  # so many entries change that all sums are made anew
            self.matrix.add_rows(rows, change, self.tree.values)
            rebuild(self.tree)


@kernel
def _add_rows(X, rows, change, tree):
    for q in range(rows.shape[0]):
        X.add_slice(rows[q], change[q], tree)


def _check_sizes(loss: Any, radius: float, feature_bound: float) -> None:
    check_positive("minimize_private", "radius", radius)
    check_positive("minimize_private", "feature_bound", feature_bound)
    if not math.isfinite(loss.lipschitz()):
        raise ValueError(
            f"{loss!r} has no bounded slope, so one sample could change the gradient by any amount. "
            "Use Logistic, Huber, PseudoHuber, SmoothedHinge or Pinball."
        )
