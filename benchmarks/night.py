"""Long benchmarks in a stated time: the pieces of work of a table, done one after the other, each stored when done.

    night = Night(hours, file, pieces)
    for piece, seconds in night:                # those that the file does not have yet
        night.store(piece, measure(piece, seconds))

The time that is left is divided equally among the pieces that are left, so that a piece that ends early leaves its time
to the others. A run that was interrupted, or whose time was over, continues with the first piece that is not in the
file; what is in the file is not done again, so that longer runs of the same pieces need another file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


class Night:
    """The pieces of work, the file of what they found, and the time for those that are left.

    Parameters
    ----------
    hours : float
        For all pieces that the file does not have.
    file : Path
        Read if it exists; written after every piece.
    pieces : sequence of str
        Their names, in the order in which they are done.
    """

    def __init__(self, hours: float, file: Path, pieces: Sequence[str]) -> None:
        self.file, self.pieces = file, list(pieces)
        self.found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        self.end = time.monotonic() + 3600.0 * hours

    def __iter__(self) -> Iterator[tuple[str, float]]:
        left = [piece for piece in self.pieces if piece not in self.found]
        for k, piece in enumerate(left):
            seconds = (self.end - time.monotonic()) / (len(left) - k)
            if seconds <= 0.0:
                print(f"The time is over; {len(left) - k} of {len(self.pieces)} pieces are left for another call.")
                return
            print(f"{len(self.pieces) - len(left) + k + 1} of {len(self.pieces)}: {piece}, {seconds:.1f} s")
            yield piece, seconds

    def store(self, piece: str, found: Any) -> None:
        """Keep what a piece found; the file is whole at any time."""
        self.found[piece] = found
        self.file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps(self.found, indent=1) + "\n")
        fresh.replace(self.file)


def add_option(parser: argparse.ArgumentParser, file: Path) -> None:
    """Add ``--hours H`` and ``--found FILE`` to the options of a benchmark."""
    parser.add_argument(
        "--hours", type=float, metavar="H", help="divide so many hours among all runs; another call goes on"
    )
    parser.add_argument("--found", type=Path, default=file, metavar="FILE", help=f"what is done ({file.name})")
