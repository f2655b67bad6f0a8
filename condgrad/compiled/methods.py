"""Let compiled kernels call the plain methods of ``@compiled`` NamedTuple classes.

A loss, a constraint set, a vector, a view of the data and a solver are ``typing.NamedTuple`` classes with ordinary
methods. Inside a kernel, ``obj.method(...)`` is resolved at compile time to the method written in the class of ``obj``
and inlined; outside it is ordinary Python, which a debugger can step through.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import numpy as np
from numba import types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate
from numba.extending import infer_getattr, lower_builtin

from condgrad.compiled.construction import check_on_construction, give_own_name, with_placeholder
from condgrad.compiled.dispatchers import inner
from condgrad.compiled.sources import is_ours

_compiled_classes: set[type] = set()
_unfinished: set[str] = set()  # modules outside the package that were being imported when they defined such a class


def compiled(cls: type) -> type:
    """Make the methods of a NamedTuple class callable from kernels.

    Outside kernels, the constructor takes three steps. It replaces the fields by those that ``self.prepare()`` returns,
    if the class has it; this must not change prepared fields, as numba calls the constructor with them again. It
    converts fields annotated ``float`` to floats: a kernel is compiled for types, and ``L1Ball(10)`` must have those of
    ``L1Ball(10.0)``. It calls ``self.check()``, if the class has it, so that a wrong parameter is reported where it was
    written.
    """
    if not cls._fields:  # type: ignore[attr-defined]
        cls = with_placeholder(cls)
    check_on_construction(cls)
    give_own_name(cls, _compiled_classes)
    _compiled_classes.add(cls)
    if not is_ours(cls.__module__):
        _unfinished.add(cls.__module__)
    for base in cls.__mro__:
        for name, method in vars(base).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                _lower_method(name)
    return cls


def is_compiled(obj: object) -> bool:
    """Return whether kernels can use ``obj``: a ``@compiled`` object of numbers, arrays and such objects only."""
    return type(obj) in _compiled_classes and all(
        part is None or isinstance(part, (bool, int, float, np.generic, np.ndarray)) or is_compiled(part)
        for part in obj  # type: ignore[attr-defined]
    )


def is_importing() -> bool:
    """Return whether a user's module that defines a compiled class is still being imported.

    numba imports the module of a class when it compiles. In another thread it would wait for the import to end, and
    the import would wait for that thread.
    """
    for name in tuple(_unfinished):
        if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            return True
        _unfinished.discard(name)
    return False


@functools.cache
def _dispatcher(cls: type, name: str) -> Any:
    # LLVM inlines methods of any size. A call that is not inlined counts references to arrays, atomically: in a small
    # step that would cost more than the arithmetic.
    return inner(getattr(cls, name), forceinline=True)


@infer_getattr
class _CompiledMethods(AttributeTemplate):
    key = types.BaseNamedTuple

    def generic_resolve(self, typ, name):
        cls = typ.instance_class
        # Skip namedtuples that are not @compiled, and fields with the name of a method of another class.
        if cls not in _compiled_classes or name in typ.fields or not inspect.isfunction(getattr(cls, name, None)):
            return None

        class Method(AbstractTemplate):
            key = (types.BaseNamedTuple, name)

            def generic(self, args, kws):
                callee = types.Dispatcher(_dispatcher(cls, name))
                return callee.get_call_type(self.context, (typ, *args), kws).as_method()

        return types.BoundFunction(Method, typ)


@functools.cache
def _lower_method(name: str) -> None:
    @lower_builtin((types.BaseNamedTuple, name), types.BaseNamedTuple, types.VarArg(types.Any))
    def lower(context, builder, sig, args):
        callee = types.Dispatcher(_dispatcher(sig.args[0].instance_class, name))
        call = context.get_function(callee, sig)
        context.add_linking_libs(getattr(call, "libs", ()))
        return call(builder, args)
