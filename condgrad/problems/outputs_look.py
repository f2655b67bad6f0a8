"""OutputsLook: one pass of a problem with several outputs, and the curvature there as a sum over samples."""

from __future__ import annotations

import abc

import numpy as np

from condgrad.constraints.vertices import Vertex
from condgrad.linalg.device.arrays import beside, on_host
from condgrad.linalg.device.scored import ScoredOnDevice
from condgrad.linalg.spread import spread_rows
from condgrad.problems.active_set import AtomStack, Stack, as_stack
from condgrad.problems.drawn_rows import sample_by_curvature
from condgrad.problems.evaluation import Evaluation
from condgrad.problems.look import Look
from condgrad.problems.output_losses import OutputLossesProblem

_CANDIDATES = 4  # samples on a device from which one is drawn by its curvature, on average
_ENTRIES_THERE = 2**25  # _BLOCK_ENTRIES on a device
_BLOCK_ENTRIES = 4_000_000  # number of entries of the dense rows from which the curvature is summed at a time


class OutputsLook(Look, abc.ABC):
    """A pass at W that can compute the curvature there, as a sum over samples."""

    problem: OutputLossesProblem

    def __init__(self, problem: OutputLossesProblem, evaluation: Evaluation) -> None:
        super().__init__(evaluation)
        self.problem = problem

    def curvature(
        self, atoms: Stack | list[Vertex], known: np.ndarray | None = None, n_rows: float = np.inf
    ) -> np.ndarray:
        """Return <v_k, H v_l> for all pairs of atoms, from ``n_rows`` samples if that is at most half of all."""
        atoms = as_stack(atoms)
        n_known = 0 if known is None else known.shape[0]
        if known is not None and n_known == len(atoms):
            return known
        H = self._curvature_on(atoms, n_known, n_rows)
        if known is not None:
            H[:n_known, :n_known] = known
        return H

    def _curvature_on(self, atoms: Stack, n_known: int, n_rows: float) -> np.ndarray:
        """Return the curvature; the entries [:n_known, :n_known] may be wrong, as the caller replaces them."""
        k = self.problem.n_outputs
        rows, factor = self._drawn(n_rows)
        H, mixed = np.zeros((len(atoms), len(atoms))), np.zeros((len(atoms), k))
        entries_per_row = len(atoms) * (1 if isinstance(atoms, AtomStack) else k)
        is_there = isinstance(self.problem.matrix, ScoredOnDevice)
        height = max(1, (_ENTRIES_THERE if is_there else _BLOCK_ENTRIES) // max(1, entries_per_row))
        for start in range(0, rows.size, height):
            part = slice(start, start + height)
            if isinstance(atoms, AtomStack):
                self._add_of_atoms(atoms, rows[part], factor[part], H, mixed)
            else:
                self._add_of_scores(self._vertex_scores(atoms, rows[part]), rows[part], factor[part], H, mixed)
        if self.problem.has_intercept:  # the minimum over b takes the Schur complement
            H -= self._of_intercepts(mixed, rows, factor)
        return H

    def _drawn(self, n_rows: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples of which a curvature is the sum, and how often each one counts.

        On a device they are drawn from evenly spread candidates, so that few numbers come to the host.
        """
        n, traces = self.problem.n_samples, self._traces()
        is_there = isinstance(self.problem.matrix, ScoredOnDevice)
        every = max(1, int(n / (_CANDIDATES * n_rows))) if is_there and 0.0 < n_rows <= n / 2 else 1
        if n_rows <= n / 2:
            rows = spread_rows(n, every)
            candidates = on_host(traces if every == 1 else traces[beside(rows, traces)])
            if candidates.any():
                places, shares = sample_by_curvature(candidates, n_rows)
                return rows[places], every * shares / candidates[places]
        return np.arange(n), np.ones(n)

    def _vertex_scores(self, atoms: Stack, rows: np.ndarray) -> np.ndarray:
        """Return the scores of all vertices and outputs for some samples."""
        problem = self.problem
        X = problem.matrix.chosen(rows)
        Z: np.ndarray = np.empty((len(atoms), problem.n_outputs, rows.size), like=problem.weight_there)
        for k in range(len(atoms)):
            Z[k] = X.dot_each(atoms.vertex(k).to_dense(problem.n_features).reshape(problem.shape))
        return Z

    def _atom_scores(self, atoms: AtomStack, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the output c of each atom v e_(c, j), and its scores for c on some samples; other outputs have 0."""
        of_output, column = np.divmod(atoms.index, self.problem.n_columns)
        single, at = np.unique(column, return_inverse=True)
        block = self.problem.matrix.block(rows, single).T
        return of_output, block[beside(at, block)] * beside(atoms.value[:, None], block)

    # The methods below work on the samples ``rows``, each counted ``factor`` times. ``mixed`` is the curvature between
    # the atoms and the intercepts.

    @abc.abstractmethod
    def _traces(self) -> np.ndarray:
        """Return, for every sample, its weight times the trace of the Hessian of its loss in the scores."""

    @abc.abstractmethod
    def _add_of_atoms(
        self, atoms: AtomStack, rows: np.ndarray, factor: np.ndarray, H: np.ndarray, mixed: np.ndarray
    ) -> None:
        """Add the curvature on atoms v e_(c, j)."""

    @abc.abstractmethod
    def _add_of_scores(
        self, Z: np.ndarray, rows: np.ndarray, factor: np.ndarray, H: np.ndarray, mixed: np.ndarray
    ) -> None:
        """Add the curvature on vertices with the scores Z, of shape (n_vertices, k, n_rows)."""

    @abc.abstractmethod
    def _of_intercepts(self, mixed: np.ndarray, rows: np.ndarray, factor: np.ndarray) -> np.ndarray:
        """Return the amount by which the best intercepts reduce the curvature."""
