"""Sealed files: an ``.npz`` of arrays with a JSON header and a checksum, written atomically; loading executes no code.

The member ``header`` is JSON in UTF-8. The comment of the zip archive, its last 64 bytes, is the SHA-256 of all bytes
before it, so that a damaged file is refused before anything in it is parsed; ``numpy.load`` can read the file too.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.linalg.saved import shown
from condgrad.storage.whole_files import write_named

_SEAL = 64  # number of bytes of a SHA-256 in hexadecimal digits


def pack(kind: str, version: int, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Return the bytes of a sealed file of a kind ("model", "completion model", "checkpoint", "path")."""
    text = json.dumps({"format": f"condgrad {kind}", "format_version": version, **header}).encode()
    buffer = io.BytesIO()
    np.savez(buffer, **{"header": np.frombuffer(text, dtype=np.uint8)}, **arrays)  # type: ignore[arg-type]
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = b"0" * _SEAL
    body = buffer.getbuffer()[:-_SEAL]
    return b"".join((body, hashlib.sha256(body).hexdigest().encode()))


def unpack(path: str | os.PathLike[str], *kinds: tuple[str, int]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header and arrays of a sealed file, or raise ValueError if it is of none of the kinds.

    Kinds are pairs of a name and a version; error messages use the name of the first one. ``header["format"]`` is the
    kind of the file.
    """
    name, kind = repr(str(path)), kinds[0][0]
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {name}.") from None
    except OSError as error:
        raise ValueError(f"{name} could not be read: {error.strerror}.") from None
    view = memoryview(content)
    if hashlib.sha256(view[:-_SEAL]).hexdigest().encode() != content[-_SEAL:]:
        raise ValueError(f"{name} is not a {kind} of condgrad, or it is damaged: its checksum is wrong.")
    try:
        arrays = _members(content)
        header = json.loads(arrays.pop("header").tobytes())
        found, found_version = header["format"], header["format_version"]
    except Exception as error:  # whatever numpy, zipfile and json say of bytes that anybody has written
        words = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{name} is not a {kind} of condgrad ({words}).") from None
    versions = {f"condgrad {known}": version for known, version in kinds}
    if str(found) not in versions:
        raise ValueError(f"{name} is not a {kind} of condgrad, but a {shown(found)}.")
    if found_version != versions[found]:
        raise ValueError(
            f"{name} is a {kind} in version {shown(found_version)} of its format, and this condgrad reads version "
            f"{versions[found]}; use the condgrad that wrote it."
        )
    return header, arrays


def _members(content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of an archive; compressed ones, which :func:`pack` never writes, could fill any memory."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
            raise ValueError("its arrays are compressed")
    with np.load(io.BytesIO(content), allow_pickle=False) as members:
        arrays = {key: members[key] for key in members.files}
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise ValueError("it holds other things than arrays")
    return arrays


def write_file(path: str | os.PathLike[str], content: bytes | memoryview) -> None:
    """Write bytes to ``path`` atomically: if writing is interrupted, the old file stays unchanged."""
    write_named(Path(path), [content])
