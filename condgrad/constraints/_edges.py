"""Edges of graphs whose nodes are numbered from 0."""

from __future__ import annotations

import numpy as np

from condgrad.constraints._parameters import to_array


def as_edges(owner: str, edges: object) -> np.ndarray:
    """Return ``edges`` as an int64 array of shape (n_edges, 2): one pair of different nodes in each row."""
    array = to_array(owner, "edges", edges)
    if array.ndim != 2 or array.shape[0] == 0 or array.shape[1] != 2:
        raise ValueError(f"edges of {owner} must be a list of pairs of nodes; got an array of shape {array.shape}.")
    if array.dtype.kind not in "iu":
        raise TypeError(f"edges of {owner} must hold the numbers of nodes; got an array of type {array.dtype}.")
    if array.min() < 0:
        raise ValueError(f"nodes in the edges of {owner} must be counted from 0; got {array.min()}.")
    loops = np.flatnonzero(array[:, 0] == array[:, 1])
    if loops.size:
        raise ValueError(
            f"edges of {owner} must join different nodes; got edge {loops[0]} from node {array[loops[0], 0]} to itself."
        )
    return np.array(array, dtype=np.int64)
