"""What a solver needs that draws columns of X instead of rows: its parts, and its run."""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np

from condgrad.constraints._blocks import FeatureGroups
from condgrad.linalg.index_set import IndexSet, index_set
from condgrad.problems.by_feature.choice import by_feature
from condgrad.problems.by_feature.quadratic import QuadraticByFeature
from condgrad.problems.by_feature.sampled import ColumnView, PartialGradient, partial_gradient
from condgrad.problems.by_feature.smooth import SmoothByFeature
from condgrad.problems.linear import Problem
from condgrad.solvers.stochastic import atom_counts
from condgrad.solvers.stochastic._parts import Parts, Stepping
from condgrad.solvers.stochastic.base import Run, StepSolver, leaves
from condgrad.solvers.stochastic.sampling import Sampler


class Randomizing(Protocol):
    """A solver that draws columns, as far as its parts and its run ask."""

    sample_size: object
    gradient: str


class ColumnParts(Parts):
    """What a solver of columns builds its state from."""

    def _prepare(self, solver: Stepping) -> None:
        problem = self.problem
        self.b = np.zeros(1)  # the state knows the intercept itself
        self.blocks = problem.constraint.blocks(self.d)
        if self.blocks is None:
            raise TypeError(
                f"the vertices of {problem.constraint!r} do not live on separate features or groups, so there are no "
                "atoms to sample; use 'fw', 'pairwise' or 'sfw'."
            )
        self.n_blocks = int(self.blocks.size())
        self.batch_size = atom_counts.resolve(cast("Randomizing", solver).sample_size, self.n_blocks)
        self.view = ColumnView(problem.contiguous_columns, problem.constraint, self.blocks)

    def products_of_a_step(self) -> float:
        """Return how many products with entries of X the columns of a sample take, on average."""
        return self.batch_size * self.problem.cost_of_pass / 2.0 / self.n_blocks

    def partial_gradient(self) -> PartialGradient:
        """Return the sampled entries of the gradient, none so far."""
        return partial_gradient(self.d)

    def by_feature(self, *, caches: bool) -> QuadraticByFeature | SmoothByFeature:
        """Return F at w0, one feature at a time; ``caches`` asks for room for products of columns."""
        return by_feature(self.problem, self.w0, self._vector, caches=caches)

    def active(self) -> IndexSet:
        """Return the features of w0."""
        return index_set(self.d, np.flatnonzero(self.w0))


class ColumnRun(Run):
    """A run that draws columns: as many as there are make an epoch, as they cost what n gradients of samples cost."""

    parts: ColumnParts

    def __init__(self, solver: StepSolver, problem: Problem, w0: np.ndarray | None, rng: np.random.Generator) -> None:
        self._drawn = 0  # atoms
        self._next_look = 1
        super().__init__(solver, problem, w0, rng)

    def _parts(self, solver: StepSolver, w0: np.ndarray | None) -> Parts:
        return ColumnParts(self.problem, w0, solver)

    def _sampler(self, solver: StepSolver, rng: np.random.Generator) -> Sampler:
        takes_all = self.parts.batch_size == self.parts.n_blocks and not _shrinks(cast("Randomizing", solver))
        return Sampler(self.parts.n_blocks, "cyclic" if takes_all else solver.sampling, rng)

    @property
    def objective(self) -> float:
        """F(w) by the recurrences of a quadratic loss, without a pass over the data."""
        return float(self.arrays.f.line.objective())

    def advance(self, t: int, max_steps: float, max_epochs: float) -> int:
        """Make a block of steps from iteration t + 1 on; return how many."""
        if self._looks(cast("Randomizing", self.solver)):
            if t + 1 >= self._next_look:
                self._look(t)
                # Each time the steps have grown by a tenth: at iterations that do not depend on how fast they are.
                self._next_look = max(t + 2, (11 * (t + 1)) // 10)
            max_steps = min(max_steps, self._next_look - (t + 1))
        return super().advance(t, max_steps, max_epochs)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that decides the rest of the run, as numbers and as arrays."""
        numbers, arrays = super().snapshot()
        numbers |= {"drawn": self._drawn, "next_look": self._next_look, "sample_size": self.parts.batch_size}
        for k, array in enumerate(leaves(self.arrays)):
            if array is self.arrays.f.cache():  # the part that is filled
                arrays[f"state.{k}"] = array[: self.arrays.f.covariates.n_cached()]
        return numbers, arrays

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot."""
        for k, array in enumerate(leaves(self.arrays)):
            if array is self.arrays.f.cache():
                saved = arrays[f"state.{k}"]
                array[: len(saved)] = saved
                arrays = arrays | {f"state.{k}": array}
        super().restore(numbers, arrays)
        self._drawn, self._next_look = numbers["drawn"], numbers["next_look"]
        self.parts.batch_size = numbers["sample_size"]

    def _spent(self, sizes: np.ndarray) -> np.ndarray:
        # In whole numbers: nothing may depend on where a block of steps begins.
        n, n_blocks = self.parts.n, self.parts.n_blocks
        return (self._drawn + np.cumsum(sizes)) * n // n_blocks - self._drawn * n // n_blocks

    def _run_block(self, t: int, sizes: np.ndarray) -> int:
        count = super()._run_block(t, sizes)
        self._drawn += int(sizes[:count].sum())
        return count

    def _looks(self, solver: Randomizing) -> bool:
        """Whether the way of stepping may change as the run goes on."""
        return _shrinks(solver) or (solver.gradient == "auto" and self.arrays.f.cache() is not None)

    def _look(self, t: int) -> None:
        """Choose the sample size for the atoms that w has now, and the cheaper way to the gradient."""
        solver, n_active = cast("Randomizing", self.solver), self._n_active_blocks()
        self.parts.batch_size = atom_counts.resolve(solver.sample_size, self.parts.n_blocks, n_active)
        if solver.gradient != "auto" or self.arrays.f.cache() is None:
            return
        # Products of all features with the active ones cost a pass for each new feature, and then d a step. So far
        # they would have saved the columns drawn less d a step: once that has paid for the active features' passes,
        # it will for those to come, which are fewer.
        f, d, stored = self.arrays.f, self.parts.d, self.problem.cost_of_pass / 2.0
        saved = self._drawn * stored / self.parts.n_blocks - t * d
        n_features = int(self.arrays.active.size())
        has_room = f.covariates.may_be_used() and n_features < f.covariates.gram.shape[0]
        if has_room and saved > n_features * stored:
            f.use_covariates(self.problem)

    def _n_active_blocks(self) -> int:
        """Return how many blocks w touches."""
        active = self.arrays.active.listed[: self.arrays.active.size()]
        return int(active.size) if self.parts.n_blocks == self.parts.d else self._count_groups(active)

    def _count_groups(self, features: np.ndarray) -> int:
        blocks = cast("FeatureGroups", self.parts.blocks)
        place = np.empty(self.parts.d, dtype=np.int64)
        place[blocks.members] = np.repeat(np.arange(self.parts.n_blocks), np.diff(blocks.offsets))
        return int(np.unique(place[features]).size)


def _shrinks(solver: Randomizing) -> bool:
    return isinstance(solver.sample_size, atom_counts.Shrinking)
