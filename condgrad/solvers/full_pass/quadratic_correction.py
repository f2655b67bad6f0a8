"""Frank-Wolfe with quadratic corrections on the active set."""

from __future__ import annotations

from typing import cast

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg.settings import RandomState
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.parabola import Parabola
from condgrad.solvers.full_pass.base import FullPassSolver
from condgrad.solvers.full_pass.face import minimise_on_face
from condgrad.solvers.full_pass.hull_steps import pairwise_steps
from condgrad.solvers.full_pass.quadratic_hull import QuadraticHull

_MOST_WORK = 10**10  # multiplications of one walk, for hundreds of atoms


class QuadraticCorrection(FullPassSolver):
    r"""Frank-Wolfe with quadratic corrections, Halbey et al. (2025): for a quadratic F over any polytope.

    A Frank-Wolfe step lets the vertex s = LMO(grad F(w)) into the active set. A correction then minimises F over the
    affine hull of the active vertices, which is a linear system in their weights:

    * ``"minimum-norm"`` goes towards that minimiser. Where a weight reaches 0 first, its vertex is dropped and the
      system solved again, until the minimiser lies in the hull: Wolfe's algorithm for the point of least norm.
    * ``"affine"`` goes to the minimiser if it lies in the hull; else it makes a pairwise step among active vertices.

    A step costs one pass, one prediction of s, its products with the predictions of k active vertices, O(n k), and the
    linear systems, O(k^3) each; corrections read no data.

    What differs from the source: the paper corrects around steps of several methods, from time to time; here every
    step is a Frank-Wolfe step with an exact line search and a correction. Vertices that depend on others up to
    rounding keep their weights.

    Parameters
    ----------
    correction : {"minimum-norm", "affine"}

    References
    ----------
    Halbey et al. (2025), arXiv 2506.02635; Wolfe (1976) for the walk.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> cg.minimize(problem, "quadratic-correction").w
    array([2.])
    """

    requires = frozenset({Feature.LOOK, Feature.CURVATURE, Feature.VERTICES})

    def __init__(self, correction: str = "minimum-norm") -> None:
        if correction not in ("minimum-norm", "affine"):
            raise ValueError(
                f"correction of QuadraticCorrection must be 'minimum-norm' or 'affine'; got {correction!r}."
            )
        self.correction = correction

    def init(self, problem: BaseProblem, w0: np.ndarray | None, random_state: RandomState = None) -> QuadraticHull:
        """Return the state at ``w0``, or at the set's own start."""
        return QuadraticHull(problem, w0, "QuadraticCorrection")

    def step(self, problem: BaseProblem, state: QuadraticHull, t: int) -> None:
        """Let one vertex in, and correct all weights."""
        s = cast("Vertex", state.look.vertex)  # s = LMO(grad F(w))
        state.let_in([s])
        g, H, x = state.slopes(), state.curvature(), state.x.copy()
        d = -x
        d[state.place_of(s)] += 1.0
        gamma = Parabola(state.look.gap, float(d @ H @ d)).minimiser(1.0)
        x += gamma * d  # w <- w + gamma (s - w), by exact line search
        g += gamma * (H @ d)
        if self.correction == "minimum-norm":
            minimise_on_face(g, H, x, False, _MOST_WORK)
        else:
            x = _affine_or_pairwise(g, H, x)
        state.go_to(x)

    def refresh(self, problem: BaseProblem, state: QuadraticHull) -> None:
        """Do nothing: every pass is a fresh one."""

    def evaluate(self, problem: BaseProblem, state: QuadraticHull) -> Evaluation:
        """Return the evaluation of the last pass."""
        return state.look.evaluation


def _affine_or_pairwise(g: np.ndarray, H: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the minimiser over the affine hull of the atoms of x if no weight is negative, else a pairwise step."""
    held = np.flatnonzero(x)
    k = held.size
    # Lagrange's conditions: H z + g - H x = mu for all atoms, and the weights z sum to one.
    system = np.ones((k + 1, k + 1))
    system[:k, :k], system[k, k] = H[np.ix_(held, held)], 0.0
    right = np.append(H[np.ix_(held, held)] @ x[held] - g[held], 1.0)
    z = np.linalg.lstsq(system, right, rcond=1e-12)[0][:k]
    if z.min() >= 0.0:
        x = np.zeros_like(x)
        x[held] = z
        return x
    pairwise_steps(g, H, x, False, False, 0.0, 1)
    return x
