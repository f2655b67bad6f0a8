"""LIBSVM text, line by line in Python: for short texts, which must not wait for a compiler, and to name a fault."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

# Numbers as people write them; float() would also take 1_0, nan and inf, and int() +1.
_NUMBER = rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_LINE = re.compile(rb"%b(?:\s+\d+:%b)*" % (_NUMBER, _NUMBER))


class Samples(NamedTuple):
    """Samples of some lines: the entries row by row, where those of each sample end, and the targets."""

    values: np.ndarray
    indices: np.ndarray
    ends: np.ndarray
    targets: np.ndarray


def parse_lines(text: bytes, name: str, line: int, n_features: int) -> Samples:
    """Return the samples of a text in LIBSVM format; errors call it ``name``, and its first line ``line``."""
    places: list[int] = []
    values: list[float] = []
    ends, targets = [], []
    for number, raw in enumerate(text.split(b"\n"), start=line):
        plain = raw.partition(b"#")[0].strip()
        if plain:
            target, own, numbers = _parse(plain, name, number, n_features)
            targets.append(target)
            places += own
            values += numbers
            ends.append(len(places))
    indices = np.array(places, np.int32 if n_features < 2**31 else np.int64) - 1
    return Samples(np.array(values, np.float64), indices, np.array(ends, np.int64), np.array(targets, np.float64))


def parse_line(line: bytes, name: str, number: int, n_features: int) -> tuple[float, list[int], list[float]]:
    """Return the target, the indices from 0 and the values of a line with a sample; raise if it is faulty."""
    target, places, values = _parse(line.partition(b"#")[0].strip(), name, number, n_features)
    return target, [place - 1 for place in places], values


def _parse(line: bytes, name: str, number: int, n_features: int) -> tuple[float, list[int], list[float]]:
    if _LINE.fullmatch(line):
        label, *parts = line.replace(b":", b" ").split()
        target, places, values = float(label), list(map(int, parts[::2])), list(map(float, parts[1::2]))
        has_order = not places or (
            places[0] > 0 and places[-1] <= n_features and all(map(int.__lt__, places, places[1:]))
        )
        if has_order and math.isfinite(target) and all(map(math.isfinite, values)):
            return target, places, values
    raise ValueError(f"{name}, line {number}: {_fault(line.decode('utf-8', 'replace'), n_features)}.")


def _fault(line: str, n_features: int) -> str:
    """Return what is wrong with a line that is not a sample."""
    label, *entries = line.encode().split()
    if not re.fullmatch(_NUMBER, label) or not math.isfinite(float(label)):
        return f"the target must be a finite number; got {_shown(label)}"
    previous = 0
    for entry in entries:
        if not re.fullmatch(rb"\d+:%b" % _NUMBER, entry) or not math.isfinite(float(entry.partition(b":")[2])):
            hint = "; query ids are not supported" if entry.startswith(b"qid:") else ""
            return f"an entry must be index:value with a finite number; got {_shown(entry)}{hint}"
        place = int(entry.partition(b":")[0])
        if place == 0:
            return "indices start at 1; got 0"
        if place <= previous:
            return f"indices must increase; got {place} after {previous}"
        if place > n_features:
            return f"index {place} is beyond the {n_features} features"
        previous = place
    return "it is not LIBSVM text"


def _shown(word: bytes) -> str:
    return repr(word.decode("utf-8", "replace")[:40])
