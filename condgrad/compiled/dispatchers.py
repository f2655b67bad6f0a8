"""Kernels: functions that numba compiles, once for each kind of arguments.

numba compiles a function that only other kernels call as if Python called it, too: with wrappers that unpack every
argument, optimised, as machine code. A method that is inlined, and a kernel within another, need none of this, and are
compiled without it.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import llvmlite.binding as llvm
from numba import njit
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NopythonTypeInference

from condgrad.compiled.announcements import announced
from condgrad.compiled.cache import KernelCache, classes
from condgrad.compiled.stopwatch import compiling

# Sums may be reordered (they vectorise then), but nan and inf keep their meaning: a kernel must not hide them.
# A loop that sums must not store as well: whether such a loop runs vectorised depends on how close in memory the arrays
# lie, and then two equal runs round their sums differently.
OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
WITHOUT_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile ``function`` with numba; the result is cached on disk under a hash of all its sources."""
    plain = njit(**OPTIONS, no_cfunc_wrapper=True)(function)
    if plain is function:  # with NUMBA_DISABLE_JIT=1 numba returns it unchanged
        return function
    return _Kernel(function, plain.locals, plain.targetoptions)


class _Kernel(CPUDispatcher):
    """A kernel that Python can call; other kernels call its version ``_within_kernels``, which Python cannot call."""

    def __init__(
        self, py_func: Callable[..., object], locals: object = None, targetoptions: object = None, **rest: object
    ) -> None:
        super().__init__(py_func, locals or {}, targetoptions or {}, **rest)
        self._cache = KernelCache(py_func)
        self._within_kernels = inner(py_func)

    def get_call_template(self, args: object, kws: object) -> object:
        return self._within_kernels.get_call_template(args, kws)

    def get_overload(self, sig: object) -> object:
        return self._within_kernels.get_overload(sig)

    def _compile_for_args(self, *args: object, **kws: object) -> object:
        with compiling(), _without_collecting():
            return super()._compile_for_args(*args, **kws)


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """Disable garbage collection: the compiler makes many objects and drops few, and searching for them is slow."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Announcer(event.Listener):
    """Listens to numba's events: kernels that are compiled, not loaded; one at a time, as numba holds a lock."""

    def on_start(self, event: Any) -> None:
        if isinstance(event.data["dispatcher"], _Kernel):
            self._wait = announced(classes(event.data["args"]))
            self._wait.__enter__()

    def on_end(self, event: Any) -> None:
        if isinstance(event.data["dispatcher"], _Kernel):
            self._wait.__exit__(None, None, None)


event.register("numba:compile", _Announcer())


def inner(function: Callable[..., object], **options: object) -> Any:
    """Return a dispatcher of numba for a function that only other kernels call."""
    return njit(pipeline_class=_InnerCompiler, **options, **WITHOUT_WRAPPERS, **OPTIONS)(function)


_POINTER = "ptr" if llvm.llvm_version_info >= (16,) else "i8*"  # LLVM 15 has typed pointers only


class _InnerCompiler(Compiler):
    def define_pipelines(self) -> list[Any]:
        pipelines = super().define_pipelines()
        if CAN_LEAVE_OUT:
            for pipeline in pipelines:
                pipeline.add_pass_after(_LeaveUnfinished, NopythonTypeInference)
                pipeline.finalize()
        return pipelines


# If numba has renamed the methods that this needs, inner functions are compiled in full: slower, but just as correct.
CAN_LEAVE_OUT = all(
    hasattr(JITCodeLibrary, name)
    for name in (
        "_optimize_final_module",
        "_finalize_final_module",
        "_finalize_dynamic_globals",
        "_verify_declare_only_symbols",
    )
)


@register_pass(mutates_CFG=False, analysis_only=False)
class _LeaveUnfinished(FunctionPass):
    """Leave optimisation and machine code to the kernel that a function becomes part of."""

    _name = "condgrad_leave_unfinished"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        library._optimize_final_module = lambda: None
        library._finalize_final_module = lambda: _finish(library)
        state.library = library
        return True


def _finish(library: Any) -> None:
    """Do what numba does with a finished library, without machine code: only its environments get addresses."""
    library._finalize_dynamic_globals()
    library._verify_declare_only_symbols()
    codegen = library._codegen
    names = [variable.name for variable in library._final_module.global_variables]
    environments = [f'@"{name}" = common global {_POINTER} null' for name in names if name.startswith("_ZN08NumbaEnv")]
    module = str(codegen._create_empty_module(library.name))
    codegen._add_module(llvm.parse_assembly("\n".join([module, *environments])))
    codegen._engine.finalize_object()
    library._finalized = True
