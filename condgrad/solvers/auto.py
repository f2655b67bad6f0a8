"""The choice of the solver for "auto": the one with the least estimated work.

Where its Taylor models live on atoms or features, this is ``corrective``: it needs 3 to 15 passes where others need
hundreds. So it is over sets whose vertices have a single nonzero entry and over sets with sparse vertices that are
known on some features alone (groups, k-sparse, SLOPE), for any number of features, and over all sets for up to 2,000.
Over other sets the work is estimated in multiply-adds, for n samples, d features, X with N stored entries, and a gap
to be reduced to the fraction rho of the first gap:

    corrective   23 P N + 17 n P^3          P = 5 - 2 log10 rho passes; several vertices a pass, and their predictions
    bpcg or fw   3 rho^-1/2 (2 N + 30 n)    a full gradient and a line search in each step
    sfw          2 rho^-1/2 (3 N + 30 n + 100 d)   100 batches an epoch, and a pass to certify

The numbers of steps were measured on logistic problems of 2,000 to 200,000 samples; the factors are the costs of a
sample or an entry relative to a multiply-add of a matrix product. Problems differ, so the estimates are correct only up
to a factor of about three. On 2,000 x 5,000 dense and 20,000 x 5,000 sparse data (boxes, l2, lp and total variation
balls; rho of 1e-2 and 1e-4) the choice was the fastest of the three or took up to twice as long.

For a quadratic F over a polytope whose vertices have several entries, ``quadratic-correction`` is chosen for rough
answers, with rho of at least 1e-3, where ``corrective`` would begin with such vertices, too, because the curvature on
all features costs many passes. On dense 5,000 x 300, 20,000 x 200 and 3,000 x 900 and sparse 20,000 x 400 data, rho of
1e-2, it took 0.2 to 0.5 times the time of ``corrective`` for total variation and isotonic vectors, about the same time
for fused ones, permutahedra and flows, and 0.7 to 4 times for spanning trees and hulls of points. For smaller rho many
vertices are needed where they were few: with 1e-4 it took 0.4 to 1.2 times the time for isotonic vectors and
permutahedra, 0.7 to 1.5 for total variation and fused ones, but up to 5 for flows and 16 for spanning trees and hulls.
Polyatomic steps were nowhere clearly faster than both.
"""

from __future__ import annotations

import math
from typing import cast

from condgrad import solvers
from condgrad.compiled import is_compiled
from condgrad.constraints import Atom
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.linear import Problem
from condgrad.solvers.base import Solver
from condgrad.solvers.full_pass.taylor_model import begins_with_vertices, takes_few_passes
from condgrad.solvers.step_sizes import Backtracking

_ROUGH = 1e-3  # least rho for which few vertices are enough
_MOST_SECOND = 1000  # number of features up to which second derivatives of general terms are used: H is d x d


def choose(problem: BaseProblem, tol: float, relative_tol: float) -> tuple[Solver, str]:
    """Return the solver for a problem and its tolerances, and the reason for the choice."""
    offers = problem.offers
    if Feature.FACTORS in offers:
        return solvers.LowRank(), "factors are fitted anew after each call of the oracle"
    if _few_vertices_are_enough(problem, tol, relative_tol):
        return (
            solvers.QuadraticCorrection(),
            "a quadratic on the hull of few vertices, minimised exactly after each pass",
        )
    if Feature.CURVATURE in offers and (Feature.PREDICTIONS not in offers or takes_few_passes(problem)):
        return solvers.Corrective(), "few passes, each followed by a correction of all weights"
    if Feature.PREDICTIONS not in offers:
        return _choose_general(problem)
    rho = _reduction(problem, tol, relative_tol)
    work = estimates(cast("Problem", problem), max(rho, 1e-16))
    name = min(work, key=lambda name: work[name])
    rivals = ", ".join(f"{work[other]:.0e} ({other})" for other in work if other != name)
    settings = {"batch_size": max(1, problem.n_samples // 100)} if name == "sfw" else {}
    return solvers.by_name(name)(**settings), f"about {work[name]:.0e} multiply-adds, against {rivals}"


def _reduction(problem: BaseProblem, tol: float, relative_tol: float) -> float:
    """Return rho: the fraction of the first gap to which the gap is to be reduced."""
    d = problem.n_features
    first_gap = problem.gap(problem.constraint.start(d).to_dense(d))
    return min(1.0, max(tol / first_gap, relative_tol)) if first_gap > 0.0 else 1.0


def _few_vertices_are_enough(problem: BaseProblem, tol: float, relative_tol: float) -> bool:
    """Return whether corrections on the hull of vertices are likely to be faster than Taylor models."""
    constraint = problem.constraint
    is_possible = problem.is_quadratic and {Feature.CURVATURE, Feature.PREDICTIONS} <= problem.offers
    has_vertices = constraint.vertex is not Atom and constraint.is_polytope and is_compiled(constraint)
    # With fewer samples than features, Corrective begins with vertices, too.
    if not is_possible or not has_vertices or problem.n_samples < problem.n_features:
        return False
    if not begins_with_vertices(problem):
        return False
    return _reduction(problem, tol, relative_tol) >= _ROUGH


def estimates(problem: Problem, rho: float) -> dict[str, float]:
    """Return the work of each solver, in multiply-adds, to reduce the gap to the fraction ``rho`` of the first gap."""
    n, d, stored = problem.n_samples, problem.n_features, problem.cost_of_pass / 2.0
    n_passes, n_steps = 5.0 - 2.0 * math.log10(rho), 3.0 / math.sqrt(rho)
    work = {"corrective": 23.0 * n_passes * stored + 17.0 * n * n_passes**3}
    work["bpcg" if problem.constraint.is_polytope else "fw"] = n_steps * (2.0 * stored + 30.0 * n)
    # Small steps need kernels, and the number of steps above assumes a convex F. With a free intercept the gradient
    # estimate of sfw is out of date, as the intercept is renewed only between blocks of steps.
    if problem.is_compiled and problem.is_convex and not problem.has_intercept:
        work["sfw"] = 2.0 / 3.0 * n_steps * (3.0 * stored + 30.0 * n + 100.0 * d)
    return work


def _choose_general(problem: BaseProblem) -> tuple[Solver, str]:
    """Return the solver for general terms, and the reason for the choice.

    For terms that are not convex, corollary 5.1 of Xiong & Freund needs the number of steps in advance; with open-loop
    steps instead, TUFW can stay far from stationary points that backtracking approaches.
    """
    down = solvers.FrankWolfe(Backtracking())
    if not problem.is_convex:
        return down, "the problem is not marked is_convex, and backtracking decreases F at every step"
    if Feature.SAMPLES not in problem.offers and problem.constraint.is_polytope:
        return solvers.BlendedPairwise(Backtracking()), "the problem offers full passes only, and the set is a polytope"
    if not {Feature.SAMPLES, Feature.SECOND_DERIVATIVES} <= problem.offers:
        return down, "single samples have no second derivatives"
    if problem.n_features > _MOST_SECOND:
        return down, f"a Hessian of {problem.n_features} features is too expensive"
    return solvers.by_name("tufw")(adaptive=True), "second derivatives save passes over the terms"
