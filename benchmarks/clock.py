"""A clock of processor time for the traces of runs: other programs on the machine do not change it."""

from __future__ import annotations

import importlib
import time

from condgrad.compiled import Stopwatch


class ProcessorStopwatch(Stopwatch):
    """A stopwatch of processor seconds; kernels are compiled before the race, so there is nothing to exclude."""

    def __enter__(self) -> ProcessorStopwatch:
        super().__enter__()
        self._processor = time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        ended = time.process_time()
        super().__exit__(*error)
        self.seconds = max(0.0, ended - self._processor)


def use_processor_time() -> None:
    """Let ``minimize`` measure its steps in processor time."""
    # The loop has one clock, which users need not choose; only a race on a shared machine wants another.
    importlib.import_module("condgrad.run.loop").Stopwatch = ProcessorStopwatch  # type: ignore[attr-defined]
