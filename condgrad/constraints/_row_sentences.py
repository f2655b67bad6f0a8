"""Linear rows as users write them: sentences about coefficients such as "age <= income", or arrays.

A sentence compares sums: "2 a - b >= 1", "a <= b <= c" (two rows), "a = b". "sum" stands for all coefficients, and
"sum(a, b)" for some. A name with other characters than letters, digits, _ and . stands between backquotes. Features
without names are x0, x1, ...
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from condgrad.constraints._allowance import place_of, unnamed

Rows: TypeAlias = str | Sequence[str] | Mapping[str, Any] | None

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)(?![\w.])|`(?P<quoted>[^`]+)`"
    r"|(?P<name>[^\W\d][\w.]*)|(?P<sign><=|>=|==|=|[-+*,()]))"
)
_LARGEST = 1e100  # of a number: neither sums of such numbers overflow, nor their squares
_MOST_SHOWN = 120  # characters of a sentence in an error
_ARRAYS = ("A_ub", "b_ub", "A_eq", "b_eq")


class CoefficientRows(NamedTuple):
    """The rows A_ub w <= b_ub and A_eq w = b_eq; None where there are none."""

    A_ub: Any
    b_ub: Any
    A_eq: Any
    b_eq: Any

    def allows_zero(self) -> bool:
        """Return whether w = 0 satisfies the rows."""
        no_ub = self.b_ub is None or bool((np.asarray(self.b_ub, dtype=float) >= 0.0).all())
        return no_ub and (self.b_eq is None or not np.any(self.b_eq))


def as_rows_of(rows: Rows, n_features: int, names: Iterable[object] | None) -> CoefficientRows | None:
    """Return rows as arrays: from one sentence, several of them, or a dict with A_ub, b_ub, A_eq and b_eq."""
    if rows is None:
        return None
    if isinstance(rows, Mapping):
        unknown = [key for key in rows if key not in _ARRAYS]
        if unknown or not rows:
            raise ValueError(f"rows as a dict must have keys among A_ub, b_ub, A_eq and b_eq; got {list(rows)!r}.")
        return CoefficientRows(*(rows.get(key) for key in _ARRAYS))
    sentences = list(rows) if isinstance(rows, Iterable) and not isinstance(rows, str) else [rows]
    if not sentences:
        return None
    known = unnamed(n_features) if names is None else [str(name) for name in names]
    ub: list[_Sum] = []
    eq: list[_Sum] = []
    for sentence in sentences:
        if not isinstance(sentence, str):
            raise TypeError(f"rows must be sentences such as 'age <= income', or a dict of arrays; got {sentence!r}.")
        for row, is_equation in _Reader(sentence, known).rows():
            (eq if is_equation else ub).append(row)
    return CoefficientRows(*_stacked(ub), *_stacked(eq))


class _Sum(NamedTuple):
    """<weights, w> + constant."""

    weights: np.ndarray
    constant: float


class _Reader:
    """Reads one sentence."""

    def __init__(self, sentence: str, known: list[str]) -> None:
        self.sentence, self.known = sentence, known
        self.tokens = self._split()
        self.place = 0

    def rows(self) -> list[tuple[_Sum, bool]]:
        """Return sums that are at most 0, or 0, with the latter's "is it an equation?"."""
        left, found = self._sum(), []
        while self.place < len(self.tokens):
            kind, sign = self._next()
            if kind != "sign" or sign not in ("<=", ">=", "=", "=="):
                raise self._error(f"{sign!r} is not <=, >= or =")
            right = self._sum()
            first, second = (right, left) if sign == ">=" else (left, right)
            row = _Sum(first.weights - second.weights, first.constant - second.constant)
            if not row.weights.any():
                raise self._error("it says nothing about a coefficient")
            found.append((row, sign in ("=", "==")))
            left = right
        if not found:
            raise self._error("it compares nothing")
        return found

    def _split(self) -> list[tuple[str, str]]:
        tokens, end, text = [], 0, self.sentence.rstrip()
        while end < len(text):
            match = _TOKEN.match(text, end)
            if match is None:
                raise self._error(f"{text[end:].strip()[:12]!r} is unknown here")
            kind = match.lastgroup or ""
            tokens.append((kind, match[kind]))
            end = match.end()
        return tokens

    def _sum(self) -> _Sum:
        weights, constant, sign, is_first = np.zeros(len(self.known)), 0.0, 1.0, True
        while True:
            if self._peek() in ("+", "-"):
                sign = 1.0 if self._next()[1] == "+" else -1.0
            elif not is_first:
                return _Sum(weights, constant)
            factor, part = self._term()
            if part is None:
                constant += sign * factor
            else:
                weights += sign * factor * part
            sign, is_first = 1.0, False

    def _term(self) -> tuple[float, np.ndarray | None]:
        """Return a factor, and the coefficients that it multiplies or None."""
        kind, text = self._next()
        if kind != "number":
            return 1.0, self._coefficients(kind, text)
        factor = float(text)
        if factor > _LARGEST:
            raise self._error(f"a number is larger than {_LARGEST:g}")
        if self._peek() == "*":
            self._next()
        elif self.place == len(self.tokens) or self.tokens[self.place][0] not in ("name", "quoted"):
            return factor, None
        return factor, self._coefficients(*self._next())

    def _coefficients(self, kind: str, text: str) -> np.ndarray:
        chosen = np.zeros(len(self.known))
        if kind == "name" and text == "sum" and "sum" not in self.known:
            if self._peek() != "(":
                return np.ones(len(self.known))
            while self._next()[1] in ("(", ","):
                chosen[self._feature(*self._next())] += 1.0
            if self.tokens[self.place - 1][1] != ")":
                raise self._error("a ) is missing")
            return chosen
        chosen[self._feature(kind, text)] = 1.0
        return chosen

    def _feature(self, kind: str, text: str) -> int:
        if kind not in ("name", "quoted"):
            raise self._error(f"{text!r} is no feature")
        return place_of(text, "rows", len(self.known), self.known)

    def _peek(self) -> str | None:
        return self.tokens[self.place][1] if self.place < len(self.tokens) else None

    def _next(self) -> tuple[str, str]:
        if self.place == len(self.tokens):
            raise self._error("its end is missing")
        self.place += 1
        return self.tokens[self.place - 1]

    def _error(self, what: str) -> ValueError:
        return ValueError(
            f"rows must be sentences such as 'age <= income' or '2 a - b = 0'; in {_shortened(self.sentence)!r} {what}."
        )


def _shortened(text: str) -> str:
    """Return the text, or its beginning where it is long."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _stacked(rows: list[_Sum]) -> tuple[np.ndarray | None, np.ndarray | None]:
    if not rows:
        return None, None
    return np.array([row.weights for row in rows]), np.array([-row.constant for row in rows])
