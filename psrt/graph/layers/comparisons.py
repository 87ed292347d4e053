"""Comparisons of vars of one dtype, and logic of their results: bools, without a gradient.

Dimensions of 1 are broadcast, as by elementwise arithmetic.
"""

from __future__ import annotations

from psrt.graph.builder import Layer
from psrt.graph.program import Var


def less_than(x: Var, y: Var) -> Var:
    """True where x < y, elementwise."""
    return _of_two("less_than", x, y)


def less_equal(x: Var, y: Var) -> Var:
    """True where x ≤ y, elementwise."""
    return _of_two("less_equal", x, y)


def greater_than(x: Var, y: Var) -> Var:
    """True where x > y, elementwise."""
    return _of_two("greater_than", x, y)


def greater_equal(x: Var, y: Var) -> Var:
    """True where x ≥ y, elementwise."""
    return _of_two("greater_equal", x, y)


def equal(x: Var, y: Var) -> Var:
    """True where x = y, elementwise."""
    return _of_two("equal", x, y)


def not_equal(x: Var, y: Var) -> Var:
    """True where x ≠ y, elementwise."""
    return _of_two("not_equal", x, y)


def logical_and(x: Var, y: Var) -> Var:
    """True where both are, elementwise."""
    return _of_two("logical_and", x, y)


def logical_or(x: Var, y: Var) -> Var:
    """True where one or both are, elementwise."""
    return _of_two("logical_or", x, y)


def logical_xor(x: Var, y: Var) -> Var:
    """True where one of both is, elementwise."""
    return _of_two("logical_xor", x, y)


def logical_not(x: Var) -> Var:
    """True where x is False, elementwise."""
    return Layer("logical_not").op("logical_not", {"x": x})


def where(condition: Var, x: Var, y: Var) -> Var:
    """Elements of `x` where `condition` is True, else of `y`, which has the type of `x`.

    Both are computed. Gradients flow to the elements that were taken.
    """
    return Layer("where").op("where", {"condition": condition, "x": x, "y": y})


def _of_two(kind: str, x: Var, y: Var) -> Var:
    return Layer(kind).op(kind, {"x": x, "y": y}, axis=-1)
