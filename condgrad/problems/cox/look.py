"""CoxLook: one pass of a Cox problem at w, and the curvature of F there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg.matrix import Matrix
from condgrad.problems.active_set import AtomStack, Stack, as_stack
from condgrad.problems.cox import likelihood
from condgrad.problems.cox.curvature import second_derivatives
from condgrad.problems.cox.likelihood import Sums
from condgrad.problems.cox.risk_sets import RiskSets
from condgrad.problems.drawn_rows import sample_by_curvature
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.look import Look


class Seen(NamedTuple):
    """What a pass has found: predictions in the order of the risk sets, the sums there, and the expected events."""

    p: np.ndarray
    sums: Sums
    expected: np.ndarray


class CoxLook(Look):
    """A pass at w that can compute the curvature there.

    A curvature from some samples is that of the same events with a sample of each risk set, drawn by the expected
    events: so it is never negative.
    """

    def __init__(self, matrix: Matrix, sets: RiskSets, evaluation: Evaluation, seen: Seen) -> None:
        super().__init__(evaluation)
        self.matrix, self.sets, self.seen = matrix, sets, seen

    def curvature(
        self, atoms: Stack | list[Vertex], known: np.ndarray | None = None, n_rows: float = np.inf
    ) -> np.ndarray:
        """Return <v_k, H v_l> for all pairs of atoms, from ``n_rows`` samples if that is at most half of all."""
        atoms = as_stack(atoms)
        n_known = 0 if known is None else known.shape[0]
        if known is not None and n_known == len(atoms):
            return known
        sets, seen = self._drawn(n_rows)

        def rows(samples: np.ndarray) -> np.ndarray:
            return self._predictions(atoms, samples)

        gram = None
        if isinstance(atoms, AtomStack) and self.matrix.is_sparse:  # then most products are zero
            gram = self.matrix.gram(atoms.index, atoms.value, seen.expected, sets.order, n_known)
        H = second_derivatives(sets, seen.sums, seen.expected, rows, len(atoms), n_known, gram)
        if known is not None:
            H[:n_known, :n_known] = known
        return H

    def _drawn(self, n_rows: float) -> tuple[RiskSets, Seen]:
        """Return all risk sets, or those of about ``n_rows`` samples."""
        p, _, expected = self.seen
        if n_rows > p.size / 2 or not expected.any():
            return self.sets, self.seen
        places, shares = sample_by_curvature(expected, n_rows)
        sets = self.sets.sampled(places, shares / expected[places])
        p = p[places]
        sums = likelihood.sums_at(sets, p)
        return sets, Seen(p, sums, likelihood.expected_events(sets, p, sums))

    def _predictions(self, atoms: Stack, samples: np.ndarray) -> np.ndarray:
        """Return the predictions of all atoms for some samples, one row for each sample."""
        if isinstance(atoms, AtomStack):
            Z = self.matrix.block(samples, atoms.index)
            Z *= atoms.value
            return Z
        n_features = self.matrix.shape[1]
        V = np.array([atoms.vertex(k).to_dense(n_features) for k in range(len(atoms))])
        return self.matrix.chosen(samples).dot_each(V).T.copy()
