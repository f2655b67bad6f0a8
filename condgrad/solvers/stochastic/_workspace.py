"""Workspace: the source of the arrays of a stochastic solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.constraints import Atom
from condgrad.constraints.vertices import memory_for
from condgrad.linalg.arrays import ArrayVector
from condgrad.linalg.max_tree import Score, max_tree
from condgrad.linalg.scaled import scaled
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import DenseVector, Vector
from condgrad.problems.active_atoms import ActiveAtoms, active_atoms
from condgrad.problems.finite_sum import Estimate, Table, Trail, estimate
from condgrad.problems.linear import Problem
from condgrad.problems.pursuit import Pursuit, pursuit
from condgrad.solvers.stochastic._coins import Coins


class Workspace:
    """The source of a solver's arrays: the problem in the form for kernels, and vectors that suit it.

    Parameters
    ----------
    problem : Problem
    w0 : iterate, optional
        The start of the run; by default the set's own start.
    batch_size : int
        The number of samples of a step (of the first step if batches grow); 0 if the paper's schedule decides.
    batches_grow : bool
    """

    def __init__(self, problem: Problem, w0: np.ndarray | None, batch_size: int, batches_grow: bool) -> None:
        self.problem = problem
        self.n, self.d = problem.n_samples, problem.n_coordinates
        self.batch_size, self.batches_grow = batch_size, batches_grow
        self.n_gradients = 0  # number of single-sample gradients in full passes
        self.is_compiled = problem.is_compiled
        self.first = problem.start()[0] if w0 is None else w0
        self.w0 = problem.in_coordinates(self.first)
        self.b, self.view = self._view()
        self.coins = Coins(np.zeros(1, dtype=np.int64))

    def _view(self) -> tuple[np.ndarray, Any]:
        """Return the intercept, which steps read and evaluations update, and the problem in the form for kernels.

        The second is None for samples that come to memory in chunks: each chunk has its own.
        """
        b = np.array([self.problem.best_offset(self.first)])
        return b, self.problem.finite_sum(b) if self.problem.chunk_sizes is None else None

    def iterate(self, *, shrinks: bool = True) -> Vector:
        """Return the start as a vector w that shrinks in O(1) unless ``shrinks`` is False."""
        if not self.is_compiled:
            return self.problem.vector_at(self.first)
        return self._vector(self.w0.copy(), shrinks=shrinks)

    def vector(self) -> Vector:
        """Return a vector of zeros."""
        return self._vector(np.zeros(self.d), shrinks=False)

    def columns(self) -> Slices:
        """Return the columns of X."""
        return self.problem.columns

    def estimate(self, *, shrinks: bool = False, is_whole: bool = False) -> Estimate:
        """Return the gradient estimate r = 0; if ``shrinks``, r can be multiplied by a number in O(1).

        A solver whose steps use all entries of r (``is_whole``) has nothing to gain from a tree.
        """
        score = self.problem.constraint.score() if self._tree_pays() and not is_whole else None
        vector = self._vector(np.zeros(self.d), shrinks=shrinks, score=score)
        # The gap is averaged over an epoch of batches, except for growing batches: they have little noise, few steps.
        return estimate(vector, 1.0 if self.batches_grow else self.batch_size / self.n)

    def table(self, values: np.ndarray | None = None) -> Table:
        """Return one number per sample: zeros, or a copy of ``values``."""
        return Table(np.zeros(self.n) if values is None else values.copy())

    def trail(self) -> Trail:
        """Return the trail of w, at the start."""
        return Trail(self.iterate(), memory_for(self.problem.constraint.vertex, self.d), np.zeros(1))

    def pursuit(self, n_rounds: int, delta: float) -> Pursuit:
        """Return a pursuit of directions that are close to the steepest descent."""
        return pursuit(self.problem.constraint, self.d, n_rounds, delta)

    def predictions(self, w: np.ndarray) -> np.ndarray:
        """Return X w in one pass."""
        return self.problem.predictions(w)

    def derivatives(self, w: np.ndarray) -> np.ndarray:
        """Return the derivatives alpha_i = weight_i f'(x_i'w + b, y_i) in one pass."""
        self.n_gradients += self.n
        return self.problem.derivatives(w, self.b[0])

    def transpose_dot(self, alpha: np.ndarray) -> np.ndarray:
        """Return X' alpha in one pass."""
        return self.problem.transpose_dot(alpha)

    def atoms(self) -> ActiveAtoms:
        """Return w0 as a combination of atoms; for sets whose vertices have one feature each."""
        if self.problem.constraint.vertex is not Atom:
            raise TypeError(
                f"the vertices of {self.problem.constraint!r} have more than one feature; this solver needs atoms of "
                "single features. Use 'pairwise' or 'bpcg', which work with vertices of any kind, or 'sfw'."
            )
        return active_atoms(self.problem.constraint.decompose(self.w0), self.d)

    def column_norms(self) -> np.ndarray:
        """Return sqrt(sum_i weight_i x_ij^2) for every feature."""
        return self.problem.column_sizes

    def _tree_pays(self) -> bool:
        """Return whether a tree is cheaper: per entry of the batch it costs about 60 comparisons of a scan over d."""
        rows = self.n / 10 if self.batches_grow else self.batch_size
        return self.is_compiled and 60 * rows * self.problem.entries_per_sample < self.d

    def _vector(self, values: np.ndarray, *, shrinks: bool, score: Score | None = None) -> Vector:
        if not self.is_compiled:
            return ArrayVector(values)
        vector = DenseVector(values) if score is None else max_tree(values, score)
        return scaled(vector) if shrinks else vector
