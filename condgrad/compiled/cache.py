"""The kernels that were compiled before: by this user, or by the build step of the wheel.

A kernel is stored under a name that is a hash of everything that determines its machine code: the sources that can
reach it, the types of its arguments, the processor, the versions of Python, numba and llvmlite. A kernel of the user is
compiled for this processor and is preferred; those of the wheel are compiled for a baseline processor, and are used if
this one has all of its features.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import pathlib
import pickle
import platform
import sys
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba import config, types
from numba.core import serialize
from numba.core.compiler import CompileResult

from condgrad.compiled import sources, store

# By machine: the name and the features that the wheel's kernels are compiled for, as numba takes them, and those that a
# processor must have to run them (x86-64-v3 is that of Haswell and Zen; every 64-bit ARM has Advanced SIMD).
BASELINES = {
    "x86_64": (
        "x86-64-v3",
        "+avx2,+fma",
        "sse3 ssse3 sse4.1 sse4.2 popcnt cx16 avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    ),
    "aarch64": ("generic", "+neon", "neon"),
}
MACHINE = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())


class KernelCache:
    """The cache in which a dispatcher of numba looks up a kernel before it compiles, and stores a compiled one."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    @property
    def cache_path(self) -> str:
        """The folder, for numba's statistics."""
        return str(next(store.user_folders()))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel for the types ``sig``, or None."""
        target_context.refresh()
        for folder, name in self._places(sig, target_context.codegen()):
            data = store.load(folder, name)
            if data is not None and (found := _rebuilt(data, target_context)) is not None:
                return found
        return None

    def save_overload(self, sig: Any, result: Any) -> None:
        """Store a compiled kernel in the first of the user's folders that can be written."""
        if result.lifted or result.library.has_dynamic_globals:
            return
        name = self._name(sig, _target(result.codegen))
        if name is not None:
            data = serialize.dumps(_reduced(result))
            any(store.save(folder, name, data) for folder in store.user_folders())

    def enable(self) -> None:
        """Part of numba's interface; the cache is always enabled."""

    def disable(self) -> None:
        """Part of numba's interface; the cache is always enabled."""

    def flush(self) -> None:
        """Part of numba's interface; nothing is ever stale."""

    def _places(self, sig: Any, codegen: Any) -> Iterator[tuple[pathlib.Path, str]]:
        name = self._name(sig, _target(codegen))
        if name is None:
            return
        for folder in store.user_folders():
            yield folder, name
        if (baseline := _baseline(codegen)) is not None and (name := self._name(sig, baseline)) is not None:
            yield store.PREBUILT, name

    def _name(self, sig: Any, target: tuple[object, ...]) -> str | None:
        """Return the name under which the kernel is stored; None if another process could not rely on it."""
        function, found = self._function, list(classes(sig))
        if function.__closure__ or "<locals>" in function.__qualname__ or not all(map(_can_find, found)):
            return None
        if not all(map(_is_identified_by_name, sig)):
            return None
        written = sources.digest(sources.modules_of(found) | {function.__module__})
        if written is None:
            return None
        parts = (function.__module__, function.__qualname__, [_describe(t) for t in sig], written, target, _versions())
        kind = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        return f"{kind}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:40]}"


def classes(sig: Any) -> Iterator[type]:
    """Yield the NamedTuple classes that numba types are made of, nested ones included."""
    for t in sig:
        if isinstance(t, types.BaseNamedTuple):
            yield t.instance_class
        if isinstance(t, types.BaseTuple):
            yield from classes(t.types)


def _describe(t: Any) -> Any:
    """Return what distinguishes a type from all others, the same in every process."""
    if isinstance(t, types.BaseNamedTuple):
        cls = t.instance_class
        return cls.__module__, cls.__qualname__, t.fields, [_describe(part) for part in t.types]
    if isinstance(t, types.BaseTuple):
        return [_describe(part) for part in t.types]
    return type(t).__name__, str(t)


def _is_identified_by_name(t: Any) -> bool:
    """Return whether the name of a type identifies it: the name of a function type is an address."""
    if isinstance(t, types.BaseTuple):
        return all(map(_is_identified_by_name, t.types))
    if isinstance(t, types.Omitted):  # an argument with a default, which is a part of the name
        return isinstance(t.value, (bool, int, float, str, type(None)))
    return not isinstance(t, (types.Callable, types.Opaque))


@functools.cache
def _can_find(cls: type) -> bool:
    """Return whether another process can import ``cls``: a class of a notebook has no file."""
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        return False
    module = sys.modules.get(cls.__module__) or importlib.import_module(cls.__module__)
    return getattr(module, cls.__qualname__, None) is cls


@functools.cache
def _versions() -> tuple[object, ...]:
    """Return what machine code depends on beside sources, types and processor."""
    settings = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT)
    python = (sys.implementation.cache_tag, getattr(sys, "abiflags", ""))
    return python, numba.__version__, llvmlite.__version__, np.__version__.partition(".")[0], settings


def _target(codegen: Any) -> tuple[object, ...]:
    """Return the processor that this process compiles for, and whether it may call Intel's vector functions."""
    return (*codegen.magic_tuple(), bool(config.USING_SVML))


def _baseline(codegen: Any) -> tuple[object, ...] | None:
    """Return the processor of the wheel's kernels as a target; None if they cannot run, or the user set another."""
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None or MACHINE not in BASELINES:
        return None
    name, features, needed = BASELINES[MACHINE]
    host = _host_features()
    if not all(host.get(feature) for feature in needed.split()):
        return None
    return codegen.magic_tuple()[0], name, features, False


@functools.cache
def _host_features() -> dict[str, bool]:
    try:
        return dict(llvm.get_host_cpu_features())
    except RuntimeError:  # LLVM does not know them
        return {}


def _reduced(result: Any) -> tuple[object, ...]:
    """Return a compiled kernel as numba pickles it, without the text of its types, which is never read."""
    library, *rest = result._reduce()
    rest[5] = ""
    return (library, *rest)


def _rebuilt(data: bytes, target_context: Any) -> Any:
    """Return the kernel that was saved as ``data``; None if this process cannot load it."""
    try:
        return CompileResult._rebuild(target_context, *pickle.loads(data))
    except Exception:  # whatever the reason, the kernel is compiled again
        return None
