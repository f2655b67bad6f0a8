"""Names that users write: how to find what they stand for, and what to suggest for a mistyped one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

# Control characters, marks that reverse the order of text, and halves of characters, which cannot be printed.
_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Registry(dict[str, Any]):
    """Classes by their names; ``kind`` is the noun for them in error messages.

    >>> Registry("letter", {"alpha": 1, "beta": 2}).find("alfa")
    Traceback (most recent call last):
    ValueError: there is no letter named 'alfa'; known: alpha, beta. Did you mean 'alpha'?
    """

    def __init__(self, kind: str, classes: dict[str, Any]) -> None:
        super().__init__(classes)
        self.kind = kind

    def find(self, name: object) -> Any:
        """Return the class of that name, or raise ValueError with the known names."""
        if isinstance(name, str) and name in self:
            return self[name]
        known = ", ".join(sorted(self))
        raise ValueError(f"there is no {self.kind} named {name!r}; known: {known}.{suggestion(name, self)}")


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return a question that suggests the known name most similar to ``name``, or '' if none is similar.

    >>> suggestion("simplx", ["l1", "simplex"])
    " Did you mean 'simplex'?"
    """
    close = difflib.get_close_matches(str(name).lower(), known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def visible(text: object) -> str:
    """Return text as it can be shown: what would steer a terminal, or turn its text around, becomes an escape.

    Names in files may be anybody's. Where ``repr`` puts one into quotes, as in errors, that does the same.

    >>> print(visible("a name\\x1b[2J"))
    a name\\x1b[2J
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), str(text))
