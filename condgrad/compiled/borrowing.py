"""Borrowing: arrays whose references nobody counts.

A kernel counts the references to its arrays, atomically, at every call of another kernel that is not inlined: 5 ns for
each array and call. A kernel of many small steps on many arrays can borrow them once instead.
"""

from __future__ import annotations

from typing import Any, TypeVar

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from condgrad.compiled.dispatchers import WITHOUT_WRAPPERS

T = TypeVar("T")


def borrowed(value: T) -> T:
    """Return the same arrays, numbers and tuples of them; whoever called the kernel keeps the arrays alive.

    In a kernel, nothing that is borrowed may be returned or kept.

    >>> borrowed((1.0, 2))
    (1.0, 2)
    """
    return value


@overload(borrowed, jit_options=WITHOUT_WRAPPERS)
def _borrowed_in_kernels(value):
    return lambda value: _borrow(value)


@intrinsic
def _borrow(typing_context, value):
    def codegen(context, builder, signature, args):
        return without_owners(context, builder, value, args[0])

    return value(value), codegen


def without_owners(context: Any, builder: Any, typ: Any, value: Any) -> Any:
    """Return the same value, with arrays that have no owner whose references could be counted."""
    if isinstance(typ, types.BaseTuple):
        for k, part in enumerate(typ.types):
            own = builder.extract_value(value, k)
            value = builder.insert_value(value, without_owners(context, builder, part, own), k)
    elif isinstance(typ, types.Array):
        array = context.make_array(typ)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        value = array._getvalue()
    return value
