"""BaseProblem: the methods of a problem that minimize and the solvers call, and the features that it declares."""

from __future__ import annotations

import abc
import enum
from collections.abc import Mapping
from typing import Any

import numpy as np

from condgrad.constraints import best_vertex
from condgrad.constraints._protocol import ConstraintSet
from condgrad.constraints.vertices import Vertex
from condgrad.linalg import convert
from condgrad.linalg.arrays import ArrayVector
from condgrad.linalg.factored import Iterate, IterateLike
from condgrad.linalg.fingerprint import fingerprint_of
from condgrad.linalg.rounding import Bounds, gamma
from condgrad.linalg.vectors import Vector
from condgrad.problems.evaluation import Evaluation, Support, certify, gap_at, vertex_rounding
from condgrad.problems.look import Look
from condgrad.problems.look_point import LookPoint
from condgrad.problems.segment import PointLike

FORMULA = 100  # assumed error of a formula given by the user, in units of rounding


class Feature(enum.Enum):
    """The features that a problem may offer and a solver may require; error messages quote their values."""

    LOOK = "full passes at any w"
    CURVATURE = "the curvature of F on vertices"
    POINT = "F along lines"
    VERTICES = "iterates that are arrays and combinations of vertices"
    SAMPLES = "single samples"
    CHUNKS = "single samples that are losses of one prediction, at least chunk by chunk"
    PREDICTIONS = "single samples that are losses of one prediction"
    SECOND_DERIVATIVES = "second derivatives of single samples"
    COLUMNS = "single columns of X"
    FACTORS = "iterates that are matrices in factors"


class BaseProblem(abc.ABC):
    """Base class of all problems: minimise F over a set.

    A subclass defines ``n_samples``, ``n_features``, ``constraint``, ``is_convex`` and ``look``. That is enough for the
    solvers that move along lines; with a :class:`Look` that returns the curvature, and ``CURVATURE`` in ``offers``,
    it is enough for "corrective". A problem lists all its features in ``offers``, and :func:`condgrad.minimize`
    compares them with those that a solver ``requires``.

    Attributes
    ----------
    n_samples : int
        The number of samples in an epoch: a look is one epoch.
    n_features : int
        The length of w.
    constraint : a set of :mod:`condgrad.constraints`
    offers : frozenset of Feature
    remedies : mapping of Feature to str
        For features that are not offered: what the user can do instead.
    """

    n_samples: int
    n_features: int
    constraint: ConstraintSet
    offers: frozenset[Feature] = frozenset({Feature.LOOK, Feature.POINT, Feature.VERTICES})
    remedies: Mapping[Feature, str] = {}
    has_intercept = False  # whether a free intercept is minimised together with w
    has_sparse_columns = False  # whether looks return F on some features alone, through columns that store few entries
    has_dense_columns = False  # whether they do so through dense columns
    has_dense_parts = False  # whether looks return a smooth F on some atoms alone, through a copy of their columns
    is_quadratic = False  # whether the curvature of F is the same everywhere
    first_part, part_growth = (
        4000,
        8,
    )  # samples of the first subsample that is worth a pass, and how much the next are larger
    chunk_sizes: np.ndarray | None = None  # samples of each chunk that steps bring to memory; None: all are there
    _last: tuple[Any, Look] | None = None  # the last w of _look_once, and its look

    @property
    @abc.abstractmethod
    def is_convex(self) -> bool:
        """Whether F is convex: then the gap bounds F(w) - F*."""

    @abc.abstractmethod
    def look(self, w: IterateLike) -> Look:
        """Make one pass at w and return objective, gradient, gap, vertex, intercept and bounds of their rounding."""

    def look_with(self, w: IterateLike, offset: float, features: np.ndarray | None = None) -> Look:
        """Make a pass at w with a given intercept, if finding the best one would cost a pass of its own; else look(w).

        The gap then includes the distance of the given intercept from the best one. If ``features`` are given, and a
        pass is expensive, the look may also have the second derivatives by these (``look.bends``).
        """
        return self.look(w)

    def guess_offset(self, w: Any, near: Look) -> float:
        """Return an intercept for :meth:`look_with` at w, from a look at a point nearby."""
        return near.evaluation.offset

    @property
    def n_reads(self) -> float:
        """How often all data have been read from where they are stored; 0 for data in memory."""
        return 0.0

    @property
    def bytes_of_pass(self) -> int:
        """The number of bytes that a pass reads from a disk or another machine; 0 for data in memory."""
        return 0

    def evaluate(self, w: IterateLike) -> Evaluation:
        """Return objective, gradient, gap, vertex and intercept at w, with the bounds of their rounding."""
        return self.look(w).evaluation

    def objective(self, w: IterateLike) -> float:
        """Return F(w)."""
        return self._look_once(w).objective

    def gradient(self, w: IterateLike) -> Any:
        """Return the gradient of F at w."""
        return self._look_once(w).gradient

    def gap(self, w: IterateLike) -> float:
        """Return the Frank-Wolfe gap max over s in C of <grad F(w), w - s>."""
        return self.evaluate(w).gap

    def _look_once(self, w: IterateLike) -> Look:
        """Return the look at w, cached so that objective and gradient at the same w share one pass."""
        at: Any = self.as_iterate(w, "w")
        if self._last is None or not np.array_equal(self._last[0], at):
            self._last = (at.copy(), self.look(at))
        return self._last[1]

    def part(self, n_rows: int) -> BaseProblem | None:
        """Return the problem on a subsample of about ``n_rows`` samples, in memory; None if it cannot be subsampled."""
        return self if n_rows >= self.n_samples else None

    def largest_part(self) -> BaseProblem | None:
        """Return the problem on as many samples as memory allows, if a pass over all reads more than that; else None.

        Solvers then work on this part between two passes over all samples.
        """
        return None

    def point(self, w: Any) -> PointLike:
        """Return an iterate at ``w`` for a solver that moves along lines."""
        return LookPoint(self, w)

    def least_value(self) -> float:
        """Return a lower bound of F, rounding included; -inf where none is known."""
        return -np.inf

    def lipschitz(self) -> float:
        """Return a Lipschitz constant of grad F in the l2 norm; inf where none is known."""
        return np.inf

    def smoothness(self) -> float:
        """Return a Lipschitz constant of grad F in the l2 norm, or raise where none is known."""
        L = float(self.lipschitz())
        if not 0.0 <= L < np.inf:
            raise ValueError(
                f"a short step needs a Lipschitz constant of the gradient, which this {type(self).__name__} does not "
                f"know (now it is {L:g}); use OpenLoop(), or for full passes Backtracking()."
            )
        return L

    def fingerprint(self) -> str:
        """Return a hash of all that defines the problem, by which a checkpoint recognises it."""
        own = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return fingerprint_of((type(self).__name__, sorted(own.items())))

    @property
    def cost_of_pass(self) -> float:
        """The approximate number of multiply-adds of one look."""
        return 2.0 * self.n_samples * self.n_features

    def lmo(self, r: np.ndarray) -> Vertex:
        """Return a vertex of C that minimises <r, s>."""
        return best_vertex(self.constraint, r)

    def certified(
        self, w: np.ndarray, objective: float, gradient: np.ndarray, *, sizes: tuple[float, np.ndarray] | None = None
    ) -> Evaluation:
        """Return the evaluation at w, with rounding bounds, for an objective and a gradient just computed at w.

        The rounding inside a user's formulas is unknown: objective and gradient are assumed to be sums of
        ``n_samples`` numbers, each correct to 100 units. ``sizes`` are the sums of the absolute values of these
        numbers, for the objective and for each entry of the gradient. The default is the absolute values of the sums
        themselves, which is too small where positive and negative numbers cancel.
        """
        value, of_gradient = (0.0, np.zeros(w.size)) if sizes is None else sizes
        s = self.lmo(gradient)
        unit = gamma(self.n_samples + FORMULA)
        oracle = vertex_rounding(self.constraint, gradient, Support.of(w), s)
        rounding = unit * self.constraint.reach(of_gradient + np.abs(gradient)) + oracle
        bounds = Bounds(rounding, unit * (value + abs(objective)))
        return certify(self.is_convex, objective, gradient, gap_at(gradient, w, s), s, 0.0, bounds)

    # The coordinates of the steps: for most problems those of w itself. Each kind of problem has its own kind of
    # iterate, returned by its `start` and `as_iterate`; its methods receive only this kind.

    @property
    def n_coordinates(self) -> int:
        """The length of the vectors that steps work on, here the length of w and of its gradient."""
        return self.n_features

    def start(self) -> tuple[Any, list[tuple[float, Vertex]]]:
        """Return the point where solvers start, as an iterate and as (weight, vertex) pairs."""
        s = self.constraint.start(self.n_features)
        return s.to_dense(self.n_features), [(1.0, s)]

    def best_offset(self, w: Any) -> float:
        """Return the intercept that steps work with (0 for a problem without one)."""
        return 0.0

    def as_iterate(self, w: IterateLike, name: str) -> Iterate:
        """Convert a point given by the user to the iterate of a solver, here an array."""
        return convert.as_point(w, self.n_features, name)

    def in_coordinates(self, w: Any) -> np.ndarray:
        """Return an iterate in the coordinates of the steps."""
        at: np.ndarray = w
        return at

    def vector_at(self, w: Any) -> Vector:
        """Return an iterate as the vector that interpreted steps move."""
        return ArrayVector(w.copy())

    def iterate_of(self, vector: Any) -> Any:
        """Return the iterate that a vector of the steps represents."""
        return vector.to_array()
