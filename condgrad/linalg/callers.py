"""Where a warning should point: at the line of the user, not at one of ours."""

from __future__ import annotations

import sys

_OURS = {"condgrad", "sklearn", "contextlib"}  # packages whose frames lie between a warning and its user


def is_called_by_user() -> bool:
    """Return whether it is the user who calls the function that calls this one, and not another function of ours."""
    caller = sys._getframe(2)
    return caller.f_globals.get("__name__", "").partition(".")[0] != "condgrad"


def level_of_user() -> int:
    """Return the ``stacklevel`` with which ``warnings.warn``, in the calling function, points at the user's line."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    return level
