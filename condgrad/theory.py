r"""Theory: the constants and the bounds of Negiar et al. (2020), computed for your data.

The paper writes F(w) = f(Xw) with f(p) = (1/n) sum_i f_i(p_i), every f_i having an L-Lipschitz derivative. Its rates
depend on how much predictions can differ over C, the diameters D_p = max over u, v in C of ||X(u - v)||_p (equation 8).

References
----------
.. [1] Negiar, Dresdner, Tsai, El Ghaoui, Locatello, Freund, Pedregosa, "Stochastic Frank-Wolfe for Constrained
   Finite-Sum Minimization", ICML 2020. All equation numbers are from there.
.. [2] Jaggi, "Revisiting Frank-Wolfe: Projection-Free Sparse Convex Optimization", ICML 2013.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from condgrad.linalg import convert
from condgrad.linalg.convert import Data
from condgrad.linalg.matrix import Matrix
from condgrad.problems.linear import Problem
from condgrad.problems.offset import EVERY
from condgrad.problems.prediction_set import Diameters, diameters
from condgrad.solvers.stochastic.atom_counts import relevant_sample_size, top_sample_size

__all__ = [
    "Diameters",
    "diameters",
    "frank_wolfe_bound",
    "gap_estimate_bound",
    "kappa",
    "randomized_bound",
    "relevant_sample_size",
    "sfw_bound",
    "top_sample_size",
]


def kappa(X: Data | Matrix, constraint: object) -> float:
    r"""Return kappa = D_1 / D_inf, between 1 and n, which replaces n in the rate of SFW.

    For the l1 ball it is max_j sum_i abs(X_ij) / max_ij abs(X_ij) for every radius (equation 34). It is small if each
    feature matters in few samples only. If :func:`diameters` has no exact D_1, this is an upper bound.

    Parameters
    ----------
    X : array, sparse matrix, data frame or ``problem.matrix``, of shape (n_samples, n_features)
    constraint : a set of :mod:`condgrad.constraints`, or any object with a method ``lmo``

    References
    ----------
    Negiar et al. (2020), section 5 and Table 2.

    Examples
    --------
    >>> import condgrad as cg
    >>> cg.theory.kappa([[1.0, 0.0], [1.0, 4.0], [1.0, 1.0]], cg.constraints.L1Ball(radius=5.0))
    1.25
    """
    D = diameters(X, constraint)
    if D.D_inf == 0.0:
        raise ValueError("kappa is 0 / 0 here: every point of the constraint set gives the same predictions.")
    return D.D_1 / D.D_inf


def frank_wolfe_bound(
    problem: Problem, t: ArrayLike, *, unit: str = "gradient_calls", D: Diameters | None = None
) -> Any:
    r"""Return the right-hand side 2 L D_2^2 / t of equation 10, for Frank-Wolfe with the open loop step.

    In equation 10, t counts derivatives of single samples, n for each iteration. After k iterations the bound is
    therefore 2 L D_2^2 / (n k). It follows from Jaggi's F(w_k) - F* <= 2 C_f / (k + 2), where the curvature constant
    C_f is at most L D_2^2 / n, and holds for any t of at least n, in the middle of an iteration too. Before the end of
    the first iteration nothing is proved, and the bound is inf.

    The first step must have gamma = 1, as in Jaggi's numbering gamma_k = 2 / (k + 2), k = 0, 1, ... that
    :class:`~condgrad.step_sizes.OpenLoop` uses. In the numbering of the paper's Algorithm 1 (t = 1, 2, ..., the first
    step is 2/3) the starting point keeps some weight, and equation 10 is false: F(w_1) - F* can be of the size of
    F(w_0) - F* for arbitrarily small D_2.

    It is proved for convex losses with equal sample weights. An intercept is allowed: min_b f(p + b) has the same
    quadratic upper bound as f.

    Parameters
    ----------
    problem : Problem
    t : int or array of int
        The work so far, in ``unit``.
    unit : {"gradient_calls", "iterations"}
        What ``t`` counts.
    D : Diameters, optional
        The result of :func:`diameters`, to compute it once for several calls.

    References
    ----------
    Negiar et al. (2020), remark 4; Jaggi (2013), theorem 1.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> frank_wolfe_bound(problem, 20), frank_wolfe_bound(problem, 10, unit="iterations")
    (1.6, 1.6)
    """
    _check_setting(problem, "equation 10", needs_convexity=True, allows_intercept=True)
    if unit not in ("gradient_calls", "iterations"):
        raise ValueError(f"unit must be 'gradient_calls' or 'iterations'; got {unit!r}.")
    n = problem.n_samples
    calls = _times(t, low=0.0) * (n if unit == "iterations" else 1)
    D = D or problem.prediction_diameters()
    bound = 2.0 * _smoothness(problem) * D.D_2**2 / np.maximum(calls, n)
    return _like(t, np.where(calls >= n, bound, np.inf))


def randomized_bound(problem: Problem, t: ArrayLike, share: float, *, D: Diameters | None = None) -> Any:
    r"""Return 4 C_f / (share t + 2), a bound of E[F(w_t)] - F* for randomized Frank-Wolfe with exact line search.

    ``share`` is the probability that an atom is in the sample of a step, kappa / p. The curvature constant (15) of
    Frandi et al., C_f <= L D_2^2 / (2 n), is half of Jaggi's. With ``share=1`` this is their proposition 1, and their
    proposition 2 states the same for every share, but its proof is not sound (see
    :class:`condgrad.solvers.Randomized`). This bound uses that with probability ``share`` a step is at least as good
    as that of Frank-Wolfe, and otherwise does not increase F: E h_{t+1} <= E h_t - share (E h_t)^2 / (4 C_f) for
    h_t = F(w_t) - F*, starting with h_0 <= 2 C_f, which is the bound at t = 0.

    Parameters
    ----------
    problem : Problem
    t : int or array of int
        Steps.
    share : float
        The sample size over the number of atoms, in (0, 1].
    D : Diameters, optional
        The result of :func:`diameters`, to compute it once for several calls.

    References
    ----------
    Frandi et al. (2016), propositions 1 and 2 and lemma 4.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> randomized_bound(problem, 14, 1.0), randomized_bound(problem, 14, 0.5)
    (1.0, 1.7777777777777777)
    """
    _check_setting(problem, "the bound of randomized Frank-Wolfe", needs_convexity=True, allows_intercept=True)
    if not 0.0 < convert.as_number(share, "share", low=0.0, what="a number in (0, 1]") <= 1.0:
        raise ValueError(f"share must be a number in (0, 1]; got {share!r}.")
    D = D or problem.prediction_diameters()
    curvature = _smoothness(problem) * D.D_2**2 / (2 * problem.n_samples)
    return _like(t, 4.0 * curvature / (share * _times(t, low=0.0) + 2.0))


def sfw_bound(
    problem: Problem,
    t: ArrayLike,
    *,
    w0: ArrayLike | None = None,
    eps_0: float | None = None,
    H_0: float | None = None,
    batch_size: int = 1,
    D: Diameters | None = None,
) -> Any:
    r"""Return the right-hand side of Theorem 1, a bound of E[F(w_t) - F*] for stochastic Frank-Wolfe.

    With gamma_t = 2 / (t + 2) and unit batches, equation 9 reads ::

        E eps_t <= 2 L (D_2^2 + 4 (n - 1) D_1 D_inf) / n * t / ((t + 1)(t + 2))
                   + (2 eps_0 + (2 D_inf H_0 + 64 L D_1 D_inf) n^2) / ((t + 1)(t + 2)).

    The constants agree with those of the proof (equations 48 to 54), which gives the inequality for every t >= 0, not
    only from 2 on. The text before equation 54 announces one more step, 1 / ((t + 1)(t + 2)) <= 1 / t^2, that
    neither 54 nor 9 takes. In equation 7 a factor X is missing: the linear term is <grad f(Xv), X(w - v)>.

    Batches of b different samples, drawn uniformly, refresh each entry of alpha with probability b / n, so that
    Lemma 2 holds with rho = 1 - b / n in place of 1 - 1 / n, and Lemma 3 with rho / (1 - rho) = (n - b) / b in place
    of n - 1. The sums of the proof become B_t <= 16 (n / b)^3 and C_t <= (n / b)^2, and equation 9 ::

        E eps_t <= 2 L (D_2^2 + 4 (n - b) / b D_1 D_inf) / n * t / ((t + 1)(t + 2))
                   + (2 eps_0 + 2 D_inf H_0 (n / b)^2 + 64 L D_1 D_inf n^2 / b^3) / ((t + 1)(t + 2)).

    It does not cover epochs of reshuffled samples, where the draws depend on each other. It is proved for convex
    losses with equal sample weights and no intercept. Where L is infinite (Poisson), it is taken over the predictions
    that C allows.

    Parameters
    ----------
    problem : Problem
    t : int or array of int
        The iteration: ``batch_size`` gradient calls each.
    w0 : array of shape (n_features,), optional
        The starting point; the set's own start by default.
    eps_0 : float, optional
        F(w_0) - F*. By default the Frank-Wolfe gap at w_0, which is never smaller.
    H_0 : float, optional
        ||alpha_0 - grad f(X w_0)||_1. By default it is computed for alpha_0 = 0.
    batch_size : int
        The number b of different samples in a batch.
    D : Diameters, optional
        The result of :func:`diameters`, to compute it once for several calls.

    References
    ----------
    Negiar et al. (2020), theorem 1 and appendices B to D.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> sfw_bound(problem, [10_000, 20_000], w0=[0.0, 0.0]).round(4)
    array([0.008, 0.004])
    """
    _check_setting(problem, "Theorem 1", needs_convexity=True)
    n, b, t_ = problem.n_samples, _batch(problem, batch_size), _times(t, low=0.0)
    D = D or problem.prediction_diameters()
    L = _smoothness(problem)
    H_0 = _first_error(problem, w0) if H_0 is None else _at_least_zero(H_0, "H_0")
    eps_0 = problem.gap(_start(problem, w0)) if eps_0 is None else _at_least_zero(eps_0, "eps_0")
    slow = 2.0 * L * (D.D_2**2 + 4.0 * (n - b) / b * D.D_1 * D.D_inf) / n
    fast = 2.0 * eps_0 + 2.0 * D.D_inf * H_0 * (n / b) ** 2 + 64.0 * L * D.D_1 * D.D_inf * n**2 / b**3
    return _like(t, (slow * t_ + fast) / ((t_ + 1.0) * (t_ + 2.0)))


def gap_estimate_bound(
    problem: Problem,
    t: ArrayLike,
    *,
    w0: ArrayLike | None = None,
    H_0: float | None = None,
    batch_size: int = 1,
    D: Diameters | None = None,
) -> Any:
    r"""Return the right-hand side of Proposition 1, a bound of E abs(g_t - ghat_t) for stochastic Frank-Wolfe.

    It says how far the gap that SFW can estimate for free, ghat_t = max over s in C of <alpha_t, X(w_(t-1) - s)>,
    is from the true gap g_t at w_(t-1) (equation 33)::

        2 L D_1 D_inf / n * (2 (n - 1) / (t + 2) + (1 - 1/n)^(t/2) log t) + (1 - 1/n)^t D_inf H_0.

    For batches of b different samples, drawn uniformly, 1 - 1/n becomes rho = 1 - b/n and n - 1 becomes
    rho / (1 - rho) = (n - b) / b, as in :func:`sfw_bound`. The loss need not be convex (remark 7); sample weights are
    equal and there is no intercept. The paper states it for t >= 2; it holds for t = 1, where H_1 is rho H_0 in
    expectation.

    Parameters
    ----------
    problem : Problem
    t : int or array of int
        The iteration, from 1 on.
    w0, H_0, batch_size, D
        As in :func:`sfw_bound`.

    References
    ----------
    Negiar et al. (2020), proposition 1, lemma 3 and appendix E.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0], cg.losses.Squared(), cg.constraints.L1Ball(1.0))
    >>> gap_estimate_bound(problem, 98, w0=[0.0, 0.0])
    0.32
    """
    _check_setting(problem, "Proposition 1", needs_convexity=False)
    n, b, t_ = problem.n_samples, _batch(problem, batch_size), _times(t, low=1.0)
    D = D or problem.prediction_diameters()
    H_0 = _first_error(problem, w0) if H_0 is None else _at_least_zero(H_0, "H_0")
    rho, K = 1.0 - b / n, 2.0 * _smoothness(problem) * D.D_1 / n
    error = K * (2.0 * (n - b) / b / (t_ + 2.0) + rho ** (t_ / 2.0) * np.log(t_)) + rho**t_ * H_0  # equation 27
    return _like(t, D.D_inf * error)


def _smoothness(problem: Problem) -> float:
    """Return L, over the predictions that C allows where the loss has no L for all of them."""
    L = problem.loss.smoothness()
    if math.isfinite(L):
        return L
    if problem.has_intercept:
        raise ValueError(
            f"{type(problem.loss).__name__} has no smoothness constant for predictions with a free intercept. "
            "Use intercept=False."
        )
    low, high = (problem.samples.offset.added_to(EVERY, end) for end in problem.prediction_range())
    return problem.loss.smoothness_on(float(np.maximum(-low, high).max()))


def _check_setting(problem: Problem, result: str, *, needs_convexity: bool, allows_intercept: bool = False) -> None:
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a condgrad.Problem; got {type(problem).__name__}.")
    if needs_convexity and not problem.is_convex:
        raise ValueError(f"{result} holds for convex losses; {type(problem.loss).__name__} is not convex.")
    if problem.has_intercept and not allows_intercept:
        raise ValueError(
            f"{result} holds for problems without an intercept. Use intercept=False, with a constant column in X."
        )
    if not problem.has_equal_weights:
        raise ValueError(f"{result} is proved for equal sample weights; got different ones.")


def _times(t: ArrayLike, low: float) -> np.ndarray:
    times = np.asarray(t)
    if times.dtype.kind not in "iuf" or not np.all(times >= low):
        raise ValueError(f"t must hold numbers of at least {low:g}; got {t!r}.")
    return times.astype(np.float64)


def _like(t: ArrayLike, bound: np.ndarray) -> Any:
    return float(bound) if np.ndim(t) == 0 else bound


def _at_least_zero(value: object, name: str) -> float:
    return convert.as_number(value, name, low=0.0, what="a number of at least 0")


def _batch(problem: Problem, batch_size: float) -> int:
    n = problem.n_samples
    if not isinstance(batch_size, int | np.integer) or isinstance(batch_size, bool) or not 1 <= batch_size <= n:
        raise ValueError(f"batch_size must be an integer from 1 to n_samples = {n}; got {batch_size!r}.")
    return int(batch_size)


def _start(problem: Problem, w0: ArrayLike | None) -> np.ndarray:
    if w0 is None:
        return problem.constraint.start(problem.n_features).to_dense(problem.n_features)
    w0 = convert.as_point(w0, problem.n_features, "w0")
    if not problem.constraint.contains(w0, tol=1e-7 * (1.0 + np.abs(w0).max())):
        raise ValueError(f"w0 is not in the constraint set: it is off by {problem.constraint.violation(w0):g}.")
    return w0


def _first_error(problem: Problem, w0: ArrayLike | None) -> float:
    """Return H_0 = ||grad f(X w_0)||_1, the error of alpha_0 = 0."""
    return float(np.abs(problem.derivatives(_start(problem, w0), 0.0)).sum())
