"""GroupSet: the groups that the next point may use, the coefficients of their features, and their curvature."""

from __future__ import annotations

import numpy as np

from condgrad.constraints._group_form import GroupForm
from condgrad.constraints._groups import features_of
from condgrad.linalg.group_newton import move
from condgrad.linalg.group_norm import dual_norms, norm_of
from condgrad.paths.smooth_point import foresee


class GroupSet:
    """A working set of whole groups; the features of a group lie side by side.

    Attributes
    ----------
    groups, offsets : arrays
        The groups, and where the features of each begin.
    features, x, correlation : arrays
        The features, their coefficients, and their correlations there.
    G : array
        The curvature on them.
    """

    def __init__(self, form: GroupForm) -> None:
        self.form = form
        self.groups, self.offsets = np.empty(0, np.int64), np.zeros(1, np.int64)
        self.features, self.x, self.correlation = np.empty(0, np.int64), np.empty(0), np.empty(0)
        self.G = np.empty((0, 0))
        self._before, self._correlation_before = np.empty(0), np.empty(0)

    @property
    def size(self) -> int:
        """The number of features."""
        return self.features.size

    def admit(self, new: np.ndarray) -> int:
        """Append groups, with coefficients of zero and rows of G to be filled; return how many features there were."""
        old, sizes = self.size, np.diff(self.form.offsets)[new]
        more = np.zeros(int(sizes.sum()))
        self.groups = np.concatenate([self.groups, new])
        self.offsets = np.concatenate([self.offsets, old + np.cumsum(sizes)])
        self.features = np.concatenate([self.features, features_of(new, self.form.members, self.form.offsets)])
        self.x, self._before = np.concatenate([self.x, more]), np.concatenate([self._before, more])
        self._correlation_before = np.concatenate([self._correlation_before, np.full(more.size, np.nan)])
        G = np.empty((self.size, self.size))
        G[:old, :old] = self.G
        self.G = G
        return old

    def keep(self, is_kept: np.ndarray) -> np.ndarray:
        """Keep some of the groups; the others have coefficients of zero. Return the places of features that stay."""
        sizes = np.diff(self.offsets)
        places = np.flatnonzero(np.repeat(is_kept, sizes))
        self.groups = self.groups[is_kept]
        self.offsets = np.concatenate([[0], np.cumsum(sizes[is_kept])])
        self.features, self.x, self.correlation = self.features[places], self.x[places], self.correlation[places]
        self._before, self._correlation_before = self._before[places], self._correlation_before[places]
        self.G = self.G[np.ix_(places, places)]
        return places

    def has_coefficients(self) -> np.ndarray:
        """Return for each group whether one of its coefficients is not zero."""
        return np.logical_or.reduceat(self.x != 0.0, self.offsets[:-1])

    def norm(self, x: np.ndarray) -> float:
        """Return the norm of coefficients x."""
        return float(norm_of(self.form.norm, self.offsets, x))

    def dual_norms(self) -> np.ndarray:
        """Return the dual norms of the correlations of the groups."""
        return dual_norms(self.form.norm, self.offsets, self.correlation)

    def ahead(self, ratio: float) -> np.ndarray:
        """Return where the way from the last solution to x leads, if it goes on for ``ratio`` times its length.

        A group that would pass zero stays there.
        """
        x, (places,) = self.x.copy(), self.x.nonzero()
        move(self.form.norm, self.offsets, x, places, ratio * (x - self._before)[places])
        return x

    def foresee(self, weight: float) -> np.ndarray:
        """Return the correlations at x, plus ``weight`` times what the model missed on the way from the last solution.

        Then x is the last solution.
        """
        out = np.empty(self.size)
        foresee(self.G, self.x, self.correlation, self._before, self._correlation_before, weight, 0.0, out, self.size)
        return out
