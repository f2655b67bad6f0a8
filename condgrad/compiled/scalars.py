"""Operations on numbers in kernels that are too slow in NumPy, or that it lacks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import ArrayLike

from condgrad.compiled.dispatchers import OPTIONS, WITHOUT_WRAPPERS, F


def where(condition: ArrayLike, a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """``np.where`` on arrays; a plain choice on scalars inside kernels, twenty times faster there.

    >>> where(np.array([True, False]), 1.0, 2.0)
    array([1., 2.])
    """
    return np.where(condition, a, b)


def scalar_form(of: F) -> Callable[[Callable[..., object]], F]:
    """Make kernels call the decorated function of numbers in place of ``of``; its operations are not reordered."""

    def register(function: Callable[..., object]) -> F:
        options = {**OPTIONS, **WITHOUT_WRAPPERS, "fastmath": {"contract"}, "forceinline": True}
        overload(of, jit_options=options, strict=False)(lambda *args: function)
        return of

    return register


@overload(where, jit_options=WITHOUT_WRAPPERS)
def _where_scalar(condition, a, b):
    return lambda condition, a, b: a if condition else b


def bits_of(x: float) -> int:
    """Return the 64 bits of a float as an integer: non-negative floats have the same order as these integers.

    A maximum of integers vectorises; one of floats does not, because of nan.

    >>> bits_of(1.0) < bits_of(1.5)
    True
    """
    return int(np.float64(x).view(np.int64))


@overload(bits_of, jit_options=WITHOUT_WRAPPERS)
def _bits_of_scalar(x):
    return lambda x: _bitcast(float(x))


def float_of(bits: int) -> float:
    """Return the float with the given 64 bits.

    >>> float_of(bits_of(1.5))
    1.5
    """
    return float(np.int64(bits).view(np.float64))


@overload(float_of, jit_options=WITHOUT_WRAPPERS)
def _float_of_scalar(bits):
    return lambda bits: _bitcast(np.int64(bits))


@intrinsic
def _bitcast(typing_context, x):
    to = types.int64 if x == types.float64 else types.float64

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(to))

    return to(x), codegen
