"""Data: what a file or a folder of samples holds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Data(NamedTuple):
    """Samples, their targets, the names of the features and weights; None where there are no such things."""

    X: Any
    y: np.ndarray | None
    feature_names: tuple[str, ...] | None
    name: str
    weight: np.ndarray | None = None

    def __str__(self) -> str:
        kind = getattr(self.X, "format", "dense")
        return f"{self.name}: {self.X.shape[0]} samples, {self.X.shape[1]} features, {kind}"
