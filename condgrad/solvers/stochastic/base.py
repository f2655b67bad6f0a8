"""StepSolver: the base of stochastic solvers, between the calls of ``minimize`` and the kernel that makes the steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.compiled import compiled, fill_in
from condgrad.linalg.settings import RandomState, as_generator
from condgrad.problems.base import Feature
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.linear import Problem
from condgrad.solvers.step_sizes import EstimateRule
from condgrad.solvers.stochastic._chunks import ChunkedState
from condgrad.solvers.stochastic._state import StepState, unchecked
from condgrad.solvers.stochastic._workspace import Workspace
from condgrad.solvers.stochastic.sampling import Sampler, check_method, resolve_batch_size


class StepSolver:
    """A solver whose step uses a batch of samples; the decorator ``step_solver`` adds these methods as defaults.

    The solver itself never changes: a run is a :class:`StepState`, whose ``arrays`` the steps work on. Below, ``space``
    is the :class:`Workspace` from which these arrays were made.
    """

    _fields: tuple[str, ...]  # fields of the solver, a NamedTuple; batch_size and sampling are always among them
    batch_size: int | float | str
    sampling: str
    step_size: EstimateRule
    gradients_per_sample = 1  # number of points at which a step evaluates the gradient of each sample
    batches_grow = False  # whether batch sizes grow, starting at batch_size
    requires = frozenset({Feature.LOOK, Feature.PREDICTIONS, Feature.VERTICES})
    needs_uniform = False  # whether a step uses a uniform random number from [0, 1)
    tosses_coins = False  # whether it makes full passes at random, as the coins of the workspace decide

    def _asdict(self) -> dict[str, object]:
        """Return the fields as a dictionary; every NamedTuple has this method."""
        raise NotImplementedError

    def check(self):
        """Raise if a parameter is wrong."""
        check_method(self.sampling)
        if "step_size" in self._fields and not isinstance(self.step_size, EstimateRule):
            raise TypeError(f"step_size must be a rule of condgrad.step_sizes; got {self.step_size!r}.")

    # The methods that define the algorithm of a paper; most solvers define only ``start`` and ``step``.

    def first_batch_size(self, n: int) -> int:
        """Return the batch size for n samples; 0 if the paper's schedule decides."""
        return resolve_batch_size(self.batch_size, n)

    def in_numbers(self, space: Workspace) -> dict[str, object]:
        """Return kernel-safe replacements (numbers and compiled rules) for settings that numba cannot type."""
        numbers: dict[str, object] = {"batch_size": space.batch_size, "sampling": 0}
        if "step_size" in self._fields:
            numbers["step_size"] = self.step_size.on_estimates(space.problem, space.batch_size)
        return numbers

    def start(self, space: Workspace) -> Any:
        """Return the arrays that a step works on."""
        raise NotImplementedError

    def step(self, F: Any, arrays: Any, rows: Any, t: int) -> None:
        """Make iteration ``t`` = 0, 1, 2, ... with the samples ``rows``: the algorithm itself, run in a kernel.

        ``F`` is the objective in the form for kernels: a :class:`~condgrad.problems.finite_sum.FiniteSum`.
        """
        raise NotImplementedError

    def batch_sizes(self, space: Workspace, t: int, count: int) -> np.ndarray:
        """Return the sizes of the batches of iterations t, ..., t + count - 1."""
        return np.full(count, space.batch_size)

    def spent(self, state: StepState, sizes: np.ndarray) -> np.ndarray:
        """Return the number of single-sample gradients after each of the next steps."""
        # Fractional sizes are counted as they will be drawn. Counts of expected sizes would depend on how steps are cut
        # into blocks, and so would the times of records.
        return np.cumsum(state.sampler.whole(sizes)) * self.gradients_per_sample

    def steps_before_pass(self, space: Workspace, t: int) -> float:
        """Return the number of steps from iteration ``t`` on before the next full pass (inf: none is due)."""
        return np.inf

    def full_pass(self, space: Workspace, arrays: Any, t: int) -> None:
        """Make the full pass that is due before iteration ``t``."""

    def on_samples(self, arrays: Any, place: slice) -> Any:
        """Return the arrays for steps on the samples of ``place``, which are then numbered from its start on.

        These are all arrays unless some have one entry per sample; a solver with such arrays that requires
        ``Feature.CHUNKS`` alone returns slices of them.
        """
        return arrays

    def resynchronise(self, space: Workspace, arrays: Any) -> None:
        """Recompute running sums."""
        arrays.r.synchronise(arrays.w.to_array())

    def go_on_from(self, space: Workspace, arrays: Any, alpha: np.ndarray, r: np.ndarray) -> None:
        """Continue a run on other samples: ``r`` is its estimate of the gradient at w0, ``alpha`` their derivatives."""
        arrays.r.set_to(r, space.w0)

    def is_done(self, arrays):
        """Return whether the solver's own stopping rule ends the run after this step."""
        return False

    # The methods that the loop calls.

    def init(self, problem: Problem, w0: np.ndarray | None, random_state: RandomState = None) -> StepState:
        """Return the state at ``w0``, or at the set's own start."""
        rng = as_generator(random_state)
        space = Workspace(problem, w0, self.first_batch_size(problem.n_samples), self.batches_grow)
        importance = problem.importance() if self.sampling == "importance" else None
        sampler = Sampler(space.n, self.sampling, rng, importance)
        state = StepState if problem.chunk_sizes is None else ChunkedState
        run = state(self.in_kernel(space), space, self.start(space), sampler, rng)
        if self.tosses_coins:
            space.coins.key[0] = rng.spawn(1)[0].integers(2**63)
        return run

    def in_kernel(self, space: Workspace) -> Any:
        """Return this solver with numbers for its settings: a kernel accepts neither strings nor Python rules."""
        return unchecked(type(self), (self._asdict() | self.in_numbers(space)).values())

    def advance(self, problem: Problem, state: StepState, t: int, max_steps: float, max_epochs: float) -> int:
        """Make steps until a limit or the end of the block is reached; return their number."""
        space, schedule = state.space, state.schedule
        if self.steps_before_pass(space, t) == 0:
            self.full_pass(space, state.arrays, t)
            state.gradient_evaluations += space.n
        most = state.block_length(t, min(max_steps, self.steps_before_pass(space, t)))
        sizes = state.sizes_at_hand(self.batch_sizes(space, t, most))
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
        """Delay the next certificate."""
        state.schedule.back_off(state.gradient_evaluations)

    def evaluate(self, problem: Problem, state: StepState) -> Evaluation:
        """Return objective and gap at w from one full pass; it also updates the intercept, between blocks of steps."""
        evaluation = problem.evaluate(state.w)
        state.space.b[0] = evaluation.offset
        return evaluation


def step_solver(cls: type, protocol: type[StepSolver] = StepSolver) -> type:
    """Make a NamedTuple class with a method ``step`` a stochastic solver; other methods default to ``protocol``."""
    return compiled(fill_in(cls, protocol))
