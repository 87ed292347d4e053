"""Operators of vars: `a + b`, `a * 2`, `a @ b`, …

`psrt.graph.layers` puts the layers that they call into `OPERATORS`: layers import vars.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {}


class Arithmetic:
    """Base of `Var`: each operator appends ops to the program of its operands."""

    __array_ufunc__ = None
    """numpy leaves `number * var` to the var."""

    def __add__(self, other: Self | float) -> Self:
        return self._applied("add", self, other)

    def __radd__(self, other: float) -> Self:
        return self._applied("add", self, other)

    def __sub__(self, other: Self | float) -> Self:
        return self._applied("subtract", self, other)

    def __rsub__(self, other: float) -> Self:
        return self._applied("subtract", other, self)

    def __mul__(self, other: Self | float) -> Self:
        return self._applied("multiply", self, other)

    def __rmul__(self, other: float) -> Self:
        return self._applied("multiply", self, other)

    def __truediv__(self, other: Self | float) -> Self:
        return self._applied("divide", self, other)

    def __rtruediv__(self, other: float) -> Self:
        return self._applied("divide", other, self)

    def __pow__(self, other: Self | float) -> Self:
        return self._applied("power", self, other)

    def __matmul__(self, other: Self) -> Self:
        return self._applied("matmul", self, other)

    def __neg__(self) -> Self:
        return self._applied("multiply", self, -1.0)

    def _applied(self, operator: str, one: Any, other: Any) -> Self:
        result: Self = OPERATORS[operator](one, other)
        return result
