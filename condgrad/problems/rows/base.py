"""Rows: the base class of sample storage, with blocks of samples and tasks that run on every block."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from condgrad.linalg.by_rows import ByRows
from condgrad.problems.active_set import Stack
from condgrad.problems.base import BaseProblem, Feature
from condgrad.problems.column_part import ColumnPart
from condgrad.problems.dense_part import DensePart
from condgrad.problems.rows.findings import GradientSums, Joined, Measures, Pass
from condgrad.problems.rows.parts import OutsidePass
from condgrad.problems.samples import Samples

AnyPass: TypeAlias = Pass | OutsidePass  # the results of a look, here or with the workers of a cluster

Found = TypeVar("Found", bound="Additive", covariant=True)


class Additive(Protocol):
    """The result of a task on one block; the sum of two results is the result for both blocks."""

    def __add__(self, other: Any) -> Any:
        """Return the result for this block and the blocks of ``other``, which come after it."""


class Block(Protocol):
    """A range of consecutive samples, at the place where they are stored."""

    def predict(self, w: np.ndarray) -> np.ndarray:
        """Return x_i'w for each sample of the block."""

    def expand(self, w: np.ndarray, b: float, p: np.ndarray | None, sums: GradientSums | None) -> Pass:
        """Return the contribution of these samples to F and its gradient at w with the intercept b.

        If ``p`` is not None, it holds the predictions of all samples, and X is not multiplied by w again. If ``sums``
        is not None, the gradient is added there.
        """

    def combine(self, a: np.ndarray) -> np.ndarray:
        """Return sum_i a_i x_i over the samples of the block, for an array with one number for every sample."""

    def measure(self) -> Measures:
        """Return the sizes of the columns on these samples."""


class Task(Protocol[Found]):
    """A pure function of a block and of w that a pass calls on every block; it can be sent to another process."""

    def __call__(self, block: Block, w: np.ndarray) -> Found:
        """Return the result for one block."""


class Predict:
    """The task of computing X w."""

    def __call__(self, block: Block, w: np.ndarray) -> Joined:
        """Return the predictions of a block."""
        return Joined((block.predict(w),))


class Expand:
    """The task of a look: value, gradient and curvatures of F at w, for the intercept ``b``.

    A pass over rows that are not in memory can also sum the second derivatives by some ``features``.
    """

    def __init__(
        self,
        b: float = 0.0,
        p: np.ndarray | None = None,
        is_guess: bool = False,
        sums: GradientSums | None = None,
        features: np.ndarray | None = None,
    ) -> None:
        self.b, self.p, self.sums, self.features = b, p, sums, features
        self.is_guess = is_guess  # whether b is not the best intercept: then rows elsewhere return the slope by b, too

    def __call__(self, block: Block, w: np.ndarray) -> Pass:
        """Return the contribution of a block."""
        return block.expand(w, self.b, self.p, self.sums)


class Combine:
    """The task of computing X'a."""

    def __init__(self, a: np.ndarray) -> None:
        self.a = a

    def __call__(self, block: Block, w: np.ndarray) -> np.ndarray:
        """Return the sum over a block."""
        return block.combine(self.a)


class Measure:
    """The task of measuring the columns."""

    def __call__(self, block: Block, w: np.ndarray) -> Measures:
        """Return the measures of a block."""
        return block.measure()


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Consecutive samples in memory; ``first`` is the place of the first one among all samples."""

    first: int
    matrix: ByRows
    samples: Samples

    @property
    def place(self) -> slice:
        """Where these samples lie among all."""
        return slice(self.first, self.first + self.matrix.shape[0])


class Rows(abc.ABC):
    """The samples of a linear problem: X in blocks, stored anywhere, targets and weights in memory.

    Attributes
    ----------
    n_samples, n_features : int
    samples : Samples
        Loss, targets and weights, which are small compared with X.
    offers : frozenset of Feature
        The features of a linear problem over these rows.
    is_in_memory : bool
        Whether passes are cheap. If not, a look does not make a pass of its own to find the best intercept.
    first_part, part_growth : int
        The number of samples of the first subsample that is worth a pass, and the factor from one to the next.
    n_reads : float
        How often all rows have been read from where they are stored; 0 for rows in memory.
    """

    n_samples: int
    n_features: int
    samples: Samples
    offers: frozenset[Feature]
    is_in_memory = True
    first_part, part_growth = BaseProblem.first_part, BaseProblem.part_growth
    chunk_sizes: np.ndarray | None = None  # the number of samples of each chunk that ``visit`` brings to memory

    @property
    def n_reads(self) -> float:
        """How often all rows have been read from where they are stored."""
        return 0.0

    @property
    def bytes_of_pass(self) -> int:
        """The number of bytes that a pass reads from where the rows are stored; 0 for rows in memory."""
        return 0

    @abc.abstractmethod
    def sweep(self, task: Task[Found], w: np.ndarray) -> Found:
        """Run a task on every block, in one pass over X, and return the sum of the results, in the blocks' order."""

    def expand(self, task: Expand, w: np.ndarray) -> AnyPass:
        """Make the pass of a look at w."""
        return self.sweep(task, w)

    def dot(self, w: np.ndarray) -> np.ndarray:
        """Return X w, in one pass."""
        return self.sweep(Predict(), w).array

    def predictions(self, w: np.ndarray) -> Any:
        """Return X w where it is used next: in memory, or on the device of the rows."""
        return self.dot(w)

    def zeros(self) -> Any:
        """Return the predictions of w = 0, where predictions of these rows are."""
        return np.zeros(self.n_samples)

    def check_targets(self, has_intercept: bool) -> None:
        """Raise ValueError if the loss is not defined for the targets, or no intercept is best for them."""
        loss, y, weight = self.samples.loss, self.samples.y, self.samples.weight
        loss.check_targets(y)
        if has_intercept:
            loss.check_intercept(y[weight > 0.0])

    def transpose_dot(self, a: np.ndarray) -> np.ndarray:
        """Return X'a, in one pass."""
        return self.sweep(Combine(a), np.zeros(self.n_features))

    def visit(self, order: np.ndarray) -> Iterator[Chunk]:
        """Bring the chunks to memory one after the other, in the given order; each is valid until the next one."""
        raise NotImplementedError(f"{type(self).__name__} has no chunks that can be brought to memory.")

    @abc.abstractmethod
    def head(self, n_rows: int) -> Rows | None:
        """Return a subsample of ``n_rows`` samples or somewhat more, in memory; self if there are no more samples.

        Return None if the subsample has no weight.
        """

    def chosen(self, places: np.ndarray) -> Rows | None:
        """Return some samples alone, with weights that sum to one; None without weight, or if X is elsewhere."""
        return None

    @property
    def most_in_memory(self) -> int:
        """The number of samples of the largest subsample that ``head`` returns; all, for rows in memory."""
        return self.n_samples

    @abc.abstractmethod
    def curvature(self, found: AnyPass, atoms: Stack, n_rows: float, n_known: int, has_intercept: bool) -> np.ndarray:
        """Return <v_k, H v_l> for all pairs of atoms, for the Hessian H of the loss at the point of the pass ``found``.

        An estimate from ``n_rows`` samples, drawn by their curvature, is enough. Entries [:n_known, :n_known] may be 0.
        """

    @property
    def has_sparse_columns(self) -> bool:
        """Whether :meth:`column_part` can be called, and uses sparse columns."""
        return False

    @property
    def has_dense_columns(self) -> bool:
        """Whether :meth:`dense_part` can be called, and :meth:`column_part`, which uses dense columns."""
        return False

    def column_part(self, features: np.ndarray, l2: float, has_intercept: bool) -> ColumnPart:
        """Return F on these features alone, with a penalty and, if so, an intercept."""
        raise NotImplementedError(f"{type(self).__name__} has no columns in memory.")

    def dense_part(self, l2: float, offset: float | None) -> DensePart:
        """Return F on some atoms alone, with a penalty and, where an ``offset`` is guessed, an intercept."""
        raise NotImplementedError(f"{type(self).__name__} has no dense columns.")

    def guess_intercept(self, found: AnyPass, b: float, step: np.ndarray) -> float:
        """Return a guess of the best intercept after a step of w from the point of ``found``, whose intercept is b."""
        raise NotImplementedError(f"{type(self).__name__} finds the best intercept in every pass.")

    @abc.abstractmethod
    def with_targets(self, y: np.ndarray) -> Self:
        """Return the same rows with other targets."""

    @abc.abstractmethod
    def definition(self) -> tuple[object, ...]:
        """Return the values that define the data, for a fingerprint."""

    @property
    @abc.abstractmethod
    def cost_of_pass(self) -> float:
        """The number of multiply-adds of one look."""

    @abc.abstractmethod
    def along_shift(self, w: np.ndarray, features: np.ndarray | None = None) -> float:
        """Return <shift, w>: the intercept for centred columns minus the intercept for the columns as given.

        With ``features``, w holds the coefficients of these features only.
        """

    @functools.cached_property
    def measures(self) -> Measures:
        """The sizes of the columns, measured once."""
        return self.sweep(Measure(), np.zeros(self.n_features))

    @property
    def largest_entry(self) -> float:
        """The largest absolute value of an entry of X."""
        return self.measures.largest_entry

    @property
    def size_of_columns(self) -> float:
        """A bound of the norms of all columns that takes less than a pass; inf: there is none."""
        return np.inf

    @functools.cached_property
    def column_sizes(self) -> np.ndarray:
        """The norms sqrt(sum_i weight_i x_ij^2) of the columns."""
        sizes: np.ndarray = np.sqrt(self.measures.squares)
        return sizes
