"""NamedEnum: an enum whose members are known by their names in copies and files."""

from __future__ import annotations

import enum
from typing import Self


class NamedEnum(enum.Enum):
    """An enum that pickle and skops store by the name of the member: its value, such as a sentence, may change.

    Skops restores a class by calling it, if ``__reduce__`` says so.
    """

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.name,)

    def __reduce_ex__(self, protocol: object) -> tuple[type[Self], tuple[str]]:
        return self.__reduce__()

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls.__members__.get(value) if isinstance(value, str) else None
