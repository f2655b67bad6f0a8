"""Construction of ``@compiled`` classes and objects: unique names, fields of the right types, checks of parameters."""

from __future__ import annotations

import collections
import functools
import inspect
import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np


def fill_in(cls: type, protocol: type) -> type:
    """Give a NamedTuple class, which cannot inherit, the methods and attributes of ``protocol`` that it lacks."""
    for base in protocol.__mro__:
        for name, default in vars(base).items():
            if not name.startswith("_") and name not in vars(cls):
                setattr(cls, name, default)
    return cls


def with_placeholder(cls: type) -> type:
    """Return ``cls`` with one unused field: numba cannot bind methods to an empty tuple."""
    copy = collections.namedtuple(cls.__name__, "placeholder", defaults=(0,), module=cls.__module__)
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if not name.startswith("_") and name not in ("count", "index"):
                setattr(copy, name, value)
    copy.__doc__, copy.__qualname__ = cls.__doc__, cls.__qualname__
    copy.__repr__ = lambda self: f"{cls.__name__}()"  # type: ignore[method-assign]
    return copy


def give_own_name(cls: Any, others: Iterable[type]) -> None:
    """Number a class whose name is taken: numba's dispatcher distinguishes namedtuples by name and field types only.

    Without this, a loss defined again in a notebook would still run its first definition.
    """
    shown = cls.__name__
    taken = sum(shown == other.__qualname__.rpartition(".")[2] for other in others)
    if taken:
        cls.__name__ = f"{shown}_{taken + 1}"
        if cls.__repr__.__module__ == "collections":  # the default of namedtuples, which shows __name__
            fields = ", ".join(f"{name}=%r" for name in cls._fields)
            cls.__repr__ = lambda self: f"{shown}({fields % tuple(self)})"


def check_on_construction(cls: Any) -> None:
    plain_new = cls.__new__
    # Postponed annotations reach a NamedTuple as ForwardRef("float").
    kinds = {name: getattr(kind, "__forward_arg__", kind) for name, kind in inspect.get_annotations(cls).items()}
    positions = [(name, cls._fields.index(name)) for name, kind in kinds.items() if kind in (float, "float")]
    check, prepare = getattr(cls, "check", None), getattr(cls, "prepare", None)
    if not positions and check is None and prepare is None:
        return

    @functools.wraps(plain_new)
    def new(cls_, *args, **kwargs):
        self = plain_new(cls_, *args, **kwargs)
        if prepare is not None:
            self = plain_new(cls_, *prepare(self))
        for name, k in positions:
            if type(self[k]) is not float:
                self = plain_new(cls_, *self[:k], _as_float(cls.__name__, name, self[k]), *self[k + 1 :])
        if check is not None:
            check(self)
        return self

    cls.__new__ = new
    cls._make = classmethod(lambda cls_, fields: cls_(*fields))  # _replace calls it, and must check too


def _as_float(owner: str, name: str, value: object) -> float:
    if isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_, np.complexfloating)):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{name} of {owner} must fit into a float; got an integer that is too large.") from None
    raise TypeError(f"{name} of {owner} must be a real number; got {' '.join(reprlib.repr(value).split())}.")
