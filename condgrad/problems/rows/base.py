"""The contract of rows: blocks of samples, tasks that are done on every block, and what a linear problem asks."""

from __future__ import annotations

import abc
import functools
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from condgrad.problems.active_set import Stack
from condgrad.problems.base import Feature
from condgrad.problems.rows.findings import Joined, Measures, Pass
from condgrad.problems.samples import Samples

Found = TypeVar("Found", bound="Additive", covariant=True)


class Additive(Protocol):
    """What a task finds on one block: findings of two blocks add up to that of both."""

    def __add__(self, other: Any) -> Any:
        """Return what was found on this block and on the ones after it."""


class Block(Protocol):
    """Some of the samples, one after another, at the place where they lie."""

    def predict(self, w: np.ndarray) -> np.ndarray:
        """Return x_i'w for each sample of the block."""

    def expand(self, w: np.ndarray, b: float, p: np.ndarray | None) -> Pass:
        """Return what these samples add to F and its gradient at w with the intercept b.

        ``p`` holds the predictions of all samples where they are known; then X is not multiplied by w again.
        """

    def measure(self) -> Measures:
        """Return the sizes of the columns on these samples."""


class Task(Protocol[Found]):
    """What is done on every block of a pass: a pure function of the block and of w, which can be sent anywhere."""

    def __call__(self, block: Block, w: np.ndarray) -> Found:
        """Return what the block adds."""


class Predict:
    """The task of finding X w."""

    def __call__(self, block: Block, w: np.ndarray) -> Joined:
        """Return the predictions of a block."""
        return Joined((block.predict(w),))


class Expand:
    """The task of a look: value, gradient and curvatures of F at w, for the intercept ``b``."""

    def __init__(self, b: float = 0.0, p: np.ndarray | None = None) -> None:
        self.b, self.p = b, p

    def __call__(self, block: Block, w: np.ndarray) -> Pass:
        """Return what a block adds."""
        return block.expand(w, self.b, self.p)


class Measure:
    """The task of measuring the columns."""

    def __call__(self, block: Block, w: np.ndarray) -> Measures:
        """Return the measures of a block."""
        return block.measure()


class Rows(abc.ABC):
    """The samples of a linear problem: X in blocks wherever it lies, targets and weights in memory.

    Attributes
    ----------
    n_samples, n_features : int
    samples : Samples
        Loss, targets and weights: one number a sample is small beside X.
    offers : frozenset of Feature
        What a linear problem over these rows can do.
    """

    n_samples: int
    n_features: int
    samples: Samples
    offers: frozenset[Feature]

    @abc.abstractmethod
    def sweep(self, task: Task[Found], w: np.ndarray) -> Found:
        """Do a task on every block, in one pass over X, and return the sum of what was found, in the blocks' order."""

    @abc.abstractmethod
    def head(self, n_rows: int) -> Rows | None:
        """Return ``n_rows`` samples or somewhat more, in memory; these rows themselves where they are no more.

        None where the chosen samples have no weight.
        """

    @abc.abstractmethod
    def curvature(self, found: Pass, atoms: Stack, n_rows: float, n_known: int, has_intercept: bool) -> np.ndarray:
        """Return <v_k, H v_l> for all pairs of atoms, for the Hessian H of the loss where the pass was made.

        ``n_rows`` samples, drawn by their curvature, are enough. Entries [:n_known, :n_known] may be left at 0.
        """

    @abc.abstractmethod
    def with_targets(self, y: np.ndarray) -> Self:
        """Return the same rows with other targets."""

    @abc.abstractmethod
    def definition(self) -> tuple[object, ...]:
        """Return what defines the data, for a fingerprint."""

    @property
    @abc.abstractmethod
    def cost_of_pass(self) -> float:
        """The multiply-adds of one look."""

    @abc.abstractmethod
    def along_shift(self, w: np.ndarray) -> float:
        """Return <shift, w>, by which the intercept of the columns as given is below that of centred ones."""

    @functools.cached_property
    def measures(self) -> Measures:
        """The sizes of the columns, measured once."""
        return self.sweep(Measure(), np.zeros(self.n_features))
