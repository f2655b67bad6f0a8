"""WorkingSet: the features that the next point may use, their coefficients, and the residual there."""

from __future__ import annotations

import functools

import numpy as np

from condgrad.compiled import kernel
from condgrad.linalg import threads
from condgrad.linalg.vectors import DenseVector
from condgrad.paths.columns import Columns, pack
from condgrad.paths.least_squares import Quadratic, Sums


class WorkingSet:
    """What the engine and the solver of its working set share; neither of the two knows the other's inside.

    The engine admits features and drops them. A solver changes the coefficients, and may choose the order of the
    features. Whoever has set ``x`` makes the residual follow it by :meth:`renew`.

    Attributes
    ----------
    objective : Quadratic
        What is minimised: it alone knows the weights of the samples, the targets and the intercept.
    features : array
        The atoms, in the order of ``x``.
    x : array
        Their coefficients.
    residual, sums : Residual, Sums
        Those at ``x``. The memory of the residual is overwritten from one point to the next.
    """

    def __init__(self, objective: Quadratic) -> None:
        self.objective = objective
        self.features, self.x = np.empty(0, np.int64), np.empty(0)
        self.residual, self.sums = objective.residual()
        self._has_atom = np.zeros(objective.columns.norm.size, np.bool_)
        self._is_packed = False
        self._atoms: Atoms | None = None

    @property
    def atoms(self) -> Atoms:
        """The columns of the features, side by side in memory once the features have been arranged."""
        if self._atoms is None:
            chosen = self.objective.columns.chosen(self.features)
            self._atoms = Atoms(*(pack(*chosen) if self._is_packed else chosen))
        return self._atoms

    @property
    def n_used(self) -> int:
        """The number of coefficients that are not zero."""
        return int(np.count_nonzero(self.x))

    def lacks(self, features: np.ndarray) -> np.ndarray:
        """Return for each of the features whether it is missing here."""
        return ~self._has_atom[features]

    def admit(self, new: np.ndarray) -> None:
        """Append features, with coefficients of zero."""
        self.features = np.concatenate([self.features, new])
        self.x = np.concatenate([self.x, np.zeros(new.size)])
        self._has_atom[new] = True
        self._atoms = None

    def keep(self, places: np.ndarray) -> None:
        """Keep the atoms at these places alone; the others have coefficients of zero."""
        self._has_atom[self.features] = False
        self.features, self.x = self.features[places], self.x[places]
        self._has_atom[self.features] = True
        self._atoms = None

    def arrange(self, order: np.ndarray) -> None:
        """Put the atoms in this order, and from now on their columns side by side in memory."""
        self.features, self.x = self.features[order], self.x[order]
        self._is_packed, self._atoms = True, None

    def renew(self) -> Sums:
        """Compute the residual at x anew; return its sums."""
        self.sums = self.objective.renew(self.atoms.predict(self.x), self.x, self.residual)
        return self.sums

    def correlate(self, out: np.ndarray) -> float:
        """Fill in the correlations of the atoms with the residual, l2 included; return the largest size."""
        return self.atoms.correlate(self.residual.a, self.sums.mu, self.x, self.objective.l2, out)

    def correlations_of(self, features: np.ndarray) -> np.ndarray:
        """Return the correlations of other features with the residual."""
        out = np.empty(features.size)
        zeros = np.zeros(features.size)
        Atoms(*self.objective.columns.chosen(features)).correlate(self.residual.a, self.sums.mu, zeros, 0.0, out)
        return out


class Atoms:
    """The columns of chosen features: products with all of them, on all cores where they are large."""

    def __init__(self, columns: Columns, features: np.ndarray) -> None:
        self.columns, self.features = columns, features
        offsets = _count(columns, features)
        self.n_stored = int(offsets[-1])
        borders = threads.cut(features.size, 2 * self.n_stored, offsets)
        self.borders = np.unique(borders) if len(borders) > 2 else borders  # one long column may leave a range empty
        self.is_whole = len(self.borders) == 2  # whether one thread handles them all
        self.sums = np.zeros((len(self.borders) - 1, columns.weight.size))

    def squared_norms(self) -> np.ndarray:
        """Return ||z_j||^2 of the features."""
        return self.columns.norm[self.features] ** 2

    def predict(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return sum_k x_k scale_j x_j over the features j = features_k, in ``out`` or in an array of its own.

        The next call reuses that array.
        """
        if self.is_whole:
            out = self.sums[0] if out is None else out
            predict_atoms(self.columns, self.features, x, out, 0, self.features.size)
            return out
        places = {int(start): k for k, start in enumerate(self.borders[:-1])}

        def add(start: int, stop: int) -> None:
            predict_atoms(self.columns, self.features, x, self.sums[places[start]], start, stop)

        threads.run(add, self.borders)
        out = self.sums[0] if out is None else out
        return np.add.reduce(self.sums, axis=0, out=out)

    def correlate(self, a: np.ndarray, mu: float, x: np.ndarray, l2: float, out: np.ndarray) -> float:
        """Fill in the correlations with weighted residuals ``a`` of sum ``mu``, less l2 x; return the largest size."""
        task = functools.partial(correlate_atoms, self.columns, self.features, a, mu, x, l2, out)
        return max(threads.run(task, self.borders), default=0.0)


@kernel
def _count(columns, features):
    """Return where the stored entries of each feature would begin if they were put together, and their number."""
    offsets = np.zeros(features.shape[0] + 1, np.int64)
    for k in range(features.shape[0]):
        offsets[k + 1] = offsets[k] + np.int64(columns.n_stored(features[k]))
    return offsets


@kernel
def predict_atoms(columns, features, x, out, start, stop):
    """Fill in the predictions of a range of atoms."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    columns.add_some(features, start, stop, x, DenseVector(out))


@kernel
def correlate_atoms(columns, features, a, mu, x, l2, out, start, stop):
    """Fill in the correlations of a range of atoms, less l2 x; return the largest size."""
    columns.correlations(features, start, stop, a, mu, out)
    largest = 0.0
    for k in range(start, stop):
        out[k] -= l2 * x[k]
        largest = max(largest, columns.size(out[k]))
    return largest
