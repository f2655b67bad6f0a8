"""Plain Python that runs at C speed: ``@compiled`` classes inside ``@kernel`` functions, and the cache of kernels.

This folder is the only code that uses the internals of numba.
"""

from condgrad.compiled.announcements import announce_to
from condgrad.compiled.borrowing import borrowed
from condgrad.compiled.construction import fill_in
from condgrad.compiled.dispatchers import kernel
from condgrad.compiled.errands import Bound, Errand
from condgrad.compiled.methods import compiled, is_compiled, is_importing
from condgrad.compiled.scalars import bits_of, float_of, scalar_form, where
from condgrad.compiled.stopwatch import Stopwatch

__all__ = [
    "Bound",
    "Errand",
    "Stopwatch",
    "announce_to",
    "bits_of",
    "borrowed",
    "compiled",
    "fill_in",
    "float_of",
    "is_compiled",
    "is_importing",
    "kernel",
    "scalar_form",
    "where",
]
