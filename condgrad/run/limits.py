"""Limits: when a run ends, and when it records."""

from __future__ import annotations

import numpy as np

from condgrad.linalg import convert
from condgrad.linalg.interrupts import as_seconds


class Limits:
    """The limits and the recording interval of a run, checked here."""

    def __init__(
        self,
        tol: float,
        relative_tol: float,
        max_epochs: float,
        max_steps: int | None,
        max_time: float | None,
        evaluate_every: float | None,
    ) -> None:
        self.tol = convert.as_number(tol, "tol", low=0.0, what="a number of at least 0")
        self.relative_tol = convert.as_number(relative_tol, "relative_tol", low=0.0, what="a number of at least 0")
        self.max_epochs = convert.as_number(max_epochs, "max_epochs", low=0.0, what="a number of at least 0")
        self.max_steps = np.inf
        if max_steps is not None:
            what = "a number of at least 0, or None"
            self.max_steps = convert.as_number(max_steps, "max_steps", low=0.0, what=what)
        self.max_time = as_seconds(max_time)
        self.evaluate_every = None
        if evaluate_every is not None:
            what = "a positive number of epochs"
            self.evaluate_every = convert.as_number(evaluate_every, "evaluate_every", low=1e-12, what=what)

    def next_record(self, epoch: float, growth: float) -> float:
        """Return the epoch of the next record after a record at ``epoch``; by default epochs grow by this part."""
        return epoch + (max(1.0, growth * epoch) if self.evaluate_every is None else self.evaluate_every)
