"""Names that users mistype."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return the end of a sentence that suggests the known name nearest to ``name``; nothing where none is near.

    >>> suggestion("simplx", ["l1", "simplex"])
    " Did you mean 'simplex'?"
    """
    close = difflib.get_close_matches(str(name).lower(), known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
