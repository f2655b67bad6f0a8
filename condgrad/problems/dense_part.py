"""DensePart: F as a function of the weights of some atoms, through a dense copy of their columns; others may join."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import Bound, compiled
from condgrad.linalg.gram_model import empty_model
from condgrad.linalg.newton_in_ball import OFFSET, VALUE, NewtonInBall
from condgrad.linalg.newton_on_columns import ATOMS, FIRST, LOOK, LOOKS, Columns, newton_on_columns
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import DenseVector
from condgrad.problems.active_set import AtomStack
from condgrad.problems.samples import Samples, derive_block, value_of_range


@compiled
class LossOfPart(NamedTuple):
    """The loss at some predictions, for a kernel that was compiled without knowing it."""

    samples: Samples
    has_intercept: bool
    p: np.ndarray
    a: np.ndarray
    d: np.ndarray
    numbers: np.ndarray

    def serve(self, what):
        """Compute the derivatives, the curvatures, the loss and, if there is one, the best intercept at p."""
        samples, p, numbers = self.samples, self.p, self.numbers
        if self.has_intercept:
            numbers[OFFSET] = samples.best_intercept(p, numbers[OFFSET])
        derive_block(samples, 0, p, numbers[OFFSET], self.a, self.d)
        numbers[VALUE] = value_of_range(samples, p, numbers[OFFSET], 0, p.shape[0])


@compiled
class ColumnsOfPart(NamedTuple):
    """The columns of dense data, for a kernel that was compiled without knowing how they are stored."""

    rows: Slices
    columns: Slices
    is_by_rows: bool  # whether entries of a row lie side by side
    features: np.ndarray
    values: np.ndarray
    a: np.ndarray
    Z: np.ndarray
    products: np.ndarray

    def serve(self, what):
        """Compute the products of all columns with a, or one row of Z."""
        if what == LOOK and self.is_by_rows:
            self.products[:] = 0.0
            self.rows.add_slices(0, self.a, DenseVector(self.products))
        elif what == LOOK:
            self.columns.dot_slices(0, self.a, self.products)
        else:
            j, value = self.features[what], self.values[what]
            for i in range(self.Z.shape[1]):
                self.Z[what, i] = value * self.columns.entry(j, i)


class Others(NamedTuple):
    """Which other atoms may join, and until when.

    Attributes
    ----------
    sizes : array of shape (n_features,)
        The largest coefficient of each feature in the ball.
    room : int
        The largest number of atoms.
    gap : float
        The gap over all features.
    goal : float
        Where it should fall to.
    most_looks : int
        After how many passes over all columns it ends.
    """

    sizes: np.ndarray
    room: int
    gap: float
    goal: float
    most_looks: int


class DensePart:
    """F on the atoms v_k, whose predictions X v_k are the rows of Z.

    Parameters
    ----------
    rows, columns : Slices
        Dense data.
    is_by_rows : bool
        Whether entries of a row lie side by side.
    samples : Samples
    l2 : float
        The penalty l2 ||w||^2 / 2 is a part of F.
    offset : float or None
        A guess of the intercept; None: there is none.
    """

    def __init__(
        self, rows: Slices, columns: Slices, is_by_rows: bool, samples: Samples, l2: float, offset: float | None
    ) -> None:
        self.rows, self.columns, self.is_by_rows = rows, columns, is_by_rows
        self.samples, self.l2, self.offset = samples, l2, offset

    def minimise(
        self, atoms: AtomStack, x: np.ndarray, accuracy: float, max_rounds: int, others: Others | None = None
    ) -> tuple[AtomStack, np.ndarray, int, bool]:
        """Go from the weights x of some atoms close to the minimum of F over them, or over them and ``others``.

        The gap over the atoms falls to ``accuracy``, in at most ``max_rounds`` rounds between two looks at all columns.

        Returns
        -------
        atoms : AtomStack
            The first ones are those that had weight at x.
        z : array of shape (n_atoms,)
            Their weights, with sum |z| <= 1.
        n_looks : int
            Passes over all columns that it took.
        is_close : bool
            Whether the gap over the atoms fell as far as it should.
        """
        k, n = len(atoms), self.samples.y.shape[0]
        sizes, room, gap, goal, most_looks = (np.empty(0), k, 0.0, 0.0, 0) if others is None else others
        Z, ridge, slopes = np.empty((room, n)), np.empty(room), np.empty(sizes.size)
        features, values, z = np.empty(room, np.int64), np.empty(room), np.zeros(room)
        features[:k], values[:k], z[:k] = atoms.index, atoms.value, x
        p, a, d, numbers, counts = np.empty(n), np.empty(n), np.empty(n), np.zeros(2), np.zeros(3, np.int64)
        has_intercept = self.offset is not None
        numbers[OFFSET] = self.offset if has_intercept else 0.0
        counts[ATOMS], counts[FIRST] = k, np.flatnonzero(x).max(initial=-1) + 1
        loss = Bound(LossOfPart(self.samples, has_intercept, p, a, d, numbers))
        products = Bound(ColumnsOfPart(self.rows, self.columns, self.is_by_rows, features, values, a, Z, slopes))
        search = NewtonInBall(Z, ridge, has_intercept, loss.errand, p, a, d, numbers, np.empty(room), empty_model(room))
        columns = Columns(products.errand, features, values, sizes, slopes, Z, ridge, self.l2, counts)
        is_close = newton_on_columns(search, columns, z, gap, goal, accuracy, max_rounds, most_looks)
        k = int(counts[ATOMS])
        return AtomStack(features[:k], values[:k]), z[:k], int(counts[LOOKS]), bool(is_close)
