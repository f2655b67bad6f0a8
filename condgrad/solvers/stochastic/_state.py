"""StepState: the state of a stochastic run, and the kernel that makes a block of its steps."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg.arrays import ArrayVector
from condgrad.linalg.saved import fill_from, set_generator, take_floats, take_indices
from condgrad.solvers.base import State
from condgrad.solvers.stochastic._schedule import RandomIterate, Schedule
from condgrad.solvers.stochastic._workspace import Workspace
from condgrad.solvers.stochastic.sampling import Batches, Sampler


@runtime_checkable
class Remembering(Protocol):
    """A part of a state that stores more than arrays of fixed shapes."""

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return the stored values as named arrays."""

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot of this part."""


class StepState(State):
    """The state of a stochastic run: the arrays that its steps change, its counters and its random generators.

    Parameters
    ----------
    in_kernel : a solver with numbers for its settings
        A kernel accepts neither strings nor Python rules.
    space : Workspace
    arrays : the return value of the solver's ``start``
    sampler : Sampler
    rng : numpy Generator
    """

    is_still = False

    def __init__(
        self, in_kernel: Any, space: Workspace, arrays: Any, sampler: Sampler, rng: np.random.Generator
    ) -> None:
        self.in_kernel, self.space, self.arrays, self.sampler = in_kernel, space, arrays, sampler
        self.gradient_evaluations = space.n_gradients  # gradients of a warm start
        self.schedule = Schedule(space.n)
        self.schedule.back_off(self.gradient_evaluations)  # no certificate before all samples were used
        self.kept = RandomIterate(rng.spawn(1)[0], is_wanted=not space.problem.is_convex)

    def __getstate__(self) -> dict[str, Any]:
        # Copying a NamedTuple calls its constructor, whose checks are for user input.
        return vars(self) | {"in_kernel": (type(self.in_kernel), tuple(self.in_kernel))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.in_kernel = unchecked(*state["in_kernel"])

    @property
    def is_done(self) -> bool:  # type: ignore[override]
        """Whether the solver's own stopping rule has ended the run."""
        return bool(self.in_kernel.is_done(self.arrays))

    @property
    def w(self) -> np.ndarray:
        """The iterate."""
        iterate: np.ndarray = self.space.problem.iterate_of(self.arrays.w)
        return iterate

    @property
    def random_iterate(self) -> np.ndarray | None:  # type: ignore[override]
        """One of the iterates so far, drawn uniformly; None for a convex problem."""
        return self.kept.w

    @property
    def lmo_calls(self) -> int:  # type: ignore[override]
        """The number of oracle calls so far."""
        return int(self.arrays.r.oracle_calls())

    @property
    def known_gap(self) -> float:
        """The smoothed stochastic gap of equation (31)."""
        return float(self.arrays.r.smoothed_gap())

    @property
    def gap_estimate(self) -> float:
        """The gap that decides when a certificate is computed: inf while it is too early for one."""
        return self.known_gap if self.gradient_evaluations >= self.schedule.next_certificate else np.inf

    def block_length(self, t: int, most: float) -> int:
        """Return the largest length of the block of steps that starts with iteration ``t``."""
        return int(max(1, min(most, self.schedule.block, self.kept.due - t)))

    def sizes_at_hand(self, sizes: np.ndarray) -> np.ndarray:
        """Return the sizes of the next batches, for which there are samples in memory: all of the given ones."""
        return sizes

    def at_hand(self) -> tuple[Any, Any]:
        """Return the problem in the form for kernels, and the arrays that the steps on its samples change."""
        return self.space.view, self.arrays

    def make_steps(self, t: int, sizes: np.ndarray, batches: Batches) -> int:
        """Make iterations t, t + 1, ..., one for each batch, until the solver is done; return their number."""
        run = run_block if self.space.is_compiled else interpreted
        view, arrays = self.at_hand()
        start = time.perf_counter()
        count: int = run(self.in_kernel, view, arrays, batches, t)
        self.schedule.time_block(time.perf_counter() - start, sizes)
        self.kept.t = t + count
        return count

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all values that determine the rest of the run, as numbers and as arrays."""
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
        return numbers, arrays | {"b": self.space.b, "coins": self.space.coins.key}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot."""
        *generators, own = numbers["generators"]
        set_generator(self.kept.rng, own)
        self.sampler.restore(arrays["sampler.order"], arrays["sampler.position"], generators)
        self.gradient_evaluations = numbers["gradient_evaluations"]
        is_kept = "random_iterate" in arrays
        self.kept.w = take_floats(arrays, "random_iterate", self.w.size) if is_kept else None
        is_wanted = self.kept.due < np.inf
        self.kept.due, self.kept.t = numbers["_next_pick"], numbers["_t"]
        if self.kept.due <= self.kept.t or is_wanted != (self.kept.due < np.inf):
            raise ValueError("its random iterate is due in the past")
        self.schedule.since_refresh = numbers["_since_refresh"]
        self.schedule.back_off(self.gradient_evaluations)
        self.schedule.next_certificate = min(self.schedule.next_certificate, numbers["_next_certificate"])
        for k, array in enumerate(leaves(self.arrays)):
            self._fill(array, arrays, f"state.{k}")
        fill_from(arrays, "b", self.space.b)
        if "coins" in arrays:  # files of the time before coins have none
            self.space.coins.key[:] = take_indices(arrays, "coins", 2**63, size=1)
        for part in self._with_memory():
            part.restore(arrays)
        check_parts(self.arrays)
        if not 0.0 <= self.arrays.r.oracle_calls() < 2.0**53:
            raise ValueError("its number of oracle calls is none")

    def _fill(self, array: np.ndarray, saved: dict[str, np.ndarray], name: str) -> None:
        """Copy the saved array of this name into one of the state."""
        fill_from(saved, name, array)

    def _with_memory(self) -> list[Remembering]:
        """Return the parts that store more than arrays of fixed shapes, and save and restore themselves."""
        return [part for part in (self.arrays.w, self.space.view) if isinstance(part, Remembering)]


def unchecked(kind: type, values: Iterable[object]) -> Any:
    """Return a NamedTuple without calling its constructor, whose checks are for user input."""
    return tuple.__new__(kind, values)


def leaves(arrays: Iterable[object]) -> Iterator[np.ndarray]:
    """Yield the NumPy arrays inside a solver's arrays, in the order in which a checkpoint stores them."""
    for part in arrays:
        if isinstance(part, np.ndarray):
            yield part
        elif isinstance(part, tuple):
            yield from leaves(part)
        elif isinstance(part, ArrayVector):
            yield part.values


def check_parts(arrays: Iterable[object]) -> None:
    """Raise ValueError unless the parts of a restored state that hold whole numbers are sound: kernels trust them."""
    for part in arrays:
        if isinstance(part, tuple):
            if hasattr(part, "is_sound") and not part.is_sound():
                raise ValueError(f"its parts of a {type(part).__name__} contradict each other")
            check_parts(part)


def interpreted(solver, view, arrays, batches, t):
    """Make one step per batch, the first of them iteration ``t``, until the solver is done; return their number."""
    for k in range(batches.size()):
        solver.step(view, arrays, batches.at(k), t + k)
        if solver.is_done(arrays):
            return k + 1
    return batches.size()


run_block = kernel(interpreted)
