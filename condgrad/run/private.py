"""Differentially private Frank-Wolfe over the l1 ball: minimize_private, and the accounting of its privacy."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from condgrad.linalg.convert import Data, as_data, as_number, as_targets
from condgrad.linalg.settings import RandomState, as_generator, check_positive
from condgrad.losses._protocol import as_loss


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
    has a chance proportional to exp(step_epsilon <-r, v> / (2 sensitivity)), where r is the gradient. If G bounds the
    slope of the loss and all entries of X are clipped to [-feature_bound, feature_bound], replacing one sample changes
    <r, v> by at most the sensitivity 2 radius G feature_bound / n.

    Composition: a step is step_epsilon-private, and step_epsilon^2 / 8-zero-concentrated private because the
    exponential mechanism has a bounded range; T steps add up, and rho-zCDP gives (rho + 2 sqrt(rho log(1/delta)),
    delta). With delta = 0, step_epsilon = epsilon / T. See :func:`step_epsilon`.

    A step costs one pass over X and O(d).

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
    n, d = X.shape
    y = as_targets(y, n)
    loss.check_targets(y)
    _check_sizes(loss, radius, feature_bound)
    n_steps = int(as_number(n_steps, "n_steps", low=1, what="a whole number of at least 1"))
    sensitivity = 2.0 * radius * loss.lipschitz() * feature_bound / n
    spent = step_epsilon(epsilon, delta, n_steps)
    X = clipped(X, feature_bound)
    w = np.zeros(d)
    for t in range(n_steps):
        r = X.T @ loss.derivative(X @ w, y) / n
        v = draw_vertex(r, radius, spent / (2.0 * sensitivity), rng)
        w += 2.0 / (t + 2.0) * (v - w)
    return PrivateResult(w, float(epsilon), float(delta), n_steps, spent, sensitivity)


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


def draw_vertex(r: np.ndarray, radius: float, factor: float, rng: np.random.Generator) -> np.ndarray:
    """Return the vertex v = +-radius e_j with a chance proportional to exp(factor <-r, v>), as an array."""
    scores = factor * radius * np.concatenate((-r, r))
    k = int((scores + rng.gumbel(size=scores.size)).argmax())  # the largest of Gumbel-perturbed scores has that chance
    v = np.zeros(r.size)
    v[k % r.size] = radius if k < r.size else -radius
    return v


def _check_sizes(loss: Any, radius: float, feature_bound: float) -> None:
    check_positive("minimize_private", "radius", radius)
    check_positive("minimize_private", "feature_bound", feature_bound)
    if not math.isfinite(loss.lipschitz()):
        raise ValueError(
            f"{loss!r} has no bounded slope, so one sample could change the gradient by any amount. "
            "Use Logistic, Huber, PseudoHuber, SmoothedHinge or Pinball."
        )
