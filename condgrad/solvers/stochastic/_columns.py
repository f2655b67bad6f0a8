"""The base of solvers that draw columns of X instead of rows: workspace, state, and choices between blocks of steps."""

from __future__ import annotations

import functools
from typing import Any, cast

import numpy as np

from condgrad.constraints._blocks import FeatureGroups
from condgrad.linalg.index_set import IndexSet, index_set
from condgrad.linalg.saved import take_floats
from condgrad.linalg.settings import RandomState, as_generator
from condgrad.problems.by_feature.choice import by_feature
from condgrad.problems.by_feature.quadratic import QuadraticByFeature
from condgrad.problems.by_feature.sampled import ColumnView, PartialGradient, partial_gradient
from condgrad.problems.by_feature.smooth import SmoothByFeature
from condgrad.problems.linear import Problem
from condgrad.solvers.stochastic import atom_counts
from condgrad.solvers.stochastic._state import StepState, leaves
from condgrad.solvers.stochastic._workspace import Workspace
from condgrad.solvers.stochastic.base import StepSolver, step_solver
from condgrad.solvers.stochastic.sampling import Batches, Sampler

_MOST_DRAWN = 2.0**62  # largest product of drawn atoms and samples: ``spent`` counts in integers of 64 bits


class ColumnWorkspace(Workspace):
    """The workspace from which a solver of columns makes its arrays."""

    def __init__(self, problem: Problem, w0: np.ndarray | None, sample_size: object) -> None:
        blocks = problem.constraint.blocks(problem.n_coordinates)
        if blocks is None:
            raise TypeError(
                f"the vertices of {problem.constraint!r} do not belong to separate features or groups, so there are no "
                "atoms to sample; use 'fw', 'pairwise' or 'sfw'."
            )
        self.blocks, self.n_blocks = blocks, int(blocks.size())
        super().__init__(problem, w0, atom_counts.resolve(sample_size, self.n_blocks), batches_grow=False)

    def _view(self) -> tuple[np.ndarray, Any]:
        # The solver's arrays contain the intercept.
        return np.zeros(1), ColumnView(self.problem.contiguous_columns, self.problem.constraint, self.blocks)

    def products_of_a_step(self) -> float:
        """Return the average number of stored entries of X in the columns of a sample."""
        return self.batch_size * self.problem.cost_of_pass / 2.0 / self.n_blocks

    def partial_gradient(self) -> PartialGradient:
        """Return a partial gradient without known entries."""
        return partial_gradient(self.d)

    def by_feature(self, *, caches: bool) -> QuadraticByFeature | SmoothByFeature:
        """Return F at w0, one feature at a time; ``caches`` allocates a cache for products of columns."""
        return by_feature(self.problem, self.w0, self._vector, caches=caches)

    def active(self) -> IndexSet:
        """Return the features of w0."""
        return index_set(self.d, np.flatnonzero(self.w0))

    def count_blocks(self, features: np.ndarray) -> int:
        """Return the number of blocks that contain the given features."""
        if self.n_blocks == self.d:
            return int(features.size)
        blocks = cast("FeatureGroups", self.blocks)
        place = np.empty(self.d, dtype=np.int64)
        place[blocks.members] = np.repeat(np.arange(self.n_blocks), np.diff(blocks.offsets))
        return int(np.unique(place[features]).size)


class ColumnState(StepState):
    """The state of a run that draws columns, with the number of drawn blocks."""

    space: ColumnWorkspace
    drawn = 0  # number of blocks drawn so far
    next_choice = 0  # the iteration before which ``choose`` is called next

    @property
    def objective(self) -> float:
        """F(w) from the recurrences of a quadratic loss, without a pass over the data."""
        return float(self.arrays.f.line.objective())

    def make_steps(self, t: int, sizes: np.ndarray, batches: Batches) -> int:
        """Make iterations t, t + 1, ..., one for each batch, until the solver is done; return their number."""
        count = super().make_steps(t, sizes, batches)
        self.drawn += int(sizes[:count].sum())
        return count

    def n_active_blocks(self) -> int:
        """Return the number of blocks in which w has nonzero features."""
        active = self.arrays.active
        return self.space.count_blocks(active.listed[: active.size()])

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all values that determine the rest of the run, as numbers and as arrays."""
        numbers, arrays = super().snapshot()
        numbers |= {"drawn": self.drawn, "next_look": self.next_choice + 1, "sample_size": self.space.batch_size}
        for k, array in enumerate(leaves(self.arrays)):
            if array is self.arrays.f.cache():  # save the filled part only
                arrays[f"state.{k}"] = array[: self.arrays.f.covariates.n_cached()]
        return numbers, arrays

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot."""
        super().restore(numbers, arrays)
        self.drawn, self.next_choice = numbers["drawn"], numbers["next_look"] - 1  # checkpoints count from 1
        self.space.batch_size = numbers["sample_size"]
        if not 0 < self.space.batch_size <= self.space.n_blocks or self.drawn >= _MOST_DRAWN / self.space.n:
            raise ValueError(f"it draws {self.space.batch_size} of {self.space.n_blocks} atoms, after {self.drawn}")

    def _fill(self, array: np.ndarray, saved: dict[str, np.ndarray], name: str) -> None:
        """Copy the saved array of this name into one of the state; of the cache only the filled part was saved."""
        if array is self.arrays.f.cache():
            array = array[: len(take_floats(saved, name, None, array.shape[1]))]
        super()._fill(array, saved, name)


class ColumnSolver(StepSolver):
    """A solver that draws columns; the decorator ``column_solver`` adds the methods that it does not define.

    Columns are counted as gradients of samples: drawing as many columns as X has is one epoch, as it costs as much as
    n gradients.
    """

    sample_size: object
    gradient: str

    def init(self, problem: Problem, w0: np.ndarray | None, random_state: RandomState = None) -> ColumnState:
        """Return the state at ``w0``, or at the set's own start."""
        rng = as_generator(random_state)
        space = ColumnWorkspace(problem, w0, self.sample_size)
        takes_all = space.batch_size == space.n_blocks and not self.shrinks()
        sampler = Sampler(space.n_blocks, "cyclic" if takes_all else self.sampling, rng)
        return ColumnState(self.in_kernel(space), space, self.start(space), sampler, rng)

    def advance(self, problem: Problem, state: ColumnState, t: int, max_steps: float, max_epochs: float) -> int:  # type: ignore[override]
        """Make steps until a limit, the end of the block or the next choice is reached; return their number."""
        if self.shrinks() or (self.gradient == "auto" and state.arrays.f.cache() is not None):
            if t >= state.next_choice:
                self.choose(state, t)
                # Choose again when the number of steps has grown by a tenth, which does not depend on their speed.
                state.next_choice = max(t + 1, (11 * (t + 1)) // 10 - 1)
            max_steps = min(max_steps, state.next_choice - t)
        return StepSolver.advance(self, problem, state, t, max_steps, max_epochs)

    def spent(self, state: ColumnState, sizes: np.ndarray) -> np.ndarray:  # type: ignore[override]
        """Return the number of single-sample gradients that the columns count for, after each of the next steps."""
        # In whole numbers: the count must not depend on how steps are cut into blocks.
        n, n_blocks = state.space.n, state.space.n_blocks
        return (state.drawn + np.cumsum(sizes)) * n // n_blocks - state.drawn * n // n_blocks

    def shrinks(self) -> bool:
        """Return whether samples get smaller as w gets more atoms."""
        return isinstance(self.sample_size, atom_counts.Shrinking)

    def choose(self, state: ColumnState, t: int) -> None:
        """Choose the sample size for the present number of atoms of w, and the cheaper computation of the gradient."""
        space, f = state.space, state.arrays.f
        space.batch_size = atom_counts.resolve(self.sample_size, space.n_blocks, state.n_active_blocks())
        if self.gradient != "auto" or f.cache() is None:
            return
        # Products of all features with the active ones cost a pass for each new feature, and then d per step. So far
        # they would have saved the cost of the drawn columns minus d per step. Once this saving exceeds the passes for
        # the present active features, it will also pay for later ones, which are fewer.
        stored = space.problem.cost_of_pass / 2.0
        saved = state.drawn * stored / space.n_blocks - t * space.d
        n_features = int(state.arrays.active.size())
        has_room = f.covariates.may_be_used() and n_features < f.covariates.gram.shape[0]
        if has_room and saved > n_features * stored:
            f.use_covariates(space.problem)


column_solver = functools.partial(step_solver, protocol=ColumnSolver)
