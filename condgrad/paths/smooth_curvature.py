"""Curvature: the curvatures of the samples at some point of a path, and Gram matrices of the atoms under them."""

from __future__ import annotations

import functools
import math

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg import threads
from condgrad.linalg.dense_slices import CentredColumns, DenseSlices
from condgrad.linalg.sparse_slices import SparseSlices
from condgrad.linalg.vectors import DenseVector
from condgrad.paths.atom_rows import AtomRows
from condgrad.paths.packed_columns import RoughColumns
from condgrad.paths.smooth_data import SmoothData
from condgrad.paths.smooth_point import FAILED, GOOD
from condgrad.paths.working_set import Atoms
from condgrad.problems.drawn_rows import sample_by_curvature
from condgrad.problems.linear import Problem

_ROWS_PER_ATOM = 100  # number of samples for each atom from which a Gram matrix is estimated at first
_FEW_ATOMS = 20  # least number of atoms that this number is multiplied by
_PASS = 30.0  # a pass costs as much as the Gram matrix of k atoms from this share of the samples, times 1 / k
_FLOOR = 0.02  # first least curvature of a sample, as a share of L, where f'' is not continuous
_MOST_ALONE = 64  # atoms from which on BLAS and LAPACK are faster than a search by itself
_MOST_PRODUCTS = 1e6  # twice the multiply-adds of a Gram matrix from which on they are, too
_WIDENING = 4  # factor by which the number of samples grows where an estimate is too rough

# Work is measured in multiply-adds of a pass over the rows; these were measured.
_CALLS = 200_000.0  # work of the calls for one Gram matrix
_DENSE_SPEED = 40.0  # multiply-adds of a dense matrix product that take as long as one of a pass
_FACTOR_SPEED = 90.0  # entries of a cube of k^3 for which a Cholesky factor takes as long
_COPY = 3.0  # work for a stored entry that is copied, or for a sample of an array
_ROW = 7.0  # work for a row of sparse data, beside that for its entries
_ENTRY = 3.0  # number of products of two entries of a row that take as long as finding one of them


class Curvature:
    """The curvatures h_i of the samples, or of some that are drawn by their share where the samples are many.

    Parameters
    ----------
    problem : Problem
    data : SmoothData
        The columns of the path.
    d : array
        The curvatures at the first point.

    Attributes
    ----------
    least_share : float
        Least curvature of a sample, over L: where f'' can be zero, a model may need some.
    is_rough : bool
        Whether single precision is enough: until a step with the curvature of its own point gains too little.
    """

    def __init__(self, problem: Problem, data: SmoothData, d: np.ndarray) -> None:
        self.problem, self.data = problem, data
        loss = problem.samples.loss
        self.smoothness = float(loss.smoothness())
        self.has_kinks = math.isfinite(self.smoothness) and not math.isfinite(loss.curvature_smoothness())
        self.least_share, self.rows_per_atom = 0.0, _ROWS_PER_ATOM
        self.rows: np.ndarray | None = None  # the samples that are drawn (None: all)
        self.is_rough = True
        self.h = d.copy()
        self._by_rows, self._packed = AtomRows(d.size), RoughColumns(problem.n_samples, problem.n_features)

    def relax(self, n_points: int) -> None:
        """Assume that the curvatures of points to come are less misleading than those of the last ones."""
        self.least_share *= 0.5**n_points

    def take(self, d: np.ndarray, n_atoms: int, quality: float, *, was_fresh: bool) -> None:
        """Take the curvatures d of another point; ``quality`` tells how the last step went, with its own if fresh."""
        if was_fresh:  # the estimate is too rough
            self.rows_per_atom *= _WIDENING
            self.is_rough = False
            self._packed = RoughColumns(d.size, self.problem.n_features)  # the copies are not needed any more
        if quality == FAILED or (was_fresh and quality != GOOD):  # the curvature may be zero only close to x
            self.least_share = min(1.0, max(_FLOOR, 2.0 * self.least_share))
        elif was_fresh:
            self.least_share *= 0.5
        if self.has_kinks and self.least_share > 0.0:
            d = np.maximum(d, self.least_share * self.smoothness * self.problem.samples.weight)
        n_rows = self._n_rows(n_atoms)
        is_large = n_rows < d.size and d.any()
        if is_large:
            self.rows, self.h = sample_by_curvature(d, n_rows)
        else:
            self.rows, self.h = None, d.copy()

    def is_plain(self, atoms: Atoms) -> bool:
        """Tell whether a search can renew the curvature itself: d as it is, of all samples, for a small matrix."""
        k, n = atoms.features.size, self.problem.n_samples
        is_whole = self.rows is None and 0.5 * n < _ROWS_PER_ATOM * _FEW_ATOMS
        return is_whole and not self.has_kinks and k <= _MOST_ALONE and k * atoms.n_stored <= _MOST_PRODUCTS

    def fill(self, G: np.ndarray, atoms: Atoms, features: np.ndarray, first: int) -> None:
        """Compute the rows and columns of the Gram matrix that belong to the atoms from ``first`` on.

        ``features`` are their numbers on the path; the atoms may have others, their places in memory.
        """
        size, n_new = features.size, features.size - first
        if self.is_plain(atoms):  # as the search does it: a call of BLAS would take longer
            self._fill_by_columns(G, atoms, first)
            return
        if self._fill_roughly(G, atoms, features, first):
            return
        if 0 < first < size and self._work_by_columns(atoms, n_new) < self._work_by_rows(atoms, n_new):
            self._fill_by_columns(G, atoms, first)
        elif isinstance(atoms.columns.slices, SparseSlices):
            h = self._of_all_rows()
            self._by_rows.fill(G, atoms, features, h, first)
            self._take_out_intercept(G, atoms, h, first)
        else:
            H = self.data.curvature(features, self.h, self.rows, first, self.is_rough)
            G[first:size, :size] = H[first:]
            G[:first, first:size] = H[:first, first:]

    def _fill_roughly(self, G: np.ndarray, atoms: Atoms, features: np.ndarray, first: int) -> bool:
        """Compute the same for dense data in single precision; return False where that is not possible."""
        is_dense = isinstance(atoms.columns.slices, (DenseSlices, CentredColumns))
        if not (is_dense and self.is_rough and self.rows is None and self._packed.has_room(features.size)):
            return False
        if not self._packed.fill(G, atoms, features, self.h, first):
            return False
        self._take_out_intercept(G, atoms, self.h, first)
        return True

    def _fill_by_columns(self, G: np.ndarray, atoms: Atoms, first: int) -> None:
        """Compute the same by products of all atoms with each of the new ones times the curvatures."""
        size, h = atoms.features.size, self._of_all_rows()
        work = self._work_by_columns(atoms, size - first)
        task = functools.partial(multiply_atoms, atoms.columns, atoms.features, h, G)
        threads.run(task, first + threads.cut(size - first, work))
        self._take_out_intercept(G, atoms, h, first)

    def _take_out_intercept(self, G: np.ndarray, atoms: Atoms, h: np.ndarray, first: int) -> None:
        if self.problem.has_intercept:
            take_out_intercept(atoms.columns, atoms.features, first, h, G)

    def _of_all_rows(self) -> np.ndarray:
        """Return the curvatures of all samples: zero for those that were not drawn."""
        if self.rows is None:
            return self.h
        h = np.zeros(self.problem.n_samples)
        h[self.rows] = self.h
        return h

    # Work: which way is faster, and when it pays to take other curvatures.

    def work(self, atoms: Atoms) -> float:
        """Return about how much work a new Gram matrix of the atoms and its factor are."""
        k = atoms.features.size
        share = self._n_rows(k) / self.problem.n_samples
        return _CALLS + share * self._work_by_rows(atoms, k) + k**3 / _FACTOR_SPEED

    def _n_rows(self, n_atoms: int) -> float:
        """Return from how many samples a Gram matrix is estimated: all of them, or less than half."""
        k, n = max(_FEW_ATOMS, n_atoms), self.problem.n_samples
        n_rows = max(self.rows_per_atom * k, _PASS * n / k)
        return n_rows if n_rows <= n / 2 else float(n)

    def _work_by_rows(self, atoms: Atoms, n_new: int) -> float:
        k, n, stored = atoms.features.size, self.problem.n_samples, atoms.n_stored
        entries, share = stored / n, n_new / max(1, k)  # entries of a row
        if not isinstance(atoms.columns.slices, SparseSlices) and entries > 0.5 * k:
            return _COPY * stored + n_new * stored / _DENSE_SPEED
        return _ROW * (1.0 + share) * n + share * stored * (entries + _ENTRY)

    def _work_by_columns(self, atoms: Atoms, n_new: int) -> float:
        return n_new * (atoms.n_stored + self.problem.n_samples)


@kernel
def multiply_atoms(columns, features, h, G, start, stop):
    """Fill in the rows of G, and its columns, for a range of atoms: their products with atoms up to them, times h."""
    column = np.zeros(h.shape[0])
    for q in range(start, stop):
        columns.add(features[q], 1.0, DenseVector(column))
        for i in range(h.shape[0]):
            column[i] *= h[i]
        columns.correlations(features, 0, q + 1, column, 0.0, G[q])
        for k in range(q):
            G[k, q] = G[q, k]
        for i in range(h.shape[0]):
            column[i] = 0.0


@kernel
def take_out_intercept(columns, features, first, h, G):
    """Subtract the part that a free intercept takes up from the rows and columns of the atoms from ``first`` on."""
    size, total, mixed = features.shape[0], 0.0, np.empty(features.shape[0])
    for i in range(h.shape[0]):
        total += h[i]
    if not total > 0.0:
        return
    columns.correlations(features, 0, size, h, 0.0, mixed)
    for q in range(first, size):
        for k in range(q + 1):
            G[q, k] -= mixed[q] * mixed[k] / total
            G[k, q] = G[q, k]
