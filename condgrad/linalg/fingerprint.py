"""Fingerprints: a hash of everything that defines a problem, by which a checkpoint recognises its problem."""

from __future__ import annotations

import hashlib
from typing import Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Defined(Protocol):
    """A tuple or a plain object that says itself what identifies it.

    A field that older versions did not have can then be left out where it has no meaning, and their files are known;
    and what is kept for speed, such as the model of a linear program, identifies nothing.
    """

    def definition(self) -> tuple[object, ...]:
        """Return the parts that identify it."""


def fingerprint_of(definition: object) -> str:
    """Return a hash of arrays, numbers, and tuples, lists and plain objects of them."""
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, definition)
    return digest.hexdigest()


def _feed(digest: hashlib.blake2b, part: object) -> None:
    if isinstance(part, np.ndarray):
        digest.update(f"{part.dtype}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).view(np.uint8).data if part.size else b"")
    elif isinstance(part, (tuple, list)):
        digest.update(type(part).__name__.encode())
        for item in part.definition() if isinstance(part, Defined) else part:
            _feed(digest, item)
    elif isinstance(part, Defined):
        _feed(digest, (type(part).__name__, *part.definition()))
    elif hasattr(part, "__dict__"):  # a set written in plain Python: its settings
        digest.update(type(part).__name__.encode())
        for name, item in sorted(vars(part).items()):
            _feed(digest, (name, item if not callable(item) else getattr(item, "__qualname__", "")))
    else:
        digest.update(repr(part).encode())
