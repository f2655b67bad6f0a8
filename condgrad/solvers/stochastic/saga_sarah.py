"""SAGA-SARAH Frank-Wolfe: differences of gradients, corrected by a table instead of full gradients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from condgrad.compiled import compiled
from condgrad.linalg.vectors import Vector
from condgrad.problems.base import Feature
from condgrad.problems.finite_sum import Estimate, Table, Trail
from condgrad.solvers.step_sizes import EstimateRule, OpenLoop
from condgrad.solvers.stochastic._table import table_solver


@compiled
class SagaSARAHArrays(NamedTuple):
    """w, the previous iterate, the table alpha, y = X' alpha, r, the new derivatives of a batch, and l = b / (2n)."""

    w: Vector
    previous: Trail
    alpha: Table
    y: Vector
    r: Estimate
    new: np.ndarray
    l: float  # noqa: E741 (the letter of the box)


@table_solver
class SagaSARAH(NamedTuple):
    r"""SAGA-SARAH Frank-Wolfe, Beznosikov, Dobre & Gidel (2023): never a full gradient.

    With a table of derivatives alpha, its gradient y = X' alpha, and l = b / (2n),

        r <- (1 - l) r + f_B(w_t) - f_B(w_{t-1}) + l (f_B(w_{t-1}) - y_B + y),

    where f_B and y_B are the means over the batch of the gradients and of the table's entries. Then the entries of the
    batch become the derivatives at w_t.

    A step costs the stored entries of the batch four times and O(d): y is added to all of r. (The difference z = r - y
    only shrinks and takes rows, so that r = z + y could be kept in O(nnz of the batch); but the shrinking changes the
    order of all entries of z + y, so that no tree finds the largest one.)

    Samples on disk come in chunks, and an epoch reads each chunk once: there is no full gradient that would read all.

    What is ours, because the box that we follow leaves it open: the default batch size, the open loop, and
    l = max(b / (2n), 1 / t) for step t = 1, 2, ...: r starts as the mean of the first batches and not as zero, which it
    would forget only after 2n / b steps.

    Parameters
    ----------
    batch_size : int, or a float in (0, 1)
    step_size : OpenLoop (default), LogAdaptive, ShortStep or NonConvex
    sampling : str
    warm : bool
        Whether alpha starts as the derivatives at w0 and r as the gradient there (one full pass); else both are zero.

    References
    ----------
    Beznosikov, Dobre & Gidel (2023), SAGA SARAH Frank-Wolfe.

    Examples
    --------
    >>> import condgrad as cg
    >>> problem = cg.Problem([[1.0], [1.0]], [1.0, 3.0], cg.losses.Squared(), cg.constraints.L1Ball(5.0))
    >>> result = cg.minimize(problem, cg.solvers.SagaSARAH(), max_epochs=900, tol=1e-2, random_state=0)
    >>> bool(abs(result.w[0] - 2.0) < 0.1)
    True
    """

    batch_size: int | float = 1
    step_size: EstimateRule = OpenLoop()
    sampling: str = "batch"
    warm: bool = False

    requires = frozenset({Feature.LOOK, Feature.CHUNKS, Feature.VERTICES})
    gradients_per_sample = 2

    def start(self, space):
        """Return w0 with alpha = 0, y = 0 and r = 0, or the exact derivatives at w0."""
        vectors = (
            space.iterate(),
            space.trail(),
            space.table(),
            space.vector(),
            space.estimate(shrinks=True, is_whole=True),
        )
        arrays = SagaSARAHArrays(*vectors, np.zeros(space.batch_size), space.batch_size / (2.0 * space.n))
        if self.warm:
            self.warmed(space, arrays)
            arrays.r.set_to(arrays.y.to_array(), space.w0)
        return arrays

    def resynchronise(self, space, arrays):
        """Set y to X' alpha; r has a history of its own, and <r, w> is computed anew."""
        arrays.y.set_to(space.transpose_dot(arrays.alpha.values))
        arrays.r.synchronise(arrays.w.to_array())

    def go_on_from(self, space, arrays, alpha, r):
        """Set the table to alpha, and both r and y to the estimate, as r is drawn towards y."""
        arrays.alpha.values[:] = alpha
        arrays.y.set_to(r)
        arrays.r.set_to(r, space.w0)

    def step(self, F, arrays, rows, t):
        """Update r and the table by the batch, and move."""
        l = max(arrays.l, 1.0 / (t + 1.0))  # noqa: E741 (the letter of the box)
        arrays.r.shrink(1.0 - l)
        arrays.r.add_array(l, arrays.y.values, arrays.w)  # (1 - l) r + l y
        for q in range(rows.size()):
            i = rows.at(q)
            p = F.predict(i, arrays.w)
            arrays.new[q] = F.derivative(i, p)
            before = F.derivative(i, F.predict(i, arrays.previous.w))
            # f_B(w_t) - f_B(w_{t-1}) + l (f_B(w_{t-1}) - y_B)
            change = arrays.new[q] - before + l * (before - arrays.alpha.at(i))
            arrays.r.add_row(F, i, rows.share(i) * change, p)
        for q in range(rows.size()):
            i = rows.at(q)
            F.X.add_slice(i, arrays.alpha.replace(i, arrays.new[q]), arrays.y)  # alpha_i <- f_i'(x_i'w), y = X' alpha
        s = arrays.r.best_vertex(F)  # s = LMO(r)
        gamma = self.step_size.at(t + 1, arrays.r)  # counted from 1, as sfw does
        arrays.previous.follow(s, gamma)
        arrays.r.move(arrays.w, s, gamma)  # w <- w + gamma (s - w)
