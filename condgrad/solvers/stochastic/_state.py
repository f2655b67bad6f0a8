"""StepState: where a stochastic run stands, and the kernel that makes a block of its steps."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.arrays import ArrayVector
from condgrad.solvers.base import State
from condgrad.solvers.stochastic._schedule import RandomIterate, Schedule
from condgrad.solvers.stochastic._workspace import Workspace
from condgrad.solvers.stochastic.sampling import Batches, Sampler


@runtime_checkable
class Remembering(Protocol):
    """A part of a state that keeps more than arrays of one shape."""

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return what it keeps as named arrays."""

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot."""


class StepState(State):
    """Where a stochastic run stands: the arrays that its steps change, and all that is counted beside them.

    Parameters
    ----------
    in_kernel : a solver with numbers for its settings
        A kernel takes neither strings nor Python rules.
    space : Workspace
    arrays : what the solver's ``start`` has made
    sampler : Sampler
    rng : numpy Generator
    """

    is_still = False

    def __init__(
        self, in_kernel: Any, space: Workspace, arrays: Any, sampler: Sampler, rng: np.random.Generator
    ) -> None:
        self.in_kernel, self.space, self.arrays, self.sampler = in_kernel, space, arrays, sampler
        self.gradient_evaluations = space.n_gradients  # those of a warm start
        self.schedule = Schedule(space.n)
        self.schedule.back_off(self.gradient_evaluations)  # an estimate that has not seen the samples certifies nothing
        self.kept = RandomIterate(rng.spawn(1)[0], is_wanted=not space.problem.is_convex)

    def __getstate__(self) -> dict[str, Any]:
        # A copy of a NamedTuple is made by its constructor, which would check the numbers as if a user had given them.
        return vars(self) | {"in_kernel": (type(self.in_kernel), tuple(self.in_kernel))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.in_kernel = unchecked(*state["in_kernel"])

    @property
    def is_done(self) -> bool:  # type: ignore[override]
        """Whether a rule of the solver's own has ended the run."""
        return bool(self.in_kernel.is_done(self.arrays))

    @property
    def w(self) -> np.ndarray:
        """The iterate."""
        iterate: np.ndarray = self.space.problem.iterate_of(self.arrays.w)
        return iterate

    @property
    def random_iterate(self) -> np.ndarray | None:  # type: ignore[override]
        """One of the iterates so far, each as likely as any other; None for a convex problem."""
        return self.kept.w

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
        return self.known_gap if self.gradient_evaluations >= self.schedule.next_certificate else np.inf

    def block_length(self, t: int, most: float) -> int:
        """Return how many steps the block from iteration ``t`` on may have."""
        return int(max(1, min(most, self.schedule.block, self.kept.due - t)))

    def make_steps(self, t: int, sizes: np.ndarray, batches: Batches) -> int:
        """Make iterations t, t + 1, ..., one for each batch; return how many were made before the solver was done."""
        run = run_block if self.space.is_compiled else interpreted
        start = time.perf_counter()
        count: int = run(self.in_kernel, self.space.view, self.arrays, batches, t)
        self.schedule.time_block(time.perf_counter() - start, sizes)
        self.kept.t = t + count
        return count

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that decides the rest of the run, as numbers and as arrays."""
        drawn = self.sampler.state()
        numbers = {
            "gradient_evaluations": self.gradient_evaluations,
            "_next_pick": self.kept.due,
            "_t": self.kept.t,
            "_since_refresh": self.schedule.since_refresh,
            "_next_certificate": self.schedule.next_certificate,
            "generators": [*drawn.pop("generators"), self.kept.rng.bit_generator.state],
        }
        arrays = {f"sampler.{name}": array for name, array in drawn.items()}
        arrays |= {f"state.{k}": array for k, array in enumerate(leaves(self.arrays))}
        if self.kept.w is not None:
            arrays["random_iterate"] = self.kept.w
        for part in self._with_memory():
            arrays |= part.snapshot()
        return numbers, arrays | {"b": self.space.b}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Go back to a snapshot."""
        *generators, self.kept.rng.bit_generator.state = numbers["generators"]
        self.sampler.restore(arrays["sampler.order"], arrays["sampler.position"], generators)
        self.gradient_evaluations = numbers["gradient_evaluations"]
        self.kept.w, self.kept.due, self.kept.t = arrays.get("random_iterate"), numbers["_next_pick"], numbers["_t"]
        self.schedule.since_refresh = numbers["_since_refresh"]
        self.schedule.next_certificate = numbers["_next_certificate"]
        for k, array in enumerate(leaves(self.arrays)):
            array[:] = arrays[f"state.{k}"]
        self.space.b[:] = arrays["b"]
        for part in self._with_memory():
            part.restore(arrays)

    def _with_memory(self) -> list[Remembering]:
        """Return what keeps more than arrays of one shape, and saves that itself."""
        return [part for part in (self.arrays.w, self.space.view) if isinstance(part, Remembering)]


def unchecked(kind: type, values: Iterable[object]) -> Any:
    """Return a NamedTuple past its constructor, which would check the values as if a user had given them."""
    return tuple.__new__(kind, values)


def leaves(arrays: Iterable[object]) -> Iterator[np.ndarray]:
    """Yield the arrays of numbers that a solver's arrays are made of, in the order in which a checkpoint holds them."""
    for part in arrays:
        if isinstance(part, np.ndarray):
            yield part
        elif isinstance(part, tuple):
            yield from leaves(part)
        elif isinstance(part, ArrayVector):
            yield part.values


def interpreted(solver, view, arrays, batches, t):
    """Make one step per batch, from iteration ``t`` on, until the solver is done; return how many."""
    for k in range(batches.size()):
        solver.step(view, arrays, batches.at(k), t + k)
        if solver.is_done(arrays):
            return k + 1
    return batches.size()


run_block = kernel(interpreted)
