"""Checkpoints: save a run from time to time, and resume it bit for bit after any interruption, even kill -9.

A checkpoint is a sealed ``.npz`` file: arrays, and a JSON header with numbers. Loading it never executes code.
"""

from __future__ import annotations

import os
import time
import warnings
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.linalg.saved import refusing, shown
from condgrad.problems.base import BaseProblem
from condgrad.run.sealed_file import pack, unpack, write_file

_KIND, _VERSION = "checkpoint", 3


class Checkpoint:
    """The file and the interval of saves of a run.

    Parameters
    ----------
    path : str or Path
        The file. If it exists, the run resumes from it; its problem and its solver must be the same.
    every : float
        Seconds between two saves. The end of a run, including an end by Ctrl-C, is saved as well.

    Examples
    --------
    >>> Checkpoint("run.npz", every=60)
    Checkpoint('run.npz', every=60.0)
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 30.0) -> None:
        self.path = Path(path)
        self.every = float(every)
        if not self.every >= 0.0:
            raise ValueError(f"every of Checkpoint must be a number of seconds; got {every!r}.")
        if not self.path.parent.is_dir():
            raise ValueError(f"the folder of the checkpoint {str(self.path)!r} does not exist; create it first.")
        self._last_save = time.monotonic()
        self._key: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r}, every={self.every})"

    def open(self, problem: BaseProblem, solver: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Return the numbers and arrays of the saved run, or None if there is no file yet."""
        self._key = {"problem": problem.fingerprint(), "solver": solver}
        if not self.path.exists():
            return None
        header, arrays = unpack(self.path, (_KIND, _VERSION))
        with self.refusing():
            made_by, numbers = header["solver"], header["numbers"]
        if header.get("problem") != self._key["problem"]:
            raise ValueError(
                f"the checkpoint {str(self.path)!r} belongs to another problem (data, loss, set or weights differ); "
                "use another file name, or delete it."
            )
        if made_by != solver:
            raise ValueError(
                f"the checkpoint {str(self.path)!r} was made by {shown(made_by)}, not by {solver}; "
                "use another file name, or delete it."
            )
        return numbers, arrays

    def refusing(self) -> AbstractContextManager[None]:
        """Return a context in which content that no run has written raises one sentence."""
        return refusing(self.path, _KIND, "; delete it, or use another file name")

    def is_due(self) -> bool:
        """Return whether it is time to save."""
        return time.monotonic() - self._last_save >= self.every

    def save(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Save a run; if saving is interrupted, the file contains the last complete save.

        If the file cannot be written (a full disk, a deleted folder), a warning is issued and the run continues: its
        result is worth more than its checkpoint. The next save is tried when it is due.
        """
        try:
            write_file(self.path, pack(_KIND, _VERSION, {**self._key, "numbers": numbers}, arrays))
        except OSError as error:
            kept = "the file contains the last save" if self.path.exists() else "there is no file to resume from"
            warnings.warn(
                f"the checkpoint {str(self.path)!r} could not be written ({error.strerror or error}): the run "
                f"continues, and {kept}.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._last_save = time.monotonic()
