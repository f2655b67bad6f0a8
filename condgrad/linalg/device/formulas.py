"""The formulas of a loss in CUDA C: the same three methods that NumPy and the kernels of the processor use.

A loss writes ``value``, ``derivative`` and ``second_derivative`` once, in Python, as plain formulas of numbers. This
module reads their source and writes it as C: assignments, choices and arithmetic. So a user's own loss runs on a device
as well. The parameters of the loss become an array, so that one compiled text serves all their values.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import textwrap
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from condgrad.compiled import where
from condgrad.compiled.elementary import exp, log1p_of_fraction

METHODS = ("value", "derivative", "second_derivative")

# Functions of numbers that a formula may call, and their names in C.
_FUNCTIONS: dict[Any, str] = {
    exp: "exp",
    log1p_of_fraction: "log1p",
    abs: "fabs",
    min: "fmin",
    max: "fmax",
    float: "",
    np.exp: "exp",
    np.expm1: "expm1",
    np.log: "log",
    np.log1p: "log1p",
    np.sqrt: "sqrt",
    np.abs: "fabs",
    np.tanh: "tanh",
    np.maximum: "fmax",
    np.minimum: "fmin",
    math.exp: "exp",
    math.expm1: "expm1",
    math.log: "log",
    math.log1p: "log1p",
    math.sqrt: "sqrt",
    math.fabs: "fabs",
    math.tanh: "tanh",
    math.erf: "erf",
}
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


@functools.cache
def source_of(cls: type) -> str:
    """Return the three formulas of a loss class as functions of ``theta`` (its parameters), p and y in C.

    Raises
    ------
    TypeError
        If a formula uses something that has no meaning on a device.
    """
    return "\n".join(_function(cls, name) for name in METHODS)


def parameters_of(loss: Any) -> np.ndarray:
    """Return the numbers that the formulas call ``theta``; at least one, because C has no empty arrays."""
    return np.array([float(getattr(loss, name)) for name in _fields(type(loss))] or [0.0])


def _fields(cls: type) -> tuple[str, ...]:
    fields: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]  # losses are NamedTuples
    return fields


def _function(cls: type, name: str) -> str:
    method: FunctionType = inspect.unwrap(getattr(cls, name))
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(method))).body
    except (OSError, TypeError) as error:
        raise TypeError(
            f"the source of {cls.__name__}.{name} cannot be read, so the loss cannot run on a device; "
            "define it in a file, or leave device out."
        ) from error
    assert isinstance(definition, ast.FunctionDef)
    return _Writer(cls, method, definition).function()


class _Writer:
    """Writes one method as a function in C."""

    def __init__(self, cls: type, method: FunctionType, definition: ast.FunctionDef) -> None:
        self.cls, self.method, self.definition = cls, method, definition
        self.self_name, *self.arguments = (argument.arg for argument in definition.args.args)
        self.locals: dict[str, None] = {}  # in the order of their first assignment

    def function(self) -> str:
        body = self._block(self.definition.body)
        parameters = "".join(f", double {_renamed(name)}" for name in self.arguments)
        declared = [_renamed(name) for name in self.locals if name not in self.arguments]
        lines = [f"__device__ __forceinline__ double {self.definition.name}(const double* theta{parameters}) {{"]
        lines += [f"    double {', '.join(declared)};"] if declared else []
        return "\n".join([*lines, *body, "}"])

    def _block(self, statements: list[ast.stmt]) -> list[str]:
        return [f"    {line}" for statement in statements for line in self._statement(statement)]

    def _statement(self, node: ast.stmt) -> list[str]:
        match node:
            case ast.Expr(value=ast.Constant()):  # a docstring
                return []
            case ast.Return(value=ast.expr() as value):
                return [f"return {self._expression(value)};"]
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return [self._assignment(name, self._expression(value))]
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                return self._assign_together(names, values)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if type(op) in _ARITHMETIC:
                return [f"{_renamed(name)} {_ARITHMETIC[type(op)]}= {self._expression(value)};"]
            case ast.If(test=test, body=body, orelse=orelse):
                lines = [f"if ({self._expression(test)}) {{", *self._block(body), "}"]
                return lines + (["else {", *self._block(orelse), "}"] if orelse else [])
        raise self._refusal(node)

    def _assign_together(self, names: list[ast.expr], values: list[ast.expr]) -> list[str]:
        """Assign several names at once; none of the values may use a name that is assigned here."""
        assigned = [name.id for name in names if isinstance(name, ast.Name)]
        used = {part.id for value in values for part in ast.walk(value) if isinstance(part, ast.Name)}
        if len(assigned) != len(values) or len(names) != len(values) or used & set(assigned):
            raise self._refusal(names[0])
        pairs = zip(assigned, values, strict=True)
        return [self._assignment(name, self._expression(value)) for name, value in pairs]

    def _assignment(self, name: str, value: str) -> str:
        self.locals[name] = None
        return f"{_renamed(name)} = {value};"

    def _expression(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return _number(value)
            case ast.Name(id=name):
                return _renamed(name) if name in self.locals or name in self.arguments else self._constant(node)
            case ast.Attribute(value=ast.Name(id=name), attr=field) if name == self.self_name:
                return self._parameter(node, field)
            case ast.Attribute():
                return self._constant(node)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return f"pow({self._expression(left)}, {self._expression(right)})"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return f"({self._expression(left)} {_ARITHMETIC[type(op)]} {self._expression(right)})"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self._expression(operand)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"(!{self._expression(operand)})"
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                return f"({self._expression(left)} {_COMPARISONS[type(op)]} {self._expression(right)})"
            case ast.BoolOp(op=op, values=values):
                sign = " && " if isinstance(op, ast.And) else " || "
                return f"({sign.join(map(self._expression, values))})"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._choice(test, body, orelse)
            case ast.Call(func=func, args=args, keywords=[]):
                return self._call(func, args)
        raise self._refusal(node)

    def _parameter(self, node: ast.expr, field: str) -> str:
        fields = _fields(self.cls)
        return f"theta[{fields.index(field)}]" if field in fields else self._constant(node)

    def _choice(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> str:
        return f"({self._expression(test)} ? {self._expression(body)} : {self._expression(orelse)})"

    def _call(self, func: ast.expr, args: list[ast.expr]) -> str:
        called = self._meaning(func)
        if called is where and len(args) == 3:
            return self._choice(*args)
        if isinstance(called, Callable) and called in _FUNCTIONS:  # type: ignore[arg-type]
            return f"{_FUNCTIONS[called]}({', '.join(map(self._expression, args))})"
        match func:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if name == self.self_name and method in METHODS:
                if METHODS.index(method) < METHODS.index(self.definition.name):  # it is written before this one
                    return f"{method}(theta, {', '.join(map(self._expression, args))})"
        raise self._refusal(func)

    def _constant(self, node: ast.expr) -> str:
        value = self._meaning(node)
        if isinstance(value, int | float | np.floating | np.integer):
            return _number(float(value))
        raise self._refusal(node)

    def _meaning(self, node: ast.expr) -> object:
        """Return the object that a name, or an attribute of a module or of the loss, stands for."""
        match node:
            case ast.Name(id=name):
                if name == self.self_name:
                    return self.cls
                scope = inspect.getclosurevars(self.method)
                return {**scope.builtins, **scope.globals, **scope.nonlocals}.get(name)
            case ast.Attribute(value=owner, attr=name):
                holder = self._meaning(owner)
                return vars(holder).get(name) if isinstance(holder, ModuleType | type) else None
        return None

    def _refusal(self, node: ast.AST) -> TypeError:
        name = f"{self.cls.__name__}.{self.definition.name}"
        return TypeError(
            f"{name} uses {ast.unparse(node)!r}, which has no meaning on a device; "
            "write it as a formula of numbers, with condgrad.compiled.where for choices, or leave device out."
        )


def _renamed(name: str) -> str:
    """Return the name of a variable in C, where words such as ``short`` have a meaning."""
    return f"{name}_"


def _number(value: float) -> str:
    value = float(value)
    if math.isfinite(value):
        return repr(value)
    return "NAN" if math.isnan(value) else "INFINITY" if value > 0.0 else "(-INFINITY)"
