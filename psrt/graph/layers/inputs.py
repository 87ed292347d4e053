"""Inputs of a program, and parameters without a layer."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.graph.builder import Layer
from psrt.graph.initializer import Xavier
from psrt.graph.ops import ANY, ROWS
from psrt.graph.param import Param
from psrt.graph.program import Var

DTYPES = ("float32", "float64", "int64")


def data(
    name: str,
    shape: Sequence[int] = (1,),
    dtype: str = "float32",
    ragged: bool = False,
    whole: bool = False,
) -> Var:
    """Declare one input, which is also one slot of a data file, in the order of declaration.

    `shape` is the shape of one example, without the batch; the var is (rows, *shape) of `dtype`
    float32, float64 or int64; data files have float32. A size of -1 may differ from batch to batch;
    such an input is fed, not read from data files. A ragged input has any number of elements per
    example and is fed as `psrt.Ragged`; its var has shape (n,) for scalars (`shape` () or (1,)),
    else (n, *shape).

    A `whole` input has no examples: it is fed an array of `shape`, which every replica gets. Data
    files have none.
    """
    layer = Layer("data", name)
    if dtype not in DTYPES:
        raise layer.error(f"argument dtype is {dtype!r}, psrt feeds {' or '.join(DTYPES)}")
    sizes, ragged = layer.wholes("shape", shape), layer.flag("ragged", ragged)
    if any(size < 1 and (size != ROWS or ragged) for size in sizes):
        raise layer.error(
            f"argument shape {sizes} is not the shape of an example",
            "Give the shape of one example, without the batch; use ragged=True for lists of ids.",
        )
    if whole:
        if ragged or min(sizes, default=1) < 1:
            raise layer.error(f"argument shape {sizes} is not that of an array without examples")
        return layer.var(name, sizes, dtype, "data")
    inner = tuple(ANY if size == ROWS else size for size in sizes)
    full = (ROWS,) if ragged and sizes in ((), (1,)) else (ROWS, *inner)
    return layer.var(name, full, dtype, "data", ragged)


def create_parameter(shape: Sequence[int], param: Param | str | None = None) -> Var:
    """Parameter float32 of `shape` for computations psrt has no layer for; Xavier by default."""
    layer = Layer("create_parameter")
    sizes = layer.wholes("shape", shape)
    if min(sizes, default=0) < 1:
        raise layer.error(f"argument shape {sizes} is not one of sizes of 1 or more")
    return layer.parameter("w_0", sizes, param, Xavier())
