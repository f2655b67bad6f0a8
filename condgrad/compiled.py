"""Let compiled kernels call the plain methods of ``@compiled`` NamedTuple classes.

A loss, a constraint set, a vector, a view of the data and a solver are ``typing.NamedTuple`` classes with ordinary
methods. Inside a kernel, ``obj.method(...)`` is resolved at compile time to the method written in the class of ``obj``
and inlined; outside it is ordinary Python, which a debugger can step through. This is the only file that knows the
inside of numba.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import importlib
import inspect
import pathlib
import reprlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.caching import FunctionCache
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_builtin, overload

_PACKAGE = pathlib.Path(__file__).parent
# Sums may be reordered (they vectorise then), but nan and inf keep their meaning: a kernel must not hide them.
# A loop that sums must not store as well: whether such a loop runs vectorised depends on how close in memory the arrays
# lie, and then two equal runs round their sums differently.
_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
_compiled_classes: set[type] = set()
_unfinished: set[str] = set()  # modules outside the package that were being imported when they defined such a class


def compiled(cls: type) -> Any:
    """Make the methods of a NamedTuple class callable from kernels.

    Outside kernels, the constructor replaces the fields by those that ``self.prepare()`` returns where the class has
    it (that must leave prepared fields as they are: numba hands them back through the constructor), turns fields
    annotated ``float`` into floats (a kernel is compiled for the types it meets: ``L1Ball(10)`` and ``L1Ball(10.0)``
    must be one) and then calls ``self.check()`` where the class has it, so that a wrong parameter is reported where
    it was written.
    """
    if not cls._fields:  # type: ignore[attr-defined]
        cls = _with_placeholder(cls)
    _check_on_construction(cls)
    _give_own_name(cls)
    _compiled_classes.add(cls)
    if cls.__module__.partition(".")[0] != __package__:
        _unfinished.add(cls.__module__)
    for base in cls.__mro__:
        for name, method in vars(base).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                _lower_method(name)
    return cls


def fill_in(cls: type, protocol: type) -> type:
    """Give a NamedTuple class, which cannot inherit, the methods and attributes of ``protocol`` that it leaves out."""
    for base in protocol.__mro__:
        for name, default in vars(base).items():
            if not name.startswith("_") and name not in vars(cls):
                setattr(cls, name, default)
    return cls


def is_compiled(obj: object) -> bool:
    """Tell whether kernels understand ``obj``: numbers, arrays and ``@compiled`` objects, down to the last field."""
    return type(obj) in _compiled_classes and all(
        part is None or isinstance(part, (bool, int, float, np.generic, np.ndarray)) or is_compiled(part)
        for part in obj  # type: ignore[attr-defined]
    )


def is_importing() -> bool:
    """Tell whether a user's module that defines a compiled class is still being imported.

    numba looks up the module of a class when it compiles. In another thread it would wait for the import to end, and
    the import for that thread.
    """
    for name in tuple(_unfinished):
        if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            return True
        _unfinished.discard(name)
    return False


def kernel(function: Callable) -> Callable:
    """Compile ``function`` with numba, cached on disk together with all the sources it was built from."""
    dispatcher = njit(**_OPTIONS)(function)
    if _CAN_CACHE and dispatcher is not function:  # NUMBA_DISABLE_JIT=1 hands the function back
        dispatcher._cache = _KernelCache(function)
    return dispatcher


def where(condition: Any, a: Any, b: Any) -> Any:
    """``np.where`` on arrays; a plain choice on scalars inside kernels, twenty times faster there.

    >>> where(np.array([True, False]), 1.0, 2.0)
    array([1., 2.])
    """
    return np.where(condition, a, b)


def scalar_form(of: Callable) -> Callable:
    """Make kernels run the decorated function of numbers where their source says ``of``, rounded just as written."""

    def register(function: Callable) -> Callable:
        options = {**_OPTIONS, "fastmath": {"contract"}, "forceinline": True}
        overload(of, jit_options=options, strict=False)(lambda *args: function)
        return of

    return register


@overload(where)
def _where_scalar(condition, a, b):
    return lambda condition, a, b: a if condition else b


def bits_of(x: float) -> int:
    """Return the 64 bits of a float as an integer: floats that are not negative are ordered as these integers are.

    A maximum of integers vectorises; one of floats does not, because of nan.

    >>> bits_of(1.0) < bits_of(1.5)
    True
    """
    return int(np.float64(x).view(np.int64))


@overload(bits_of)
def _bits_of_scalar(x):
    return lambda x: _bitcast(float(x))


def float_of(bits: int) -> float:
    """Return the float with the given 64 bits.

    >>> float_of(bits_of(1.5))
    1.5
    """
    return float(np.int64(bits).view(np.float64))


@overload(float_of)
def _float_of_scalar(bits):
    return lambda bits: _bitcast(np.int64(bits))


@intrinsic
def _bitcast(typing_context, x):
    to = types.int64 if x == types.float64 else types.float64

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(to))

    return to(x), codegen


def _with_placeholder(cls: type) -> type:
    """Return ``cls`` with one unused field: numba cannot bind methods to an empty tuple."""
    copy = collections.namedtuple(cls.__name__, "placeholder", defaults=(0,), module=cls.__module__)
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if not name.startswith("_") and name not in ("count", "index"):
                setattr(copy, name, value)
    copy.__doc__, copy.__qualname__ = cls.__doc__, cls.__qualname__
    copy.__repr__ = lambda self: f"{cls.__name__}()"  # type: ignore[method-assign]
    return copy


def _give_own_name(cls: Any) -> None:
    """Number a class whose name is taken: numba's dispatcher knows namedtuples apart by name and field types alone.

    Without this, a loss defined again in a notebook would go on running its first definition.
    """
    shown = cls.__name__
    taken = sum(shown == other.__qualname__.rpartition(".")[2] for other in _compiled_classes)
    if taken:
        cls.__name__ = f"{shown}_{taken + 1}"
        if cls.__repr__.__module__ == "collections":  # the one that every namedtuple gets, which shows __name__
            fields = ", ".join(f"{name}=%r" for name in cls._fields)
            cls.__repr__ = lambda self: f"{shown}({fields % tuple(self)})"


def _check_on_construction(cls: Any) -> None:
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
        if any(type(self[k]) is not float for _, k in positions):
            fields = list(self)
            for name, k in positions:
                fields[k] = _as_float(cls.__name__, name, self[k])
            self = plain_new(cls_, *fields)
        if check is not None:
            check(self)
        return self

    cls.__new__ = new
    cls._make = classmethod(lambda cls_, fields: cls_(*fields))  # what _replace calls: it must check too


def _as_float(owner: str, name: str, value: Any) -> float:
    if isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_, np.complexfloating)):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{name} of {owner} must fit into a float; got an integer that is too large.") from None
    raise TypeError(f"{name} of {owner} must be a real number; got {' '.join(reprlib.repr(value).split())}.")


@functools.cache
def _dispatcher(cls: type, name: str) -> Any:
    # LLVM inlines them whatever their size. At a call that remains, references to arrays are counted, atomically: in a
    # small step that would cost more than the arithmetic.
    return njit(forceinline=True, **_OPTIONS)(getattr(cls, name))


@infer_getattr
class _CompiledMethods(AttributeTemplate):
    key = types.BaseNamedTuple

    def generic_resolve(self, typ, name):
        cls = typ.instance_class
        # Other people's namedtuples, and fields named like a method of ours, are none of our business.
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


# Where numba has renamed what _KernelCache builds on, kernels are compiled anew in each process: slower, never stale.
_CAN_CACHE = all(hasattr(FunctionCache, name) for name in ("_index_key", "load_overload", "save_overload"))


class _KernelCache(FunctionCache):
    """numba watches the kernel's own file only; watch the package and the argument classes' files too.

    Kernels with classes from outside the package go to index files of their own, one per set of modules: numba's
    index is a pickle, and a process that cannot import one of its classes could not read any of it.
    """

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        self._function = function
        self._siblings: dict[str, _KernelCache | None] = {}

    def _index_key(self, sig, codegen):
        sources = tuple(_source_hash(cls) for t in sig for cls in _classes(t))
        return super()._index_key(sig, codegen), _package_hash(), sources

    def load_overload(self, sig, target_context):
        cache = self._cache_for(sig)
        if cache is None:
            return None
        try:
            return FunctionCache.load_overload(cache, sig, target_context)
        except (AttributeError, ImportError):  # the index names a class that an earlier version of the package had
            cache.flush()
            return None

    def save_overload(self, sig, data):
        cache = self._cache_for(sig)
        if cache is not None:
            FunctionCache.save_overload(cache, sig, data)

    def _cache_for(self, sig) -> _KernelCache | None:
        """Return the cache that the kernel for ``sig`` belongs to; None where its classes have no address."""
        foreign = {cls for t in sig for cls in _classes(t) if cls.__module__.partition(".")[0] != __package__}
        if not all(_can_find(cls) for cls in foreign):
            return None
        modules = ",".join(sorted({cls.__module__ for cls in foreign}))
        if not modules:
            return self
        if modules not in self._siblings:
            self._siblings[modules] = self._sibling(modules)
        return self._siblings[modules]

    def _sibling(self, modules: str) -> _KernelCache | None:
        sibling = _KernelCache(self._function)
        try:
            suffix = hashlib.sha256(modules.encode()).hexdigest()[:16]
            file = sibling._cache_file
            sibling._cache_file = type(file)(
                cache_path=sibling._cache_path,
                filename_base=f"{sibling._impl.filename_base}-{suffix}",
                source_stamp=sibling._impl.locator.get_source_stamp(),
            )
        except (AttributeError, TypeError):  # numba's inside moved: do without
            return None
        return sibling


def _classes(numba_type: Any) -> Iterator[type]:
    """Yield the NamedTuple classes a numba type is made of, nested ones included."""
    if isinstance(numba_type, types.BaseNamedTuple):
        yield numba_type.instance_class
    if isinstance(numba_type, types.BaseTuple):
        for part in numba_type.types:
            yield from _classes(part)


@functools.cache
def _can_find(cls: type) -> bool:
    """Tell whether another process will find ``cls`` again: a class of a notebook has no address."""
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        return False
    module = sys.modules.get(cls.__module__) or importlib.import_module(cls.__module__)
    return getattr(module, cls.__qualname__, None) is cls


@functools.cache
def _package_hash() -> str:
    """Hash the sources that can reach a kernel: those that mention this module."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        source = path.read_bytes()
        if b"compiled" in source:
            digest.update(source)
    return digest.hexdigest()


@functools.cache
def _source_hash(cls: type) -> str:
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest() if file else ""
