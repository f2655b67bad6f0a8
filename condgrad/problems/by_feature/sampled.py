"""The gradient on a sample of the features, for an oracle that is restricted to this sample."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from condgrad.compiled import compiled
from condgrad.constraints._blocks import Blocks
from condgrad.constraints._protocol import ConstraintSet
from condgrad.linalg.slices import Slices
from condgrad.linalg.vectors import DenseVector

# The places of the numbers in the ``scalars`` of a PartialGradient; a checkpoint stores them in this order.
_ALONG, _TOWARDS, _GAP, _CALLS = range(4)  # <r, w>, <r, s>, the estimate of the gap, the number of oracle calls


class Chosen(Protocol):
    """A sample of the blocks."""

    def size(self) -> int:
        """Return the number of blocks in the sample."""

    def at(self, q: int) -> int:
        """Return the block at place ``q``."""


@compiled
class ColumnView(NamedTuple):
    """The columns of X, the set, and the blocks of features that contain the supports of its vertices."""

    X: Slices
    constraint: ConstraintSet
    blocks: Blocks


@compiled
class PartialGradient(NamedTuple):
    """The entries of the gradient that were computed last.

    The vertex s chosen last is the best of a sample, so <r, w - s> is at most the gap. The estimate of the gap is the
    largest of the recent <r, w - s>, which fade by e^(-1/2) while as many atoms are drawn as the set has. It is no
    certificate.
    """

    values: np.ndarray
    scalars: np.ndarray

    def on(self, blocks, chosen):
        """Return the view for the oracle: the entries of the ``chosen`` blocks only."""
        return GradientSample(self.values, blocks, chosen)

    def note(self, along, s, share):
        """Record <r, w> = ``along`` and <r, s>, and return <r, s>; the sample was a ``share`` of all atoms."""
        self.scalars[_ALONG] = along
        self.scalars[_TOWARDS] = s.inner(DenseVector(self.values))
        faded = self.scalars[_GAP] * (1.0 - 0.5 * share) if self.scalars[_CALLS] > 0.0 else 0.0
        self.scalars[_GAP] = max(self.sampled_gap(), faded)
        self.scalars[_CALLS] += 1.0
        return self.scalars[_TOWARDS]

    def sampled_gap(self):
        """Return <r, w - s> for the vertex s chosen last."""
        return self.scalars[_ALONG] - self.scalars[_TOWARDS]

    def smoothed_gap(self):
        """Return the estimate of the gap; inf before the first step."""
        return self.scalars[_GAP]

    def oracle_calls(self):
        """Return the number of oracle calls."""
        return self.scalars[_CALLS]


def partial_gradient(n_features: int) -> PartialGradient:
    """Return the gradient of ``n_features`` features of which no entry is known yet."""
    return PartialGradient(np.zeros(n_features), np.array([0.0, 0.0, np.inf, 0.0]))


@compiled
class GradientSample(NamedTuple):
    """The entries of a vector in the chosen blocks, with the methods that oracles call; the first feature wins ties."""

    values: np.ndarray
    blocks: Blocks
    chosen: Chosen

    def size(self):
        """Return the number of entries of the whole vector."""
        return self.values.shape[0]

    def at(self, j):
        """Return entry ``j``, of a chosen block."""
        return self.values[j]

    def set_to_products(self, X, v):
        """Set each chosen entry j to <column j of X, v> for a vector ``v``."""
        for q in range(self.chosen.size()):
            g = self.chosen.at(q)
            for k in range(self.blocks.first(g), self.blocks.first(g + 1)):
                j = self.blocks.member(k)
                self.values[j] = v.dot_slice(X, j)

    def set_to(self, v):
        """Set each chosen entry j to v_j for a vector ``v``."""
        for q in range(self.chosen.size()):
            g = self.chosen.at(q)
            for k in range(self.blocks.first(g), self.blocks.first(g + 1)):
                j = self.blocks.member(k)
                self.values[j] = v.at(j)

    def add(self, c, v):
        """Add c v_j to each chosen entry j for an array ``v``."""
        for q in range(self.chosen.size()):
            g = self.chosen.at(q)
            for k in range(self.blocks.first(g), self.blocks.first(g + 1)):
                j = self.blocks.member(k)
                self.values[j] += c * v[j]

    def argmax_abs(self):
        """Return the chosen feature with the largest absolute value."""
        best, where_best = -1.0, 0
        for q in range(self.chosen.size()):
            j = self.chosen.at(q)
            size = abs(self.values[j])
            if size > best or (size == best and j < where_best):
                best, where_best = size, j
        return where_best

    def argmin(self):
        """Return the chosen feature with the smallest value."""
        best, where_best = np.inf, self.chosen.at(0)
        for q in range(self.chosen.size()):
            j = self.chosen.at(q)
            if self.values[j] < best or (self.values[j] == best and j < where_best):
                best, where_best = self.values[j], j
        return where_best

    def argmax_weighted(self, weights):
        """Return the chosen feature with the largest ``|v_j| / weights_j``."""
        scale = self.largest()
        best, where_best = -1.0, 0
        for q in range(self.chosen.size()):
            j = self.chosen.at(q)
            size = abs(self.values[j]) / scale / weights[j]
            if size > best or (size == best and j < where_best):
                best, where_best = size, j
        return where_best

    def best_group(self, members, offsets):
        """Return the chosen group with the largest sum of squares."""
        scale = self.largest()
        best, where_best = -1.0, 0
        for q in range(self.chosen.size()):
            g = self.chosen.at(q)
            total = 0.0
            for k in range(offsets[g], offsets[g + 1]):
                entry = self.values[members[k]] / scale
                total += entry * entry
            if total > best or (total == best and g < where_best):
                best, where_best = total, g
        return where_best

    def largest(self):
        """Return the largest absolute value, or 1 for zeros: division by it neither overflows nor underflows."""
        largest = 0.0
        for q in range(self.chosen.size()):
            g = self.chosen.at(q)
            for k in range(self.blocks.first(g), self.blocks.first(g + 1)):
                largest = max(largest, abs(self.values[self.blocks.member(k)]))
        return largest if largest > 0.0 else 1.0
