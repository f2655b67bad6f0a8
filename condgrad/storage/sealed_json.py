"""Sealed JSON: an object in a file that ends with its own checksum, so that a wrong number in it is found."""

from __future__ import annotations

import json
import reprlib
import zlib
from pathlib import Path
from typing import Any

from condgrad.storage.regular_files import open_regular

_SEAL = "crc32"  # the last field: CRC-32 of all others as JSON in one line, as Python writes it


def sealed(content: dict[str, Any]) -> str:
    """Return an object as text, with its checksum."""
    return json.dumps({**content, _SEAL: _checksum(content)}, indent=1)


def _checksum(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content).encode())


def read_sealed(path: Path) -> dict[str, Any]:
    """Return the object of a file without its checksum, or raise ValueError with the reason why there is none."""
    try:
        with open_regular(path) as file:
            content = _parsed(file.readall())
        if not isinstance(content, dict):
            raise ValueError("it holds no JSON object.")
        seal = content.pop(_SEAL, None)
        if seal is None:
            raise ValueError("it has no checksum of itself; convert the data again.")
        if seal != (own := _checksum(content)):
            raise ValueError(
                f"it is damaged or was edited: its checksum is {own}, not {reprlib.repr(seal)}; copy it from a backup, "
                "or convert the data again."
            )
    except (RecursionError, MemoryError):
        raise ValueError("it is nested too deeply, or too large.") from None
    return content


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # of JSON or of UTF-8
        raise ValueError("it is not JSON.") from None
