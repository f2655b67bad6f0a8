"""Walks from radius to radius whose starts are known from elsewhere: the first pass at a start certifies it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from condgrad.constraints._rows import as_rows
from condgrad.linalg import threads
from condgrad.paths.allowed_sets import AllowedSets, leaves_out_zero
from condgrad.paths.faces import FacePath, Terms
from condgrad.paths.minimized import Walk
from condgrad.problems.active_set import AtomStack
from condgrad.problems.linear import Problem
from condgrad.problems.rows.memory import MemoryRows
from condgrad.run.result import Result

_MOST_FEATURES = 1000  # of a matrix that is factored on one thread
_MOST_WORK = 2e10  # multiply-adds for the Gram matrix
_MOST_ROWS = 500  # linear rows, all of which a face may hold
_FAR = 1e4  # times the limits of free features: beyond, a point says nothing


class GuidedWalk(Walk):
    """A walk that begins each radius at a point that is known to be good."""

    def guide(self, radius: float) -> np.ndarray | None:
        """Return the point, None where none is known."""
        raise NotImplementedError

    def start_at(self, radius: float) -> Any:
        """Return the known point, after widening limits of free features to which it comes near."""
        w = self.guide(radius)
        if w is None:
            return super().start_at(radius)
        while isinstance(self.make, AllowedSets) and (wider := self.make.widened(w)) is not None:
            self.make = wider
        return w


class FaceWalk(GuidedWalk):
    """A walk for a quadratic F over l1 balls with limits and rows: each start is the minimiser, from the Gram matrix.

    Where no face is found, ``minimize`` has to begin at the last solution, and the next face is guessed from its own.
    """

    def __init__(self, problem: Problem, make: AllowedSets, **settings: Any) -> None:
        super().__init__(problem, make, **settings)
        d = problem.n_features
        look = problem.look(np.zeros(d))
        H = look.curvature(AtomStack(np.arange(d), np.ones(d)))
        self.terms = _terms(make, d)
        self.faces = FacePath(H, -look.gradient, self.terms)
        self.is_known = False

    def guide(self, radius: float) -> np.ndarray | None:
        """Return the minimiser on the face that was found."""
        with threads.one_blas_thread():
            w = self.faces.at_radius(radius) if radius > 0.0 else None
        w = None if w is None or self._is_far(w) else self.terms.inside(w, radius)
        self.is_known = w is not None
        return w

    def _is_far(self, w: np.ndarray) -> bool:
        """Return whether free coefficients are huge: their columns depend on each other, and rounding decides."""
        assert isinstance(self.make, AllowedSets)
        return bool((np.abs(w[self.make.allowance.unlimited]) > _FAR * self.make.limits).any())

    def solver_at(self, radius: float) -> object:
        """Return a solver that begins with a pass at any start, as long as that is known to be good."""
        return "corrective" if self.is_known else self.solver

    def to(self, radius: float, **settings: Any) -> Result:
        """Return the solution over the set of that radius; KeyboardInterrupt tells of Ctrl-C."""
        result = super().to(radius, **settings)
        if not self.is_known and radius > 0.0:
            self.faces.restart(result.w, radius)
        return result

    def largest_radius(self, eps: float) -> float:
        """Return the radius whose multiplier is ``eps`` times that of zero."""
        with threads.one_blas_thread():
            radius = None if leaves_out_zero(self.make) else self.faces.largest_radius(eps)
        return super().largest_radius(eps) if radius is None else radius


def walk_over(problem: Any, make: Callable[..., Any], solver: object = "auto", **settings: Any) -> Walk:
    """Return the fastest walk over the sets of a problem."""
    if has_faces(problem, make, solver):
        assert isinstance(make, AllowedSets)
        return FaceWalk(problem, make, solver=solver, **settings)
    return Walk(problem, make, solver, **settings)


def has_faces(problem: Any, make: Callable[..., Any], solver: object) -> bool:
    """Tell whether a FaceWalk serves: a quadratic F in memory, over l1 balls with few features, limits and rows."""
    if not (isinstance(problem, Problem) and isinstance(problem.rows, MemoryRows) and isinstance(make, AllowedSets)):
        return False
    n, d = problem.n_samples, problem.n_features
    is_small = d <= _MOST_FEATURES and float(n) * d * d <= _MOST_WORK and _n_rows(make) <= _MOST_ROWS
    is_auto = isinstance(solver, str) and solver == "auto"
    return is_auto and is_small and make.make is None and problem.is_quadratic and problem.is_convex


def _n_rows(make: AllowedSets) -> int:
    return 0 if make.rows is None else sum(np.size(b) for b in (make.rows.b_ub, make.rows.b_eq) if b is not None)


def _terms(make: AllowedSets, d: int) -> Terms:
    """Return prices, limits and rows as arrays."""
    weights = make.allowance.weights
    lower, upper = np.array([[-np.inf] * d, [np.inf] * d]) if make.allowance.is_plain else make.allowance.limits()
    A, low, high = [np.zeros((0, d))], [np.zeros(0)], [np.zeros(0)]
    if make.rows is not None:
        for name, is_equation in (("ub", False), ("eq", True)):
            given = make.rows._asdict()
            part, side, _ = as_rows("rows", f"A_{name}", given[f"A_{name}"], f"b_{name}", given[f"b_{name}"])
            if part is not None:
                A.append(part.toarray() if scipy.sparse.issparse(part) else part)
                low.append(side if is_equation else np.full(side.size, -np.inf))
                high.append(side)
    prices = np.ones(d) if weights is None else weights
    return Terms(prices, lower, upper, np.vstack(A), np.concatenate(low), np.concatenate(high))
