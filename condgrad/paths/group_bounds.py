"""GroupBounds: proves which groups have small dual norms while few of them are computed.

The correlations of a group are <Z_g, R> for its features Z_g and the residual R. From one residual to the next R', with
beta = <R, R'> / ||R||^2 (or 0 where that is negative) and E = R' - beta R,

    dual(<Z_g, R'>) <= beta dual(<Z_g, R>) + reach_g ||E||,

because the dual norm of a group is at most the Euclidean norm; reach_g is the largest singular value of Z_g. So an
upper bound of every dual norm is one affine map B key_g + D reach_g of a stored number, and only groups whose bound
exceeds a threshold are computed.
"""

from __future__ import annotations

import math

import numpy as np

from condgrad.linalg.rounding import gamma

_SUMS = 8  # operations of a correlation beside its products
_SMALLEST = 1e-9  # factor of the keys below which they are multiplied by it


class GroupBounds:
    """The bounds of all groups at a residual that moves; groups whose dual norms are known elsewhere are left out.

    Parameters
    ----------
    weight : array
        The weights of the entries of residuals, of which inner products are made.
    reach, spread : arrays
        The largest singular value of the features of each group, or a bound of it, and their norm as a matrix.
    R : array
        The first residual.
    of_dual : float
        The relative error of a dual norm that is computed from correlations.
    """

    def __init__(
        self, weight: np.ndarray, reach: np.ndarray, spread: np.ndarray, R: np.ndarray, of_dual: float
    ) -> None:
        self.weight, self.reach, self.R = weight, reach, R
        self._key, self._B, self._D = np.full(reach.size, np.inf), 1.0, 0.0
        ratio = float((spread / np.where(reach > 0.0, reach, 1.0)).max(initial=1.0))  # rounding has no direction
        self._rounding = (2.0 * gamma(R.size + _SUMS) + of_dual) * ratio
        self._n_scanned, self._n_scans = 0, 0

    def n_scanned(self) -> int:
        """Return how many features were looked at in all."""
        return self._n_scanned

    def n_scans(self) -> int:
        """Return the number of scans."""
        return self._n_scans

    def count(self, n_features: int) -> None:
        """Count a scan of so many features."""
        self._n_scanned += n_features
        self._n_scans += 1

    def move(self, R: np.ndarray) -> None:
        """Go to the residual R."""
        old, new = self.weight * self.R, self.weight * R
        squared = float(old @ self.R)
        beta = max(float(old @ R), 0.0) / squared if squared > 0.0 else 0.0
        change = R - beta * self.R
        moved = math.sqrt(float((self.weight * change) @ change))
        self._D = beta * self._D + moved + self._rounding * math.sqrt(float(new @ R))
        self.R, self._B = R, self._B * beta
        if self._B < _SMALLEST:
            finite = np.isfinite(self._key)
            self._key[finite] *= self._B
            self._B = 1.0

    def above(self, threshold: float) -> np.ndarray:
        """Return the groups whose bound exceeds the threshold."""
        return np.flatnonzero(self._B * self._key + self._D * self.reach > threshold)

    def set_known(self, groups: np.ndarray, sizes: np.ndarray) -> None:
        """Note the dual norms of these groups at the present residual."""
        self._key[groups] = (sizes - self._D * self.reach[groups]) / self._B

    def leave_out(self, groups: np.ndarray) -> None:
        """Leave groups out until their dual norms are noted again."""
        self._key[groups] = -np.inf
