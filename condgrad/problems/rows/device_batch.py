"""DeviceBatch: passes at many points at once over the same rows on a device, each with its own weights and targets.

The radii of a path, the folds of a cross-validation and the classes of one against the rest share X. One pass at k
points is two products of X with a matrix of k columns, which cost far less than k passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from condgrad.linalg.device.base import N_SUMS, DeviceArray, text_of
from condgrad.linalg.device.dense import DenseOnDevice
from condgrad.linalg.spread import spread_rows
from condgrad.problems.rows.device import DeviceRows
from condgrad.problems.rows.device_samples import totals_of
from condgrad.problems.rows.findings import Joined, Pass

_TILE = 2**30  # bytes of the arrays of a tile of rows
_THREADS = 64


class Curvature(NamedTuple):
    """The curvature of F at a point: of the features, mixed with the intercept, and of the intercept."""

    G: np.ndarray
    u: np.ndarray
    total: float


class DeviceBatch:
    """Rows with the same dense data, loss and offsets, and different weights and targets.

    Parameters
    ----------
    rows : sequence of DeviceRows
        They share the matrix; row k of the weights is that of rows[k].
    """

    def __init__(self, rows: Sequence[DeviceRows]) -> None:
        first = rows[0]
        assert isinstance(first.matrix, DenseOnDevice)
        self.device, self.matrix, self.losses = first.device, first.matrix, first.samples.losses
        self.n_samples, self.n_features = first.n_samples, first.n_features
        losses, xp = [each.samples.losses for each in rows], self.device.xp
        self.V = xp.stack([xp.full(self.n_samples, each.v0) if each.v is None else each.v for each in losses])
        kinds = {id(each.y): each.y for each in losses}  # folds have the same targets, which are stored once
        self.Y = xp.stack(list(kinds.values()))
        self.target_of = np.array([list(kinds).index(id(each.y)) for each in losses])

    def passes(self, W: np.ndarray, b: np.ndarray, owner: np.ndarray) -> list[Pass]:
        """Return the results of passes at the columns of W with intercepts b, over the rows of their owners."""
        xp, k = self.device.xp, W.shape[1]
        there, intercepts, owners = self._sent(W, b, owner)
        sums, R = np.zeros((k, N_SUMS)), self.device.zeros(k, self.n_features)
        height = max(1, _TILE // (8 * (self.n_features + k)))
        for top in range(0, self.n_samples, height):
            X = self.matrix.chosen(slice(top, min(top + height, self.n_samples)), None)
            P = xp.ascontiguousarray(X @ there)
            part = slice(top, top + height)
            sums += self._losses(P, intercepts, owners, _Numbers(self.Y, self.V, self._offset(part), top))
            R += P.T @ X
        gradients, none = self.device.to_host(R), Joined((np.empty(0),))
        return [Pass(totals_of(sums[j]), gradients[j], none) for j in range(k)]

    def curvatures(
        self, W: np.ndarray, b: np.ndarray, owner: np.ndarray, features: Sequence[np.ndarray], every: int
    ) -> list[Curvature]:
        """Return the curvatures of F at the columns of W on chosen features, from one sample of every ``every``."""
        xp = self.device.xp
        there, intercepts, owners = self._sent(W, b, owner)
        chosen = self.device.to_device(spread_rows(self.n_samples, every))
        X = self.matrix.chosen(chosen, None)
        D = xp.ascontiguousarray(X @ there)
        Y, V = (xp.ascontiguousarray(each[:, chosen]) for each in (self.Y, self.V))
        self._losses(D, intercepts, owners, _Numbers(Y, V, self._offset(chosen), 0), wants_curvature=True)
        shares = self.device.to_host(V.sum(axis=1))  # of the weight of all samples
        D = D.T.copy()
        found = []
        for j, used in enumerate(features):
            Z = X if used.size == self.n_features else X[:, self.device.to_device(used)]
            c = D[j] / float(shares[owner[j]])
            weighted = c[:, None] * Z
            G, u = self.device.to_host(weighted.T @ Z), self.device.to_host(weighted.sum(axis=0))
            found.append(Curvature(G, u, float(c.sum())))
        return found

    def _sent(self, W: np.ndarray, b: np.ndarray, owner: np.ndarray) -> tuple[DeviceArray, DeviceArray, _Owners]:
        send = self.device.to_device
        owners = _Owners(*(send(each.astype(np.int32)) for each in (self.target_of[owner], owner)))
        return send(np.ascontiguousarray(W)), send(b.astype(np.float64)), owners

    def _offset(self, part: DeviceArray | slice) -> DeviceArray | None:
        return None if self.losses.o is None else self.losses.o[part]

    def _losses(
        self, P: DeviceArray, b: DeviceArray, owners: _Owners, numbers: _Numbers, *, wants_curvature: bool = False
    ) -> np.ndarray:
        """Replace predictions by derivatives, or curvatures, and return the sums over these samples."""
        (m, k), (Y, V, o, first) = P.shape, numbers
        text = text_of("batch.cu", self.losses, WANTS_CURVATURE=int(wants_curvature))
        n_columns = -(-k // _THREADS)
        n_strips = max(1, min(m, 2 * self.device.n_blocks(text, "batch_losses", _THREADS, 0) // n_columns, 65535))
        out = self.device.empty(n_strips, k, N_SUMS)
        args = (P, np.int64(m), np.int32(k), b, Y, V, np.int64(V.shape[1]), np.int64(first), *owners)
        args = (*args, o, self.losses.theta, np.int64(-(-m // n_strips)), out)
        self.device.launch(text, "batch_losses", (n_columns, n_strips), _THREADS, 0, args)
        return self.device.to_host(out.sum(axis=0))


class _Owners(NamedTuple):
    """The rows of the targets and of the weights that each model uses, on the device."""

    target: DeviceArray
    weight: DeviceArray


class _Numbers(NamedTuple):
    """The targets and weights of all samples from the ``first`` on, and the offsets of those that are used now."""

    Y: DeviceArray
    V: DeviceArray
    o: DeviceArray | None
    first: int
