"""What solvers of single steps share: from the call of ``minimize`` to the block of steps that is one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.compiled import compiled, fill_in
from condgrad.linalg.settings import RandomState, as_generator
from condgrad.problems.base import Feature
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.linear import Problem
from condgrad.solvers.step_sizes import EstimateRule
from condgrad.solvers.stochastic._state import StepState, unchecked
from condgrad.solvers.stochastic._workspace import Workspace
from condgrad.solvers.stochastic.sampling import Sampler, check_method, resolve_batch_size


class StepSolver:
    """A solver whose step sees a batch of samples; the defaults that the decorator ``step_solver`` fills in.

    The solver itself never changes: a run is a :class:`StepState`, whose ``arrays`` the steps work on. Below, ``space``
    is the :class:`Workspace` that these arrays were made from.
    """

    _fields: tuple[str, ...]  # of the NamedTuple that a solver is; every one has batch_size and sampling
    batch_size: int | float | str
    sampling: str
    step_size: EstimateRule
    gradients_per_sample = 1  # points at which a step evaluates the gradient of each sample
    batches_grow = False  # whether batch_size is but the first of growing sizes
    requires = frozenset({Feature.LOOK, Feature.PREDICTIONS, Feature.VERTICES})
    needs_uniform = False  # whether a step asks its batch for a number drawn from [0, 1)

    def _asdict(self) -> dict[str, object]:
        """Return the fields, as every NamedTuple does."""
        raise NotImplementedError

    def check(self):
        """Raise where a parameter is wrong."""
        check_method(self.sampling)
        if "step_size" in self._fields and not isinstance(self.step_size, EstimateRule):
            raise TypeError(f"step_size must be a rule of condgrad.step_sizes; got {self.step_size!r}.")

    # What a solver says of its paper's box; most need ``start`` and ``step`` alone.

    def first_batch_size(self, n: int) -> int:
        """Return the batch size for n samples; 0 leaves it to the paper's schedule."""
        return resolve_batch_size(self.batch_size, n)

    def in_numbers(self, space: Workspace) -> dict[str, object]:
        """Return the settings that kernels cannot take as they are, as numbers and compiled rules."""
        numbers: dict[str, object] = {"batch_size": space.batch_size, "sampling": 0}
        if "step_size" in self._fields:
            numbers["step_size"] = self.step_size.on_estimates(space.problem, space.batch_size)
        return numbers

    def start(self, space: Workspace) -> Any:
        """Return the arrays that a step works on."""
        raise NotImplementedError

    def step(self, F: Any, arrays: Any, rows: Any, t: int) -> None:
        """Make iteration ``t`` = 0, 1, 2, ... with the samples ``rows``: the algorithm itself, run in a kernel.

        ``F`` is the objective as kernels see it: a :class:`~condgrad.problems.finite_sum.FiniteSum`.
        """
        raise NotImplementedError

    def batch_sizes(self, space: Workspace, t: int, count: int) -> np.ndarray:
        """Return the sizes of the batches of iterations t, ..., t + count - 1."""
        return np.full(count, space.batch_size)

    def spent(self, state: StepState, sizes: np.ndarray) -> np.ndarray:
        """Return how many gradients of single samples are taken by the end of each of the next steps."""
        # Fractional sizes are counted as they will be drawn: a count of expectations would depend on how steps are cut
        # into blocks, and with it when to record.
        return np.cumsum(state.sampler.whole(sizes)) * self.gradients_per_sample

    def steps_before_pass(self, space: Workspace, t: int) -> float:
        """Return how many steps from iteration ``t`` on can be made before the next full pass (inf: none is due)."""
        return np.inf

    def full_pass(self, space: Workspace, arrays: Any, t: int) -> None:
        """Make the full pass that is due before iteration ``t``."""

    def resynchronise(self, space: Workspace, arrays: Any) -> None:
        """Compute running sums anew."""
        arrays.r.synchronise(arrays.w.to_array())

    def is_done(self, arrays):
        """Tell whether a rule of the solver's own ends the run after this step."""
        return False

    # What the loop asks.

    def init(self, problem: Problem, w0: np.ndarray | None, random_state: RandomState = None) -> StepState:
        """Return the state at ``w0``, or at the set's own start."""
        rng = as_generator(random_state)
        space = Workspace(problem, w0, self.first_batch_size(problem.n_samples), self.batches_grow)
        importance = problem.importance() if self.sampling == "importance" else None
        sampler = Sampler(space.n, self.sampling, rng, importance)
        return StepState(self.in_kernel(space), space, self.start(space), sampler, rng)

    def in_kernel(self, space: Workspace) -> Any:
        """Return this solver with numbers for its settings: a kernel takes neither strings nor Python rules."""
        return unchecked(type(self), (self._asdict() | self.in_numbers(space)).values())

    def advance(self, problem: Problem, state: StepState, t: int, max_steps: float, max_epochs: float) -> int:
        """Make steps until a limit is reached or the block has taken long enough; return how many."""
        space, schedule = state.space, state.schedule
        if self.steps_before_pass(space, t) == 0:
            self.full_pass(space, state.arrays, t)
            state.gradient_evaluations += space.n
        most = state.block_length(t, min(max_steps, self.steps_before_pass(space, t)))
        sizes = self.batch_sizes(space, t, most)
        spent = self.spent(state, sizes)
        sizes = sizes[: schedule.affordable(spent, max_epochs)]
        count = state.make_steps(t, sizes, state.sampler.draw(sizes, self.needs_uniform))
        state.gradient_evaluations += int(spent[count - 1])
        if schedule.is_refresh_due(int(spent[count - 1])):
            self.resynchronise(space, state.arrays)
        if state.kept.t == state.kept.due:
            state.kept.replace(state.w)
        return count

    def refresh(self, problem: Problem, state: StepState) -> None:
        """Called where a certificate failed: wait before asking for the next one."""
        state.schedule.back_off(state.gradient_evaluations)

    def evaluate(self, problem: Problem, state: StepState) -> Evaluation:
        """Return objective and gap at w from one full pass; an intercept is minimised here, between blocks of steps."""
        evaluation = problem.evaluate(state.w)
        state.space.b[0] = evaluation.offset
        return evaluation


def step_solver(cls: type, protocol: type[StepSolver] = StepSolver) -> type:
    """Make a NamedTuple class with a method ``step`` a stochastic solver; ``protocol`` fills in what it leaves out."""
    return compiled(fill_in(cls, protocol))
