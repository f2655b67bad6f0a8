"""ChunkedState: a stochastic run over chunks of samples that are brought to memory one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from condgrad.linalg.saved import set_generator, take_like
from condgrad.problems.finite_sum import FiniteSum
from condgrad.problems.linear import Problem
from condgrad.solvers.stochastic._state import StepState
from condgrad.solvers.stochastic._workspace import Workspace
from condgrad.solvers.stochastic.sampling import Batches, Sampler


class Tour:
    """A way through all chunks, in an order drawn at random; the steps draw from the chunk where it is.

    Attributes
    ----------
    order : array of int
        The chunks of this tour.
    position : int
        The place in the order; that of the last chunk before the first tour.
    n_left : int
        The number of samples that the steps will still take from this chunk.
    """

    def __init__(self, problem: Problem, sizes: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> None:
        self.problem, self.sizes, self.b, self.rng = problem, sizes, b, rng
        self.order = np.flatnonzero(sizes)
        self.position, self.n_left = self.order.size - 1, 0
        self._reading: Iterator[tuple[slice, FiniteSum]] | None = None
        self._here: tuple[slice, FiniteSum] | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the steps have taken all samples of all chunks."""
        return self.n_left == 0 and self.position == self.order.size - 1

    @property
    def size(self) -> int:
        """The number of samples of this chunk."""
        return int(self.sizes[self.order[self.position]])

    def move_on(self) -> None:
        """Go to the next chunk, after the last one to the first chunk of another tour."""
        if self.is_complete:
            self.release()
            self.order, self.position = self.rng.permutation(np.flatnonzero(self.sizes)), -1
        self.position, self._here = self.position + 1, None
        self.n_left = self.size

    @property
    def here(self) -> tuple[slice, FiniteSum]:
        """The place of this chunk among all samples, and the part of F that is its own; the chunk is in memory."""
        if self._reading is None:
            self._reading = self.problem.visit(self.order[self.position :], self.b)
        if self._here is None:
            self._here = next(self._reading)
        return self._here

    def take(self, n: int) -> None:
        """Count n samples that steps have taken; memory is given back with the last one of the tour."""
        self.n_left -= n
        if self.is_complete:
            self.release()

    def release(self) -> None:
        """End the threads that read, and give back the memory; the next steps read this chunk again."""
        self._reading = self._here = None  # a generator that nothing refers to is closed

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_reading": None, "_here": None}


class ChunkedState(StepState):
    """The state of a run over chunks; an epoch brings each one to memory once and makes the steps of its samples.

    The table of a solver, one number for each sample, is in memory as a whole; the kernel gets the slice of a chunk.
    """

    record_growth = 1.0  # a record reads all chunks, as an epoch does

    def __init__(
        self, in_kernel: Any, space: Workspace, arrays: Any, sampler: Sampler, rng: np.random.Generator
    ) -> None:
        super().__init__(in_kernel, space, arrays, sampler, rng)
        sizes = space.problem.chunk_sizes
        assert sizes is not None
        if space.batch_size > sizes.max():
            raise ValueError(
                f"batch_size is {space.batch_size}, but the chunks have at most {sizes.max()} samples, and a step uses "
                f"samples of one chunk; use at most {sizes.max()}."
            )
        self.tour = Tour(space.problem, sizes, space.b, rng.spawn(1)[0])
        self.sampler.confine_to(self.tour.size)

    @property
    def gap_estimate(self) -> float:
        """The gap that decides when a certificate is computed: inf in the middle of a tour, whose chunks use memory."""
        return super().gap_estimate if self.tour.is_complete else np.inf

    def sizes_at_hand(self, sizes: np.ndarray) -> np.ndarray:
        """Return the sizes of the next batches: those left in this chunk are as equal as possible, and not larger."""
        if self.tour.n_left == 0:
            self.tour.move_on()
            self.sampler.confine_to(self.tour.size)
        n_left = self.tour.n_left
        n_batches = -(-n_left // int(sizes[0]))
        return n_left // n_batches + (np.arange(min(n_batches, sizes.size)) < n_left % n_batches)

    def at_hand(self) -> tuple[Any, Any]:
        """Return the part of F that belongs to this chunk, and the arrays with the slice of the table for it."""
        place, view = self.tour.here
        return view, self.in_kernel.on_samples(self.arrays, place)

    def make_steps(self, t: int, sizes: np.ndarray, batches: Batches) -> int:
        """Make iterations t, t + 1, ..., one for each batch, until the solver is done; return their number."""
        count = super().make_steps(t, sizes, batches)
        self.tour.take(int(sizes[:count].sum()))
        return count

    def release(self) -> None:
        """End the threads that read, and give back the memory of chunks."""
        self.tour.release()

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all values that determine the rest of the run, as numbers and as arrays."""
        numbers, arrays = super().snapshot()
        tour = self.tour
        numbers["tour"] = {"position": tour.position, "n_left": tour.n_left, "generator": tour.rng.bit_generator.state}
        return numbers, arrays | {"tour.order": tour.order}

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot; the chunk where it was made is read again."""
        saved, tour = numbers["tour"], self.tour
        tour.release()
        tour.order = take_like(arrays, "tour.order", tour.order)
        tour.position, tour.n_left = saved["position"], saved["n_left"]
        if not np.array_equal(np.sort(tour.order), np.flatnonzero(tour.sizes)):
            raise ValueError("its tour does not visit every chunk once")
        if tour.position >= tour.order.size or tour.n_left > tour.size:
            raise ValueError("its place in the chunks does not exist")
        set_generator(tour.rng, saved["generator"])
        self.sampler.confine_to(tour.size)
        super().restore(numbers, arrays)
