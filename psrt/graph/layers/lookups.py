"""Layers over tables of rows by id."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.graph.builder import Layer
from psrt.graph.derived import trained_ancestor
from psrt.graph.initializer import Uniform
from psrt.graph.param import Param
from psrt.graph.program import Var

DEFAULT_INITIALIZER = Uniform(-0.01, 0.01)


def embedding(
    input: Var,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param: Param | str | None = None,
    dtype: str = "float32",
) -> Var:
    """Look up the row of each id: int64 (rows, k) → (rows, k, width); a ragged input stays ragged.

    Ids may have any shape: (k,), ids that belong to no example, gives (k, width). `size` is (number
    of ids, width). `is_sparse` sends and updates touched rows only. `is_distributed` keeps the
    table on the pservers: any int64 is an id, whatever `size[0]`. The row of `padding_idx` reads as
    zeros and is not trained; a negative `padding_idx` counts from the end of a table of `size[0]`
    rows. An id that is no row raises `ProgramError` in the step.
    """
    layer = Layer("embedding")
    inputs = layer.checked("input", input)
    if dtype != "float32":
        raise layer.error(f"argument dtype is {dtype!r}, tables hold float32")
    table = _table(layer, inputs, size, is_sparse, is_distributed, padding_idx, param)
    return layer.op("embedding", {"ids": input, "table": table}, padding_id=_padding(layer, table))


def slot_embeddings(
    inputs: Sequence[Var],
    size: Sequence[int],
    pool: str = "sum",
    is_sparse: bool = True,
    is_distributed: bool = True,
    padding_idx: int | None = None,
    param: Param | str | None = None,
) -> Var:
    """Embed many slots from one table, pool and join them: → (rows, slots · width), in one op.

    Computes `embedding` and `sequence_pool` of each input, then `concat`. Inputs are int64, ragged
    or (rows, k). `pool` is one of those of `sequence_pool`.
    """
    layer = Layer("slot_embeddings")
    slots = layer.checked("inputs", inputs)
    table = _table(layer, slots, size, is_sparse, is_distributed, padding_idx, param)
    return layer.op(
        "slot_embeddings",
        {"ids": slots, "table": table},
        pool=pool,
        padding_id=_padding(layer, table),
    )


def weighted_embedding(
    input: Var,
    values: Var,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param: Param | str | None = None,
) -> Var:
    """Weighted sum Σ value · row over the ids of each example: → (rows, width), in one op.

    It serves `index:value` data: a linear model with width 1, the factors of a factorization
    machine with more. `input` is int64, ragged or (rows, k); `values` are floats of its shape.
    """
    layer = Layer("weighted_embedding")
    inputs = layer.checked("input", input)
    table = _table(layer, inputs, size, is_sparse, is_distributed, padding_idx, param)
    return layer.op(
        "weighted_embedding",
        {"ids": input, "values": values, "table": table},
        padding_id=_padding(layer, table),
    )


def _table(
    layer: Layer,
    inputs: Sequence[Var],
    size: Sequence[int],
    is_sparse: bool,
    is_distributed: bool,
    padding_idx: int | None,
    param: Param | str | None,
) -> Var:
    shape = layer.wholes("size", size)
    if len(shape) != 2 or min(shape) < 1:
        raise layer.error(f"argument size is {shape}, not (number of ids, width)")
    is_distributed = layer.flag("is_distributed", is_distributed)
    rows = None if is_distributed else shape[0]
    table = layer.parameter(
        "w_0",
        shape,
        param,
        DEFAULT_INITIALIZER,
        sparse=layer.flag("is_sparse", is_sparse) or is_distributed,
        distributed=is_distributed,
        padding_id=None if padding_idx is None else _row(layer, padding_idx, rows),
    )
    _check_fed(layer, table, inputs)
    return table


def _row(layer: Layer, padding_idx: int, rows: int | None) -> int:
    """Id of the padding; a negative one counts from the end of a table of `rows` rows."""
    row = layer.whole("padding_idx", padding_idx)
    if rows is None:
        return row
    if not -rows <= row < rows:
        raise layer.error(
            f"argument padding_idx is {row}, which is no row of a table of {rows} rows"
        )
    return row % rows


def _padding(layer: Layer, table: Var) -> int | None:
    return layer.program.parameters[table.name].padding_id


def _check_fed(layer: Layer, table: Var, inputs: Sequence[Var]) -> None:
    """Refuse trained ids: rows of a sparse table are fetched before the step."""
    if not layer.program.parameters[table.name].sparse:
        return
    for ids in inputs:
        ancestor = trained_ancestor(layer.program, ids.name)
        if ancestor:
            raise layer.error(
                f"argument input is {ids.name}, which is computed from {ancestor}; ids of a sparse "
                "table are fed, or computed from data alone",
                "Look up such ids, or use is_sparse=False.",
            )
