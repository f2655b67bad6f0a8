"""Dataset: the return type of loaders and simulators."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Dataset(NamedTuple):
    """A data matrix, its targets and its name; ``w`` holds the true coefficients behind y, or None if unknown."""

    X: Any
    y: np.ndarray
    name: str
    w: np.ndarray | None = None

    def __repr__(self) -> str:
        kind = getattr(self.X, "format", "dense")
        return f"Dataset({self.name}: {self.X.shape[0]} samples, {self.X.shape[1]} features, {kind})"
