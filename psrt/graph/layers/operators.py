"""Operators of vars as layers: a var or a number on either side, a var on one at least.

The operand with fewer dimensions is broadcast to the other one, aligned at the last dimension.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, TypeGuard

from psrt.graph.layers.dense import matmul
from psrt.graph.layers.elementwise import (
    elementwise_add,
    elementwise_div,
    elementwise_mul,
    elementwise_pow,
    elementwise_sub,
)
from psrt.graph.layers.math import pow, reciprocal, scale
from psrt.graph.program import Var


def add(x: Var, y: Any) -> Any:
    """x + y"""
    if isinstance(y, Var):
        return elementwise_add(*_larger_first(x, y))
    return scale(x, bias=y) if _is_number(y) else NotImplemented


def subtract(x: Any, y: Any) -> Any:
    """x − y"""
    if isinstance(x, Var) and isinstance(y, Var):
        return add(scale(y, -1.0), x) if _is_smaller(x, y) else elementwise_sub(x, y)
    if isinstance(x, Var):
        return scale(x, bias=-y) if _is_number(y) else NotImplemented
    return scale(y, -1.0, bias=x) if _is_number(x) else NotImplemented


def multiply(x: Var, y: Any) -> Any:
    """x · y"""
    if isinstance(y, Var):
        return elementwise_mul(*_larger_first(x, y))
    return scale(x, y) if _is_number(y) else NotImplemented


def divide(x: Any, y: Any) -> Any:
    """x / y"""
    if isinstance(x, Var) and isinstance(y, Var):
        return multiply(reciprocal(y), x) if _is_smaller(x, y) else elementwise_div(x, y)
    if isinstance(x, Var):
        return scale(x, 1.0 / float(y)) if _is_number(y) else NotImplemented
    return scale(reciprocal(y), x) if _is_number(x) else NotImplemented


def power(x: Var, y: Any) -> Any:
    """x to the power y"""
    if isinstance(y, Var):
        return elementwise_pow(x, y)
    return pow(x, float(y)) if _is_number(y) else NotImplemented


def product(x: Var, y: Any) -> Any:
    """Matrix product x · y"""
    return matmul(x, y) if isinstance(y, Var) else NotImplemented


def _is_number(value: object) -> TypeGuard[float]:
    """True for numbers of Python and numpy."""
    return isinstance(value, Real)


def _is_smaller(x: Var, y: Var) -> bool:
    return len(x.shape) < len(y.shape)


def _larger_first(x: Var, y: Var) -> tuple[Var, Var]:
    return (y, x) if _is_smaller(x, y) else (x, y)


OPERATORS = {
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    "divide": divide,
    "power": power,
    "matmul": product,
}
"""By the names that `psrt.graph.arithmetic` uses."""
