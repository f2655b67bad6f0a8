"""Errands: what a kernel can have done without knowing how, by code that was compiled apart from it.

A kernel is compiled for the types of its arguments. One that searches for the points of a path needs the loss of the
samples, and would be compiled again for every loss, which takes seconds. So it is given an :class:`Errand` instead: the
address of a small kernel that was compiled for the loss, and the address of its arguments. It runs the errand as C
calls a function by its pointer.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple, Protocol

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from condgrad.compiled.borrowing import without_owners
from condgrad.compiled.dispatchers import WITHOUT_WRAPPERS, inner, kernel
from condgrad.compiled.methods import compiled

_SPACE = 1024  # numbers of eight bytes for which there is memory: those of a hundred arrays
_CODE = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, ir.IntType(64)])  # of every errand: f(arguments, what)


class Service(Protocol):
    """A compiled object of arrays and numbers, and what it does with them."""

    def serve(self, what: int) -> None:
        """Do what is wanted; the results go into the arrays."""


@compiled
class Errand(NamedTuple):
    """Where the code of a service and its arguments are; :class:`Bound` keeps them there."""

    code: int
    arguments: int

    def run(self, what):
        """Let the service do what is wanted."""
        _run(self.code, self.arguments, what)


class Bound:
    """A service at an address; as long as this object lives, its errand can be run.

    Attributes
    ----------
    errand : Errand
    """

    def __init__(self, service: Service) -> None:
        self.service, self._memory = service, np.zeros(_SPACE)
        self.errand = Errand(*_bind(service, self._memory))
        _bound[self.errand.arguments] = self


_bound: weakref.WeakValueDictionary[int, Bound] = weakref.WeakValueDictionary()  # by address, for plain Python


def _run(code: int, arguments: int, what: int) -> None:
    _bound[arguments].service.serve(what)


@overload(_run, jit_options=WITHOUT_WRAPPERS)
def _run_in_kernels(code, arguments, what):
    return lambda code, arguments, what: _call(np.int64(code), np.int64(arguments), np.int64(what))


@kernel
def _bind(service, memory):
    """Copy the service to the memory; return the address of its code, and that of the copy."""
    return _copy_and_locate(service, memory), memory.ctypes.data


def _serve(service, what):
    service.serve(what)


_serve_in_kernels = inner(_serve)


@intrinsic
def _call(typing_context, code, arguments, what):
    def codegen(context, builder, signature, args):
        function = builder.inttoptr(args[0], _CODE.as_pointer())
        builder.call(function, [builder.inttoptr(args[1], cgutils.voidptr_t), args[2]])
        return context.get_dummy_value()

    return types.none(code, arguments, what), codegen


def _copy_and_locate(service: Service, memory: np.ndarray) -> int:
    return 0  # plain Python has no address


@overload(_copy_and_locate, jit_options=WITHOUT_WRAPPERS)
def _copy_and_locate_in_kernels(service, memory):
    return lambda service, memory: _locate(service, memory)


@intrinsic
def _locate(typing_context, service, memory):
    callee = types.Dispatcher(_serve_in_kernels)
    of_serve = callee.get_call_type(typing_context, (service, types.int64), {})

    def codegen(context, builder, signature, args):
        if context.get_abi_sizeof(context.get_data_type(service)) > 8 * _SPACE:
            raise ValueError(f"The fields of {service.name} take more than {_SPACE} numbers.")
        place = builder.bitcast(
            context.make_array(memory)(context, builder, args[1]).data, context.get_data_type(service).as_pointer()
        )
        context.pack_value(builder, service, without_owners(context, builder, service, args[0]), place)
        return builder.ptrtoint(_code_of(context, builder.module, service, of_serve), ir.IntType(64))

    return types.int64(service, memory), codegen


def _code_of(context: Any, module: Any, typ: Any, of_serve: Any) -> Any:
    """Return a new function of the module that loads a service from an address and lets it serve."""
    compiled_serve = _serve_in_kernels.get_compile_result(of_serve)
    context.add_linking_libs((compiled_serve.library,))
    function = ir.Function(module, _CODE, module.get_unique_name("errand"))
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    place = builder.bitcast(function.args[0], context.get_data_type(typ).as_pointer())
    service = context.unpack_value(builder, typ, place)
    # Kernels raise nothing, so the status that a call returns tells nothing.
    context.call_internal_no_propagate(builder, compiled_serve.fndesc, of_serve, (service, function.args[1]))
    builder.ret_void()
    return function
