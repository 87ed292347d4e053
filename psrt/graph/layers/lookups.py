"""Layers over tables of rows by id."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.graph.builder import Layer, Param
from psrt.graph.derived import trained_ancestor
from psrt.graph.initializer import Uniform
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
    """The row of each id: int64 (rows, k) → (rows, k, width); a ragged input stays ragged.

    Ids may have any shape: (k,), ids that belong to no example, gives (k, width). `size` is (number
    of ids, width). `is_sparse` sends and updates only touched rows. `is_distributed` keeps the
    table on the pservers alone: any int64 is an id, whatever `size[0]`. The row of `padding_idx`
    reads as zeros and is not trained.
    """
    layer = Layer("embedding")
    inputs = layer.checked("input", input)
    if dtype != "float32":
        raise layer.error(f"argument dtype is {dtype!r}, tables hold float32")
    table = _table(layer, size, is_sparse, is_distributed, padding_idx, param)
    _check_fed(layer, table, inputs)
    return layer.op("embedding", {"ids": input, "table": table}, padding_id=padding_idx)


def slot_embeddings(
    inputs: Sequence[Var],
    size: Sequence[int],
    pool: str = "sum",
    is_sparse: bool = True,
    is_distributed: bool = True,
    padding_idx: int | None = None,
    param: Param | str | None = None,
) -> Var:
    """Embed many slots by one table and pool each: → (rows, slots · width), in one op.

    The same as `embedding`, `sequence_pool` for each input and `concat`. An input is int64,
    ragged or (rows, k). `pool` is one of those of `sequence_pool`.
    """
    layer = Layer("slot_embeddings")
    slots = layer.checked("inputs", inputs)
    table = _table(layer, size, is_sparse, is_distributed, padding_idx, param)
    _check_fed(layer, table, slots)
    return layer.op(
        "slot_embeddings", {"ids": slots, "table": table}, pool=pool, padding_id=padding_idx
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
    """Σ value · row over the ids of each example: → (rows, width), in one op.

    What `index:value` data asks for: with width 1 a linear model, with more the factors of a
    factorization machine. `input` is int64, ragged or (rows, k); `values` are floats like it.
    """
    layer = Layer("weighted_embedding")
    inputs = layer.checked("input", input)
    table = _table(layer, size, is_sparse, is_distributed, padding_idx, param)
    _check_fed(layer, table, inputs)
    return layer.op(
        "weighted_embedding",
        {"ids": input, "values": values, "table": table},
        padding_id=padding_idx,
    )


def _table(
    layer: Layer,
    size: Sequence[int],
    is_sparse: bool,
    is_distributed: bool,
    padding_id: int | None,
    param: Param | str | None,
) -> Var:
    if len(size) != 2 or min(size) < 1:
        raise layer.error(f"argument size is {tuple(size)}, not (number of ids, width)")
    return layer.parameter(
        "w_0",
        (size[0], size[1]),
        param,
        DEFAULT_INITIALIZER,
        sparse=is_sparse or is_distributed,
        distributed=is_distributed,
        padding_id=padding_id,
    )


def _check_fed(layer: Layer, table: Var, inputs: Sequence[Var]) -> None:
    """Rows of a sparse table are fetched before the step, so their ids must be known by then."""
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
