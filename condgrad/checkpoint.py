"""Checkpoints: save a run now and then, and go on from it bit for bit after anything, even kill -9.

A checkpoint is an ``.npz`` file: arrays, and a JSON header with numbers. Nothing in it is ever executed on load.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.atomic_file import write_file

_FORMAT = "condgrad checkpoint, version 1"


class Checkpoint:
    """Where and how often a run is saved.

    Parameters
    ----------
    path : str or Path
        The file. If it exists, the run goes on from it; its problem and its solver must be the same.
    every : float
        Seconds between two saves. The end of a run, Ctrl-C included, is saved as well.

    Examples
    --------
    >>> Checkpoint("run.npz", every=60)
    Checkpoint('run.npz', every=60.0)
    """

    def __init__(self, path: Any, every: float = 30.0) -> None:
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

    def open(self, problem: Any, solver: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Return the numbers and arrays of the run saved here, or None where there is no file yet."""
        self._key = {"problem": fingerprint(problem), "solver": solver}
        if not self.path.exists():
            return None
        header, arrays = load(self.path)
        if header["problem"] != self._key["problem"]:
            raise ValueError(
                f"the checkpoint {str(self.path)!r} belongs to another problem (data, loss, set or weights differ); "
                "use another file name, or delete it."
            )
        if header["solver"] != solver:
            raise ValueError(
                f"the checkpoint {str(self.path)!r} was made by {header['solver']}, not by {solver}; "
                "use another file name, or delete it."
            )
        return header["numbers"], arrays

    def is_due(self) -> bool:
        """Tell whether it is time to save."""
        return time.monotonic() - self._last_save >= self.every

    def save(self, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Save a run; whatever happens meanwhile, the file holds the last whole one."""
        save(self.path, {**self._key, "numbers": numbers}, arrays)
        self._last_save = time.monotonic()


def save(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write header and arrays; whatever happens meanwhile, the file is the last whole one."""
    buffer = io.BytesIO()
    text = json.dumps({"format": _FORMAT, **header})
    np.savez(buffer, **{"header": np.frombuffer(text.encode(), dtype=np.uint8)}, **arrays)  # type: ignore[arg-type]
    write_file(path, buffer.getbuffer())


def load(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header and arrays, or raise ValueError, in a sentence, for a file that is none of ours or damaged."""
    try:
        # Opened here: np.load leaves its own handle open where the file is damaged.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as members:
            arrays = {name: members[name] for name in members.files}
        header = json.loads(arrays.pop("header").tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{str(path)!r} is not a checkpoint, or it is damaged ({error}).") from None
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError(f"{str(path)!r} is not a checkpoint of this version of condgrad.")
    return header, arrays


def fingerprint(problem: Any) -> str:
    """Return a hash of all that defines a problem."""
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, problem.definition())
    return digest.hexdigest()


def _feed(digest: Any, part: Any) -> None:
    if isinstance(part, np.ndarray):
        digest.update(f"{part.dtype}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).view(np.uint8).data if part.size else b"")
    elif isinstance(part, (tuple, list)):
        digest.update(type(part).__name__.encode())
        for item in part:
            _feed(digest, item)
    elif hasattr(part, "__dict__"):  # a set written in plain Python: its settings
        digest.update(type(part).__name__.encode())
        for name, item in sorted(vars(part).items()):
            _feed(digest, (name, item if not callable(item) else getattr(item, "__qualname__", "")))
    else:
        digest.update(repr(part).encode())
