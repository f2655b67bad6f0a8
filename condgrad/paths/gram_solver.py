"""GramSolver: a working set as a dense quadratic, solved exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad.paths.columns import extend_gram
from condgrad.paths.quadratic import GAVE_UP, Model, correlate, solve_model
from condgrad.paths.sweeps import Atoms, Fit

# Sweeps take over where there are so many times more atoms than entries in a column, at rough and at tight tolerances.
_DENSE_WORK = 20, 120
_ROUND = 5000  # entries that a round of sweeps could see in the time of its calls alone
_ROUGH_TOL = 1e-5  # relative gaps above this are rough ones
_MOST_DENSE = 800  # nonzero coefficients up to which a dense factor may serve


class GramSolver:
    """The working set as a dense quadratic, solved exactly: for supports of up to some hundred atoms."""

    is_exact = True  # whatever the tolerance, so that a point next to a penalty costs no more than the one at it

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.model = _empty_model(64)
        self.atoms = Atoms(engine.columns, engine.features)
        self.alpha = np.inf
        self.gave_up = False

    @property
    def x(self) -> np.ndarray:
        """The coefficients of the atoms."""
        return self.model.x[: self.engine.features.size]

    def minimise(self, target: float, is_penalised: bool, tol: float) -> Fit:
        """Minimise over the working set to a gap of at most ``tol``; return the sums at the solution."""
        status, _, self.alpha, _ = solve_model(
            self.model, self.engine.squared_y, is_penalised, target, tol, 1000 + 20 * self.engine.features.size
        )
        self.gave_up = status == GAVE_UP
        return self.engine.renew(self.x)

    def is_outgrown(self, tol: float) -> bool:
        """Tell whether changes of the support cost more than sweeps would, or have led nowhere."""
        n_atoms, n_used = self.model.sizes
        factor = _DENSE_WORK[0] if tol > _ROUGH_TOL else _DENSE_WORK[1]
        work = self.engine.oracle.work + _ROUND / max(1, n_atoms)  # of an atom in a round of sweeps
        is_large = n_used > _MOST_DENSE or (n_used > 100 and n_atoms > factor * work)
        return bool(is_large or self.gave_up)

    def enter(self, n_new: int) -> None:
        """Take in the last ``n_new`` features of the engine."""
        engine, n_atoms = self.engine, self.engine.features.size
        first = n_atoms - n_new
        self.atoms = Atoms(engine.columns, engine.features)
        if n_atoms > self.model.c.shape[0]:
            self.model = _copy_model(self.model, np.arange(first), 2 * n_atoms)
        extend_gram(
            engine.columns, engine.features, first, engine.l2, self.model.c, engine.y, self.model.G, engine.buffer
        )
        self.model.x[first:n_atoms] = 0.0
        self.model.is_in[first:n_atoms] = False
        self.model.sizes[0] = n_atoms
        correlate(self.model)

    def needed(self) -> np.ndarray:
        """Return the places of the atoms in the support."""
        return np.flatnonzero(self.model.is_in[: self.model.sizes[0]])

    def keep(self, needed: np.ndarray) -> None:
        """Keep these atoms alone."""
        self.atoms = Atoms(self.engine.columns, self.engine.features)
        self.model = _copy_model(self.model, needed, self.model.c.shape[0])


def _empty_model(room: int) -> Model:
    zeros = np.zeros(room)
    return Model(
        np.zeros((room, room)), zeros, zeros.copy(), zeros.copy(), np.zeros(room, np.int64), np.zeros(room, np.bool_),
        np.zeros((room, room)), np.zeros(2, np.int64),
    )  # fmt: skip


def _copy_model(model: Model, kept: np.ndarray, room: int) -> Model:
    """Return a model with the ``kept`` atoms, all of the support among them, and room for more."""
    out, k, size = _empty_model(room), kept.size, int(model.sizes[1])
    out.G[:k, :k] = model.G[np.ix_(kept, kept)]
    for name in ("c", "x", "correlation", "is_in"):
        getattr(out, name)[:k] = getattr(model, name)[kept]
    place = np.empty(model.c.shape[0], np.int64)
    place[kept] = np.arange(k)
    out.support[:size] = place[model.support[:size]]
    out.U[:size, :size] = model.U[:size, :size]
    out.sizes[:] = k, size
    return out
