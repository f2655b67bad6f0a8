"""What solvers of single steps share: the protocol, and runs, in which blocks of steps are one kernel."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from condgrad.compiled import compiled, fill_in, kernel
from condgrad.linalg.arrays import ArrayVector
from condgrad.linalg.settings import RandomState, as_generator
from condgrad.problems.base import Feature
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.linear import Problem
from condgrad.solvers.base import State
from condgrad.solvers.step_sizes import EstimateRule
from condgrad.solvers.stochastic._parts import Parts
from condgrad.solvers.stochastic.sampling import Sampler, check_method, resolve_batch_size

_BLOCK_SECONDS = 0.05  # kernels come back this often, for Ctrl-C and time limits
_SAVED = ("gradient_evaluations", "_next_pick", "_t", "_since_refresh", "_next_certificate")  # by a checkpoint
_REFRESH_EPOCHS = 100  # running sums are computed anew this often: 1% of the time, and rounding cannot pile up


class Remembering(Protocol):
    """A part of a state that keeps more than arrays of one shape."""

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return what it keeps as named arrays."""

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot."""


class StepSolver:
    """A solver whose step sees a batch of samples; the defaults that the decorator ``step_solver`` fills in."""

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

    def first_batch_size(self, n: int) -> int:
        """Return the batch size for n samples; 0 leaves it to the paper's schedule."""
        return resolve_batch_size(self.batch_size, n)

    def init(self, problem: Problem, w0: np.ndarray | None, random_state: RandomState = None) -> Run:
        """Return the run at ``w0``, or at the set's own start."""
        return Run(self, problem, w0, as_generator(random_state))

    def in_numbers(self, parts: Parts) -> dict[str, object]:
        """Return the settings that kernels cannot take as they are, as numbers and compiled rules."""
        numbers: dict[str, object] = {"batch_size": parts.batch_size, "sampling": 0}
        if "step_size" in self._fields:
            numbers["step_size"] = self.step_size.on_estimates(parts.problem, parts.batch_size)
        return numbers

    def start(self, parts: Parts) -> Any:
        """Return the arrays that a step works on, made from ``parts``."""
        raise NotImplementedError

    def step(self, problem: Any, state: Any, rows: Any, t: int) -> None:
        """Make iteration ``t`` = 1, 2, ... with the samples ``rows``: the algorithm itself, run in a kernel."""
        raise NotImplementedError

    def batch_sizes(self, parts: Parts, t: int, count: int) -> np.ndarray:
        """Return the sizes of the batches of iterations t, ..., t + count - 1."""
        return np.full(count, parts.batch_size)

    def steps_before_pass(self, parts: Parts, t: int) -> float:
        """Return how many steps from iteration ``t`` on can be made before the next full pass (inf: none is due)."""
        return np.inf

    def full_pass(self, parts: Parts, state: Any, t: int) -> None:
        """Make the full pass that is due before iteration ``t``."""

    def resynchronise(self, parts: Parts, state: Any) -> None:
        """Compute running sums anew."""
        state.r.synchronise(state.w.to_array())

    def is_done(self, state):
        """Tell whether a rule of the solver's own ends the run after this step."""
        return False

    def advance(self, problem: Problem, run: Run, t: int, max_steps: float, max_epochs: float) -> int:
        """Make steps until a limit is reached or the block has taken long enough; return how many."""
        return run.advance(t, max_steps, max_epochs)

    def refresh(self, problem: Problem, run: Run) -> None:
        """Called where a certificate failed: wait before asking for the next one."""
        run.back_off()

    def evaluate(self, problem: Problem, run: Run) -> Evaluation:
        """Return objective and gap of the iterate from one full pass."""
        return run.evaluate()


def step_solver(cls: type, protocol: type[StepSolver] = StepSolver) -> type:
    """Make a NamedTuple class with a method ``step`` a stochastic solver; ``protocol`` fills in what it leaves out."""
    return compiled(fill_in(cls, protocol))


class Run(State):
    """A stochastic run: the solver's arrays, its sampler, and counters for the loop."""

    is_still = False

    def __init__(self, solver: StepSolver, problem: Problem, w0: np.ndarray | None, rng: np.random.Generator) -> None:
        self.problem = problem
        self.parts = self._parts(solver, w0)
        self.sampler = self._sampler(solver, rng)
        self.arrays = solver.start(self.parts)
        self.solver = solver
        # The same object with numbers for its settings: a kernel takes neither strings nor Python rules.
        self.in_kernel = _unchecked(type(solver), (solver._asdict() | solver.in_numbers(self.parts)).values())
        self.gradient_evaluations = self.parts.n_gradients  # those of a warm start
        self.random_iterate = None
        self._picks = rng.spawn(1)[0]
        self._next_pick = np.inf if problem.is_convex else 1
        self._t = 0
        self._since_refresh = 0
        self._next_certificate = 0
        self.back_off()  # an estimate that has not seen the samples yet certifies nothing
        self._block = 1.0

    def __getstate__(self) -> dict[str, Any]:
        # A copy is made through the constructor, which in_kernel must not meet: it goes as the numbers alone.
        return vars(self) | {"in_kernel": tuple(self.in_kernel)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.in_kernel = _unchecked(type(self.solver), self.in_kernel)

    def _parts(self, solver: StepSolver, w0: np.ndarray | None) -> Parts:
        return Parts(self.problem, w0, solver)

    def _sampler(self, solver: StepSolver, rng: np.random.Generator) -> Sampler:
        importance = self.problem.importance() if solver.sampling == "importance" else None
        return Sampler(self.problem.n_samples, solver.sampling, rng, importance)

    @property
    def is_done(self) -> bool:  # type: ignore[override]
        """Whether a rule of the solver's own has ended the run."""
        return bool(self.solver.is_done(self.arrays))

    @property
    def w(self) -> np.ndarray:
        """The iterate."""
        iterate: np.ndarray = self.problem.iterate_of(self.arrays.w)
        return iterate

    @property
    def lmo_calls(self) -> int:  # type: ignore[override]
        """How many times the oracle was asked so far."""
        return int(self.arrays.r.oracle_calls())

    @property
    def known_gap(self) -> float:
        """The smoothed stochastic gap of equation (31)."""
        return float(self.arrays.r.smoothed_gap())

    @property
    def gap_estimate(self) -> float:
        """The gap on which to ask for a certificate: inf while it is too early for one."""
        return self.known_gap if self.gradient_evaluations >= self._next_certificate else np.inf

    def back_off(self) -> None:
        """Let the run grow by a tenth, and by an epoch, before the next certificate."""
        self._next_certificate = self.gradient_evaluations + max(self.gradient_evaluations // 10, self.parts.n)

    def advance(self, t: int, max_steps: float, max_epochs: float) -> int:
        """Make a block of steps from iteration t + 1 on; return how many."""
        if self.solver.steps_before_pass(self.parts, t + 1) == 0:
            self.solver.full_pass(self.parts, self.arrays, t + 1)
            self.gradient_evaluations += self.problem.n_samples
        before_pass = self.solver.steps_before_pass(self.parts, t + 1)
        count = int(max(1, min(max_steps, self._block, before_pass, self._next_pick - t)))
        sizes = self.solver.batch_sizes(self.parts, t + 1, count)
        spent = self._spent(sizes)
        due = min(max_epochs, _REFRESH_EPOCHS - self._since_refresh / self.problem.n_samples) * self.problem.n_samples
        count = min(count, int(np.searchsorted(spent, due - 0.5)) + 1)
        count = self._run_block(t + 1, sizes[:count])
        self.gradient_evaluations += int(spent[count - 1])
        self._since_refresh += int(spent[count - 1])
        if self._since_refresh >= _REFRESH_EPOCHS * self.problem.n_samples:
            self.solver.resynchronise(self.parts, self.arrays)
            self._since_refresh = 0
        self._t = t + count
        if self._t == self._next_pick:
            self._pick()
        return count

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that decides the rest of the run, as numbers and as arrays."""
        drawn = self.sampler.state()
        numbers = {name: getattr(self, name) for name in _SAVED}
        numbers["generators"] = [*drawn.pop("generators"), self._picks.bit_generator.state]
        arrays = {f"sampler.{name}": array for name, array in drawn.items()}
        arrays |= {f"state.{k}": array for k, array in enumerate(leaves(self.arrays))}
        if self.random_iterate is not None:
            arrays["random_iterate"] = self.random_iterate
        for part in self._with_memory():
            arrays |= part.snapshot()
        return numbers, arrays | {"b": self.parts.b}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot."""
        *generators, self._picks.bit_generator.state = numbers["generators"]
        self.sampler.restore(arrays["sampler.order"], arrays["sampler.position"], generators)
        for name in _SAVED:
            setattr(self, name, numbers[name])
        for k, array in enumerate(leaves(self.arrays)):
            array[:] = arrays[f"state.{k}"]
        self.parts.b[:] = arrays["b"]
        self.random_iterate = arrays.get("random_iterate")
        for part in self._with_memory():
            part.restore(arrays)

    def _with_memory(self) -> list[Remembering]:
        """Return what keeps more than arrays of one shape, and saves that itself."""
        return [part for part in (self.arrays.w, self.parts.view) if hasattr(part, "restore")]

    def evaluate(self) -> Evaluation:
        """Return objective and gap at w; an intercept is minimised here, between blocks of steps."""
        evaluation = self.problem.evaluate(self.w)
        self.parts.b[0] = evaluation.offset
        return evaluation

    def _pick(self) -> None:
        """Keep this iterate as the random one, and draw when the next will replace it.

        Step m replaces the iterate kept with chance 1/m, which makes every step equally likely to be the one kept; the
        next to do so after t is floor(t / u) + 1 for a uniform u.
        """
        self.random_iterate = self.w
        u = max(self._picks.random(), 1e-300)
        self._next_pick = int(min(self._t / u, 1e18)) + 1

    def _spent(self, sizes: np.ndarray) -> np.ndarray:
        """Return how many gradients of single samples are taken by the end of each of the next steps."""
        # Fractional sizes are counted as they will be drawn: a count of expectations would depend on how steps are cut
        # into blocks, and with it when to record.
        return np.cumsum(self.sampler.whole(sizes)) * self.parts.gradients_per_sample

    def _run_block(self, t: int, sizes: np.ndarray) -> int:
        """Make steps with batches of the given sizes; return how many were made before the solver was done."""
        batches = self.sampler.draw(sizes, self.solver.needs_uniform)
        run = run_block if self.parts.is_compiled else interpreted
        start = time.perf_counter()
        count: int = run(self.in_kernel, self.parts.view, self.arrays, batches, t)
        per_step = (time.perf_counter() - start) / sizes.size
        # Blocks grow towards the wanted time, at most tenfold: the first ones include compilation.
        most = 10_000_000 / max(1, int(sizes[-1]))
        self._block = max(1.0, min(_BLOCK_SECONDS / max(per_step, 1e-9), 10 * sizes.size, most))
        return count


def _unchecked(kind: type, values: Iterable[object]) -> Any:
    """Return a NamedTuple past its constructor, which would check the values as if a user had given them."""
    return tuple.__new__(kind, values)


def leaves(state: Iterable[object]) -> Iterator[np.ndarray]:
    """Yield the arrays that a solver's state is made of."""
    for part in state:
        if isinstance(part, np.ndarray):
            yield part
        elif isinstance(part, tuple):
            yield from leaves(part)
        elif isinstance(part, ArrayVector):
            yield part.values


def interpreted(solver, problem, state, batches, t):
    """Make one step per batch, from iteration ``t`` on, until the solver is done; return how many."""
    for k in range(batches.size()):
        solver.step(problem, state, batches.at(k), t + k)
        if solver.is_done(state):
            return k + 1
    return batches.size()


run_block = kernel(interpreted)
