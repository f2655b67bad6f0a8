"""What anybody may have written into a file: arrays and numbers, each checked where it is taken.

What reads an array says which kind, shape and bounds it must have; another one raises ValueError. A kernel does not
check its indices, so whole numbers of a file reach it only through :func:`take_indices`, or in parts of a state that
say whether they are sound.
"""

from __future__ import annotations

import contextlib
import math
import reprlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from condgrad.linalg.device.failures import is_failure
from condgrad.linalg.names import visible

Arrays: TypeAlias = Mapping[str, np.ndarray]  # by name

_LARGEST = 1e150  # size of a number whose square, and sums of many, are finite
ROUNDING_OF_WEIGHTS = 1e-6  # by which a sum of weights may differ from 1 after many steps
_MOST = 2**53  # counts are below it: they are exact as floats, and adding to them cannot overflow in a kernel


def take_like(arrays: Arrays, name: str, array: np.ndarray) -> np.ndarray:
    """Return an array of the kind and the shape of a given one, without nan."""
    return _take(arrays, name, array.dtype, array.shape)


def fill_from(arrays: Arrays, name: str, array: np.ndarray) -> None:
    """Copy an array of this kind and shape into the given one."""
    array[...] = take_like(arrays, name, array)


def take_floats(arrays: Arrays, name: str, *shape: int | None) -> np.ndarray:
    """Return floats of a shape whose squares do not overflow; None stands for any length.

    Examples
    --------
    >>> import numpy as np
    >>> take_floats({"w": np.zeros(3)}, "w", 4)
    Traceback (most recent call last):
    ValueError: its array 'w' has the shape (3,) instead of (4,)
    """
    found = _take(arrays, name, np.dtype(np.float64), shape)
    if not (np.abs(found) <= _LARGEST).all():
        raise ValueError(f"its array {name!r} holds numbers that are too large")
    return found


def take_weights(arrays: Arrays, name: str, size: int) -> np.ndarray:
    """Return the weights of a convex combination: none is negative, and their sum is 1 up to accumulated rounding."""
    found = take_floats(arrays, name, size)
    if found.min(initial=0.0) < 0.0 or abs(found.sum() - 1.0) > ROUNDING_OF_WEIGHTS:
        raise ValueError(f"its array {name!r} holds no weights")
    return found


def take_square(arrays: Arrays, name: str, most: int) -> np.ndarray | None:
    """Return a square matrix of at most so many rows, or None if there is none of this name."""
    if name not in arrays:
        return None
    size = min(most, len(np.atleast_1d(arrays[name])))
    return take_floats(arrays, name, size, size)


def take_column(arrays: Arrays, name: str) -> np.ndarray:
    """Return a column of numbers of any kind."""
    found = _named(arrays, name)
    if found.ndim != 1 or found.dtype.kind not in "if":
        raise ValueError(f"its array {name!r} is no column of numbers, but {found.dtype} of shape {found.shape}")
    return found


def take_indices(
    arrays: Arrays, name: str, below: int, *, size: int | None = None, distinct: bool = False
) -> np.ndarray:
    """Return whole numbers from 0 on, all of them smaller than ``below``.

    Examples
    --------
    >>> import numpy as np
    >>> take_indices({"order": np.array([2, 0, 3])}, "order", 3)
    Traceback (most recent call last):
    ValueError: its array 'order' holds 0 to 3 instead of 0 to 2
    """
    found = _take(arrays, name, np.dtype(np.int64), (size,))
    if found.size and not 0 <= int(found.min()) <= int(found.max()) < below:
        raise ValueError(f"its array {name!r} holds {found.min()} to {found.max()} instead of 0 to {below - 1}")
    if distinct and np.unique(found).size != found.size:
        raise ValueError(f"its array {name!r} repeats numbers that must differ")
    return found


def _named(arrays: Arrays, name: str) -> np.ndarray:
    if name not in arrays:
        raise ValueError(f"it has no array {name!r}")
    return arrays[name]


def _take(arrays: Arrays, name: str, dtype: np.dtype[Any], shape: tuple[int | None, ...]) -> np.ndarray:
    found = _named(arrays, name)
    if found.dtype != dtype:
        raise ValueError(f"its array {name!r} is of {found.dtype} instead of {dtype}")
    if found.ndim != len(shape) or any(b not in (a, None) for a, b in zip(found.shape, shape, strict=True)):
        wanted = str(shape).replace("None", "any")
        raise ValueError(f"its array {name!r} has the shape {found.shape} instead of {wanted}")
    if found.dtype.kind == "f" and np.isnan(found).any():
        raise ValueError(f"its array {name!r} holds nan")
    return found


def check_numbers(saved: object, fresh: Mapping[str, Any], path: str = "") -> None:
    """Raise ValueError unless each saved number is of the kind that a state begins with.

    Counts (whole numbers) are neither negative nor too large for a kernel; nan is no number. A name may be missing:
    files of older versions lack some. Generators check their own states.
    """
    if not isinstance(saved, dict):
        raise ValueError(f"its numbers{path} are no table of names")
    for name, value in fresh.items():
        if name in saved and not name.startswith("generator"):
            _check_number(saved[name], value, f"{path} {name!r}")


def _check_number(saved: Any, fresh: Any, path: str) -> None:
    if isinstance(fresh, dict):
        check_numbers(saved, fresh, path)
        return
    is_number = isinstance(saved, int | float) and not isinstance(saved, bool)
    if isinstance(fresh, bool | np.bool_):
        is_fit = isinstance(saved, bool)
    elif isinstance(fresh, int | np.integer):
        is_fit = is_number and isinstance(saved, int) and 0 <= saved < _MOST
    elif isinstance(fresh, float | np.floating):
        is_fit = is_number and -_MOST < saved < _MOST if isinstance(saved, int) else is_number and saved == saved
    elif fresh is None:
        is_fit = saved is None or (is_number and math.isfinite(saved))
    else:  # words, and what a solver of the user's own keeps
        is_fit = isinstance(saved, type(fresh))
    if not is_fit:
        raise ValueError(f"its number{path} cannot be {reprlib.repr(saved)}")


def shown(value: object) -> str:
    """Return a value from a file for a sentence: short, and without signs that a terminal obeys."""
    return visible(value[:200] if isinstance(value, str) else reprlib.repr(value))


def set_generator(rng: np.random.Generator, state: object) -> None:
    """Give a generator a saved state."""
    try:
        rng.bit_generator.state = state  # type: ignore[assignment]
        inner = rng.bit_generator.state["state"]
        is_whole = "inc" not in inner or inner["inc"] % 2 == 1  # PCG64 with an even step soon repeats itself
    except (TypeError, ValueError, KeyError, OverflowError, AttributeError):
        is_whole = False
    if not is_whole:
        raise ValueError("the state of its random generator is none")


@contextlib.contextmanager
def refusing(path: object, kind: str, remedy: str = "") -> Iterator[None]:
    """Turn what goes wrong with the content of a file into one sentence that names the file."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        if is_failure(error):  # of a device: no fault of the file
            raise
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error) or type(error).__name__
        words = shown(" ".join(what.split()).rstrip("."))
        raise ValueError(f"{str(path)!r} is no {kind} that condgrad has written: {words}{remedy}.") from None
