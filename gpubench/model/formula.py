"""Arithmetic as text: ``2 * size**2 * 8 / workers``."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"min": min, "max": max, "ceil": math.ceil}


class Formula:
    """Numbers, names, ``+ - * / // **``, ``min max ceil`` and ``A if CONDITION else B``.

    A condition is a value: true unless it is zero, empty or false.

    Args:
        names: all names that may stand in it.

    Raises:
        ValueError: the text holds something else.
    """

    def __init__(self, text: str, names: set[str]) -> None:
        self.text = text
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise ValueError(f"no arithmetic: {error.msg}") from None
        for node in _parts(self._tree):
            if isinstance(node, ast.Name) and node.id not in names:
                raise ValueError(f"no '{node.id}' (there is: {', '.join(sorted(names))})")

    def __call__(self, values: Mapping[str, Any]) -> float:
        """Its value; raises ArithmeticError and TypeError."""
        return float(_value(self._tree, values))


def _parts(node: ast.expr) -> list[ast.expr]:
    """The node and all below it; raises ValueError for what isn't known."""
    match node:
        case ast.Constant(value=int() | float()) | ast.Name():
            inner: list[ast.expr] = []
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            inner = [left, right]
        case ast.UnaryOp(op, operand) if type(op) in _OPERATORS:
            inner = [operand]
        case ast.IfExp(test, body, orelse):
            inner = [test, body, orelse]
        case ast.Call(func=ast.Name(id), args=args, keywords=[]) if id in _FUNCTIONS and args:
            inner = args
        case _:
            raise ValueError(f"'{ast.unparse(node)}' is more than arithmetic")
    return [node, *(part for child in inner for part in _parts(child))]


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id):
            value = values[id]
            return (
                float(value) if isinstance(value, int) else value
            )  # powers of floats overflow, those of int don't end
        case ast.BinOp(left, op, right):
            return _OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.UnaryOp(op, operand):
            return _OPERATORS[type(op)](_value(operand, values))
        case ast.IfExp(test, body, orelse):
            return _value(body if _value(test, values) else orelse, values)
        case ast.Call(func=ast.Name(id), args=args):
            return _FUNCTIONS[id](*(_value(argument, values) for argument in args))
    raise AssertionError(node)
