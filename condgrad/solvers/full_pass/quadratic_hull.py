"""QuadraticHull: a quadratic F on the hull of some vertices, which methods correct without reading the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from condgrad.constraints import Atom
from condgrad.constraints.vertices import Vertex
from condgrad.linalg.saved import take_floats, take_square, take_weights
from condgrad.problems.active_set import AtomStack, Stack, VertexStack, stack, stack_from
from condgrad.problems.base import BaseProblem
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.look import Look
from condgrad.solvers.base import State

_ROUNDING = 1e-13  # share of F that rounding may add to it
_SAVED = ("gradient_evaluations", "lmo_calls", "is_still", "n_vain")


class QuadraticHull(State):
    """w = sum_k x_k v_k with x >= 0 and sum 1, the last pass at w, and the curvature of F on the vertices v_k.

    F is quadratic, so that for weights z in place of x it changes by <g, z - x> + (z - x)'H(z - x)/2 exactly, where
    g_k = <grad F(w), v_k> and H_kl = <v_k, H v_l>. An entry of H is computed once.
    """

    def __init__(self, problem: BaseProblem, w0: np.ndarray | None, method: str) -> None:
        if not problem.is_quadratic:
            raise TypeError(
                f"{method} is for a quadratic F, such as that of the squared loss, whose curvature is the same "
                "everywhere. Use 'corrective', which takes any loss."
            )
        self.problem = problem
        parts = problem.start()[1] if w0 is None else problem.constraint.decompose(w0)
        parts = [(weight, v) for weight, v in parts if weight > 0.0]
        self.atoms: Stack = stack([v for _, v in parts])
        self.x = np.array([weight for weight, _ in parts])
        self._known: np.ndarray | None = None
        self.is_still = False
        self.n_vain = 0  # steps in sequence that did not lead to a smaller F
        self.gradient_evaluations = self.lmo_calls = 0
        self.x /= self.x.sum()
        self._w = self.atoms.combination(self.x, problem.n_features)
        self.look = self._look()

    @property
    def w(self) -> np.ndarray:
        """The iterate."""
        return self._w

    @property
    def known_gap(self) -> float:
        """The exact gap at w."""
        return self.look.gap

    def let_in(self, vertices: Sequence[Vertex]) -> None:
        """Add vertices that are not among the atoms yet, with weight 0."""
        held = {self.atoms.vertex(k).key() for k in range(len(self.atoms))}
        new = [v for key, v in {v.key(): v for v in vertices}.items() if key not in held]
        if isinstance(self.atoms, AtomStack) and not all(isinstance(v, Atom) for v in new):
            self.atoms = VertexStack([self.atoms.vertex(k) for k in range(len(self.atoms))])
        self.atoms.extend(new)
        self.x = np.append(self.x, np.zeros(len(new)))

    def place_of(self, v: Vertex) -> int:
        """Return the place of an atom."""
        return next(k for k in range(len(self.atoms)) if self.atoms.vertex(k).key() == v.key())

    def slopes(self) -> np.ndarray:
        """Return g: <grad F(w), v_k> for all atoms."""
        return self.look.slopes(self.atoms)

    def curvature(self) -> np.ndarray:
        """Return H: <v_k, H v_l> for all pairs of atoms."""
        self._known = self.look.curvature(self.atoms, self._known)
        return self._known

    def go_to(self, x: np.ndarray) -> None:
        """Make a pass at the weights ``x``, and stay there unless F is larger; atoms without weight are dropped."""
        kept = x > 0.0
        before = self.x, self._w, self.look
        self.x, self._w = x / x.sum(), self.atoms.combination(x / x.sum(), self.problem.n_features)
        self.look = self._look()
        rise = self.look.objective - before[2].objective
        # Close to the optimum, rounding decides whether F falls; the gap still shows which w is better.
        is_better = rise < 0.0 or (rise <= _ROUNDING * abs(self.look.objective) and self.look.gap < before[2].gap)
        self.is_still = not is_better
        if not is_better:
            self.x, self._w, self.look = before
            kept = self.x > 0.0
        self.n_vain = 0 if is_better else self.n_vain + 1
        self.atoms, self.x = self.atoms.select(kept), self.x[kept]
        self._known = None if self._known is None else self._known[np.ix_(kept, kept)]

    def _look(self) -> Look:
        self.gradient_evaluations += self.problem.n_samples
        self.lmo_calls += 1
        return self.problem.look(self._w)

    def evaluate_start(self) -> Evaluation | None:
        """Return the evaluation of the pass at the start."""
        return self.look.evaluation

    def snapshot(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all values that determine the rest of the run, as numbers and as arrays."""
        arrays = {f"atoms.{name}": part for name, part in self.atoms.to_arrays().items()} | {"x": self.x, "w": self._w}
        known = {} if self._known is None else {"curvature": self._known}
        return {name: getattr(self, name) for name in _SAVED}, arrays | known

    def restore(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore a snapshot; a pass recomputes the look at w."""
        self.atoms = stack_from(arrays, self.problem.n_features)
        self.x, self._w = take_weights(arrays, "x", len(self.atoms)), take_floats(arrays, "w", self._w.size)
        self._known = take_square(arrays, "curvature", len(self.atoms))
        self.look = self.problem.look(self._w)
        for name in _SAVED:
            setattr(self, name, numbers[name])
