"""Journal: what a conversion has written so far, so that it can continue after an interruption."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from condgrad.storage.file_entries import Chunk, is_size, take
from condgrad.storage.row_checks import Form
from condgrad.storage.sealed_json import read_sealed, sealed
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
        write_whole(folder / NAME, [sealed(dataclasses.asdict(self)).encode()])
        sync_folder(folder)

    @classmethod
    def read(cls, folder: Path, plan: dict[str, Any]) -> Journal:
        """Return the journal of a conversion with this plan, or a new one."""
        try:
            content = read_sealed(folder / NAME)
            return cls._from_dict(content) if take(content, "plan", dict) == plan else cls(plan)
        except (OSError, ValueError):
            return cls(plan)

    @classmethod
    def _from_dict(cls, content: dict[str, Any]) -> Journal:
        pieces, chunks = (list(map(Chunk.from_dict, take(content, key, list))) for key in ("pieces", "chunks"))
        place, form = (content.get(key) for key in ("place", "form"))
        if place is not None and not (isinstance(place, list) and all(map(is_size, place))):
            raise ValueError("'place' is not where a batch begins")
        found = cls(
            take(content, "plan", dict),
            pieces,
            chunks,
            None if place is None else tuple(place),
            take(content, "n_skipped", int),
            take(content, "is_read", bool),
            take(content, "is_mixed", bool),
            None if form is None else Form.from_dict(form),
        )
        if not is_size(found.n_skipped) or (found.is_read and not found.written) or (found.is_mixed and not chunks):
            raise ValueError("the journal contradicts itself")
        return found
