"""CompletionPoint: a matrix in factors with its predictions, gradient, best vertex and gap; F along lines from it."""

from __future__ import annotations

from typing import Any, Protocol, Unpack, cast

import numpy as np

from condgrad.constraints import NuclearBall
from condgrad.linalg.factored import NEGLIGIBLE, Factored, RankOne, factored_from
from condgrad.linalg.saved import take_floats, take_like
from condgrad.linalg.support import support_of
from condgrad.losses import Loss
from condgrad.problems.completion.biases import Biases
from condgrad.problems.completion.oracle import ACCURACY, Answer, Search
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.linear_point import PredictionSegment
from condgrad.problems.samples import Samples
from condgrad.problems.segment import Course, Segment

_SPARE = 20  # number of columns beyond twice the last rank at which the factors are compressed
_SAVED = (
    "is_still",
    "is_fresh",
    "gradient_evaluations",
    "lmo_calls",
    "goal",
    "_rank",
)  # attributes saved by a checkpoint


class Completing(Protocol):
    """The attributes and methods of a completion problem that points and steps use."""

    shape: tuple[int, int]
    n_samples: int
    n_features: int
    has_biases: bool
    has_intercept: bool
    l2: float
    loss: Loss
    samples: Samples
    constraint: NuclearBall

    @property
    def is_convex(self) -> bool:
        """Whether the gap bounds F(W) - F*."""

    def into_ball(self, W: Factored) -> Factored:
        """Return W in the coordinates of the plain ball."""

    def out_of_ball(self, Z: Factored) -> Factored:
        """Return the matrix W that Z represents."""

    def values_of(self, Z: Factored) -> np.ndarray:
        """Return W at the observed entries, for the W that Z represents."""

    def predict(self, x: np.ndarray, biases: Biases | None) -> np.ndarray:
        """Return predictions at the entries, from the values x of W there and the biases."""

    def best_biases(self, x: np.ndarray, start: Biases | None = None) -> Biases | None:
        """Return the best biases for a W with the values x at the entries."""

    def ask_oracle(
        self,
        alpha: np.ndarray,
        x: np.ndarray,
        rng: np.random.Generator,
        guess: np.ndarray | None = None,
        accuracy: float = ACCURACY,
        goal: float = 0.0,
    ) -> Answer:
        """Return the best vertex for the gradient with the entries ``alpha``."""

    def search(self, alpha: np.ndarray, rng: np.random.Generator, guess: np.ndarray | None = None) -> Search:
        """Return a search for the singular vectors of the gradient."""

    def vertex_predictions(self, s: RankOne) -> np.ndarray:
        """Return the vertex at the observed entries."""

    def certified_at(self, W: Factored, x: np.ndarray, biases: Biases | None, gap: float, s: RankOne) -> Evaluation:
        """Return the certified evaluation at W for values that were just computed at W."""


class CompletionPoint:
    """The iterate of a solver that uses the whole gradient of a completion problem.

    ``Z`` is the iterate in the coordinates of the plain ball, ``x`` the values of W at the observed entries, ``p`` the
    predictions with biases, ``alpha`` the derivatives: the gradient at the entries. ``s`` and ``gap`` come from the
    oracle, whose error the gap includes; ``search`` is the oracle's search. A gap of at most ``goal`` need not be known
    exactly.
    """

    b = 0.0  # the intercept that segments read: biases are part of p

    def __init__(self, problem: Completing, W: Factored) -> None:
        self.problem = problem
        self.gradient_evaluations = 0
        self.lmo_calls = 0
        self.is_still = False  # whether the last move had length 0
        self.biases: Biases | None = None
        self.goal = 0.0
        self._guess: np.ndarray | None = None  # the best singular vector of the last oracle call
        self.reset(W)

    @property
    def w(self) -> Factored:
        """The matrix W."""
        return self.problem.out_of_ball(self.Z)

    def reset(self, W: Factored) -> None:
        """Go to ``W`` and compute everything anew."""
        self.go_to(self.problem.into_ball(W))

    def go_to(self, Z: Factored, biases: Biases | None = None) -> None:
        """Go to Z, in the coordinates of the plain ball, with a guess of its biases, and call the oracle."""
        self.Z = Z
        self._rank = Z.rank  # the rank at the last compression of the factors
        self.x = self.problem.values_of(Z)
        self.biases = biases if biases is not None else self.biases
        self._derive()
        self.ask_oracle()
        self.is_fresh = True  # x was computed from Z itself, not updated along moves

    def segment(self, **course: Unpack[Course]) -> CompletionSegment:
        """Return F along a line from here."""
        return CompletionSegment(self, **course)

    def move(self, line: CompletionSegment, gamma: float) -> None:
        """Go to W + gamma d along a segment that starts here."""
        self.is_still = gamma == 0.0
        self.is_fresh = False
        self.Z = line.end(gamma)
        if self.Z.rank > 2 * self._rank + _SPARE:
            self.Z = self.Z.compressed(NEGLIGIBLE)
            self._rank = self.Z.rank
            self.x = self.problem.values_of(self.Z)  # exact values of the compressed Z
        else:
            self.x = self.x + gamma * line.q
        self._derive()
        self.ask_oracle()

    def ask_oracle(self) -> None:
        """Call the oracle to compute the best vertex and the gap."""
        # A separate random stream for each call: the bound of the norm needs a start independent of everything before.
        rng = np.random.default_rng([self.problem.n_samples, self.lmo_calls])
        answer = self.problem.ask_oracle(self.alpha, self.x, rng, self._guess, goal=self.goal)
        self.search, self.s, self.gap = answer
        self._earlier_guess = self._guess
        self._guess = self.search.guess_from(self.s)
        self.lmo_calls += 1

    def along(self) -> float:
        """Return <grad F(W), W>."""
        return float(self.alpha @ self.x)

    def objective(self) -> float:
        """Return F(W)."""
        return self.problem.samples.value(self.p, 0.0)

    def evaluate(self) -> Evaluation:
        """Return the evaluation at W from the stored values; only the objective costs a sum over the entries.

        It is certified only if the values were computed at W itself.
        """
        if self.is_fresh:
            return self.problem.certified_at(self.w, self.x, self.biases, self.gap, self.s)
        return Evaluation(self.objective(), self.alpha, self.gap, self.s, self.biases)

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the whole state of the point, as numbers and as arrays."""
        arrays = {"U": self.Z.U, "s": self.Z.s, "V": self.Z.V, "x": self.x}
        if self._earlier_guess is not None:
            arrays["guess"] = self._earlier_guess
        if self.biases is not None:
            arrays |= {"biases.rows": self.biases.rows, "biases.columns": self.biases.columns}
        return {name: getattr(self, name) for name in _SAVED}, arrays

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot, and repeat the last oracle call, which gives the same result."""
        for name in _SAVED:
            setattr(self, name, numbers[name])
        self.Z, x = factored_from(arrays, self.Z.shape), take_floats(arrays, "x", self.x.size)
        self.x = self.problem.values_of(self.Z) if self.is_fresh else x  # a certificate needs those of Z itself
        if self.biases is not None:
            m, n = self.Z.shape
            self.biases = Biases(take_floats(arrays, "biases.rows", m), take_floats(arrays, "biases.columns", n))
        self.p = self.problem.predict(self.x, self.biases)
        self.alpha = self.problem.samples.derivatives(self.p, 0.0)
        self._guess = take_like(arrays, "guess", cast("np.ndarray", self._guess)) if "guess" in arrays else None
        self.lmo_calls -= 1
        self.ask_oracle()

    def _derive(self) -> None:
        self.biases = self.problem.best_biases(self.x, self.biases)
        self.p = self.problem.predict(self.x, self.biases)
        self.alpha = self.problem.samples.derivatives(self.p, 0.0)
        self.gradient_evaluations += self.p.size


class CompletionSegment(PredictionSegment):
    """F along a line from a point; biases are fixed along the line and recomputed after the move.

    Attributes
    ----------
    q : the rates of change of the predictions at the entries
    """

    point: CompletionPoint

    def __init__(self, point: CompletionPoint, **course: Unpack[Course]) -> None:
        Segment.__init__(self, point, **course)
        problem = point.problem
        self.q = -self.pull * point.x
        for c, s in self.parts:
            self.q = self.q + c * problem.vertex_predictions(s)
        self.rows = None
        self._support = support_of(None, problem.n_samples)
        self._along, self._square = 0.0, 0.0

    def end(self, gamma: float) -> Factored:
        """Return the matrix at W + gamma d, in the coordinates of the plain ball."""
        Z = self.point.Z.scaled(None, None, 1.0 - gamma * self.pull)
        for c, s in self.parts:
            Z = Z.plus(s.as_factored().scaled(None, None, gamma * c))
        return Z

    def squared_length(self) -> float:
        """Return ||d||^2 in the Frobenius norm, from the factors of d: those of W, and of the vertices."""
        D = self.point.Z.scaled(None, None, -self.pull)
        for c, s in self.parts:
            D = D.plus(s.as_factored().scaled(None, None, c))
        return max(0.0, float(np.sum(((D.U * D.s).T @ (D.U * D.s)) * (D.V.T @ D.V))))
