"""Journal: what a conversion has written so far, so that it can continue after an interruption."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from condgrad.storage.manifest import Chunk
from condgrad.storage.row_checks import Form
from condgrad.storage.sources.base import Place
from condgrad.storage.whole_files import sync_folder, write_whole

NAME = "conversion.json"


@dataclasses.dataclass
class Journal:
    """The state of a conversion, as it is on the disk.

    Attributes
    ----------
    plan : dict
        What is converted, and how; another plan cannot continue this conversion.
    pieces, chunks : list of Chunk
        The pieces of a conversion that shuffles, in the order of the source; the chunks of the result.
    place, n_skipped : tuple of int or None, int
        Where the first sample lies that is in no piece: so many samples after this place of the source.
    is_read, is_mixed : bool
        Whether all samples of the source are in a piece, or a chunk; whether those of all pieces are in a chunk.
    form : Form or None
    """

    plan: dict[str, Any]
    pieces: list[Chunk] = dataclasses.field(default_factory=list)
    chunks: list[Chunk] = dataclasses.field(default_factory=list)
    place: Place | None = None
    n_skipped: int = 0
    is_read: bool = False
    is_mixed: bool = False
    form: Form | None = None

    @property
    def written(self) -> list[Chunk]:
        """All that is written."""
        return [*self.pieces, *self.chunks]

    def write(self, folder: Path) -> None:
        """Write the journal; the files that it names are on the disk before."""
        sync_folder(folder)
        write_whole(folder / NAME, [json.dumps(dataclasses.asdict(self)).encode()])
        sync_folder(folder)

    @classmethod
    def read(cls, folder: Path, plan: dict[str, Any]) -> Journal:
        """Return the journal of a conversion with this plan, or a new one."""
        try:
            content = json.loads((folder / NAME).read_text(encoding="utf-8"))
            content["pieces"], content["chunks"] = (
                [Chunk.from_dict(chunk) for chunk in content[key]] for key in ("pieces", "chunks")
            )
            content["place"] = None if content["place"] is None else tuple(content["place"])
            content["form"] = None if content["form"] is None else Form(**content["form"])
            found = cls(**content)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(plan)
        return found if found.plan == plan else cls(plan)
