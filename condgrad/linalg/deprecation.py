"""Old names that still work, with a warning: what docs/versions.md promises, written once.

Warnings are FutureWarnings, because those are shown to users and not to developers alone. ``since`` is the release that
warns first, ``until`` the release without the old name; a test of the suite fails when that release has come.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def deprecated(instead: str, *, since: str, until: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function or method that will be removed; ``instead`` says what to write in its place.

    >>> @deprecated("total()", since="0.2", until="0.4")
    ... def amount(): return 3
    >>> amount()
    Traceback (most recent call last):
    FutureWarning: amount is deprecated since condgrad 0.2 and will be removed in 0.4. Use total() instead.
    """

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            _warn(function.__qualname__, instead, since, until)
            return function(*args, **kwargs)

        return call

    return mark


def renamed_keyword(old: str, new: str, *, since: str, until: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Let a function take the keyword ``old`` for its keyword ``new``; both at once are a TypeError.

    >>> @renamed_keyword("n_alphas", "n_radii", since="0.2", until="0.4")
    ... def grid(n_radii=100): return n_radii
    >>> grid(n_alphas=5)
    Traceback (most recent call last):
    FutureWarning: the argument n_alphas of grid is deprecated since condgrad 0.2 and will be removed in 0.4. Use
    n_radii instead.
    """

    def mark(function: Callable[..., R]) -> Callable[..., R]:
        name = function.__qualname__

        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> R:
            if old in kwargs:
                if new in kwargs:
                    raise TypeError(f"{name} got {old} and {new}, which are the same: give {new} alone.")
                _warn(f"the argument {old} of {name}", new, since, until)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return mark


def _warn(what: str, instead: str, since: str, until: str) -> None:
    """Warn at the line that called the deprecated function."""
    sentence = f"{what} is deprecated since condgrad {since} and will be removed in {until}. Use {instead} instead."
    warnings.warn(sentence, FutureWarning, stacklevel=3)
