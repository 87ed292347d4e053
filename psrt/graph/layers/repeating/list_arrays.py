"""Arrays whose elements differ in rows."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.graph.builder import Layer, Vars
from psrt.graph.program import Var


def create_lists(shape: Sequence[int], dtype: str = "float32") -> Var:
    """Array without elements, for `list_write`; elements are (rows, *`shape`), of any rows."""
    layer = Layer("create_lists")
    return layer.op("empty_lists", {}, shape=layer.wholes("shape", shape), dtype=dtype)


def list_write(x: Var, i: Var, array: Var, condition: Var | None = None) -> Var:
    """`array` with the rows of `x` as element `i`; missing elements before it have no rows.

    Where a bool `condition` is False the array stays as it is. `i` is int64, one number.
    """
    inputs: dict[str, Vars] = {"array": array, "x": x, "i": i}
    if condition is not None:
        inputs["condition"] = condition
    return Layer("list_write").op("list_write", inputs)


def list_read(array: Var, i: Var) -> Var:
    """Rows of element `i` of `array`; a step fails for one that does not exist."""
    return Layer("list_read").op("list_read", {"array": array, "i": i})


def list_count(array: Var) -> Var:
    """Number of elements of an array of `list_write`, int64 (1,)."""
    return Layer("list_count").op("list_count", {"array": array})


__all__ = ["create_lists", "list_count", "list_read", "list_write"]
