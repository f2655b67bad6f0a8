"""Folders of converted data as a stranger could make them: wrong numbers under right checksums."""

import json
import zlib

import numpy as np

from condgrad.storage.sealed_json import sealed


def content_of(folder, name="manifest.json"):
    """What the manifest, or the journal, of a folder says, without its checksum."""
    content = json.loads((folder / name).read_text())
    del content["crc32"]
    return content


def write(folder, content, name="manifest.json"):
    """Write a manifest, or a journal, with its checksum."""
    (folder / name).write_text(sealed(content))


def entries_of(content, role):
    """The entries of all files of a role."""
    chunks = [*content.get("chunks", []), *content.get("pieces", [])]
    return [
        files[role] for files in (*(chunk["files"] for chunk in chunks), content.get("shared", {})) if role in files
    ]


def change(folder, role, edit, *, chunk=0, name="manifest.json"):
    """Put ``edit(array)`` in the place of an array, with dtype, shape, size and checksum as they should be."""
    content = content_of(folder, name)
    entry = entries_of(content, role)[chunk]
    path = folder / entry["name"]
    np.save(path, np.ascontiguousarray(edit(np.load(path))))
    written, array = path.read_bytes(), np.load(path)
    entry |= {"dtype": array.dtype.str, "shape": array.shape, "n_bytes": len(written), "crc32": zlib.crc32(written)}
    write(folder, content, name)


def edit(folder, change_content, name="manifest.json"):
    """Change what the manifest, or the journal, of a folder says; its checksum is right again."""
    content = content_of(folder, name)
    change_content(content)
    write(folder, content, name)
