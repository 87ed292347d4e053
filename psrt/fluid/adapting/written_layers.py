"""Layers of Fluid that need more than psrt's with other argument names.

Results are Fluid's: ids of one column lose it in a lookup, tables start by Xavier, an AUC of two
columns is that of the second.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from psrt.core.errors import ProgramError
from psrt.core.specs import TableOptions
from psrt.fluid.adapting.declared import declared
from psrt.fluid.adapting.loop_lookups import lookup_in_loop
from psrt.fluid.adapting.nested import declare_nested, fed_lists
from psrt.fluid.adapting.targets import as_rows, in_columns, in_rows
from psrt.fluid.framework import default_main_program, program_guard
from psrt.fluid.names import (
    Variable,
    check_name,
    check_no_text,
    check_shape,
    check_sizes,
    dtype_name,
    unique_name,
)
from psrt.fluid.parameters import ParamAttr, admission_of, attr_of
from psrt.graph import layers as psrt_layers
from psrt.graph.builder import program as psrt_program
from psrt.graph.initializer import Constant, Xavier
from psrt.graph.ops import ROWS


def data(
    name: str,
    shape: Sequence[int],
    append_batch_size: bool = True,
    dtype: str = "float32",
    lod_level: int = 0,
    type: Any = None,
    stop_gradient: bool = True,
) -> Variable:
    """Declare a var that is fed; `shape` is that of an example, or begins with −1 for the batch.

    A fixed size of the batch is not checked; beside a var whose batch is open, a shape of several
    sizes, none of them open, or of 1, is that of one array for the whole batch. `lod_level` 1 takes
    any number of elements per example, 2 any number of lists of such. More levels raise
    `ProgramError`. A var that exists with this type is returned.
    """
    check_name("data", name)
    check_shape("data", shape)
    check_no_text("data", "append_batch_size", append_batch_size, "dtype")
    sizes = [ROWS if size is None else int(size) for size in shape]
    if append_batch_size and ROWS not in sizes:
        sizes = [ROWS, *sizes]
    return _fed(name, sizes, default_main_program().has_open_batch, dtype, lod_level)


def input_data(
    name: str, shape: Sequence[int | None], dtype: str = "float32", lod_level: int = 0
) -> Variable:
    """Declare a var that is fed (`fluid.data`); None or −1 first in `shape` is the batch.

    A shape of 1 is that of one number for the whole batch; for others see `data`.
    """
    check_name("data", name)
    check_shape("data", shape)
    sizes = [ROWS if size is None else int(size) for size in shape]
    is_one = sizes == [1] or default_main_program().has_open_batch
    return _fed(name, sizes, is_one, dtype, lod_level)


def _fed(name: str, sizes: list[int], is_one: bool, dtype: str, lod_level: int) -> Variable:
    """Declare a var of `sizes`, whose first one is that of the batch; if all sizes are fixed and it
    `is_one`, it is one array for the whole batch."""
    program, dtype = default_main_program(), dtype_name(dtype)
    is_open = ROWS in sizes[:1]
    is_fixed = sizes == [1] or (len(sizes) > 1 and ROWS not in sizes)
    whole = is_one and is_fixed and not lod_level
    program.has_open_batch |= is_open
    if not (is_open or whole or lod_level or not sizes):
        program.fixed_batches.setdefault(sizes[0], name)
    example = sizes if whole else sizes[1:]  # a batch may have any size here
    if lod_level > 2:
        raise ProgramError(
            f"layers.data {name} was given lod_level {lod_level}; psrt has lists of lists, 2.",
            hint="Feed each list as a slot of its own.",
        )
    if program.global_block().has_var(name):
        with psrt_program():
            again = psrt_layers.data(name, example, dtype, bool(lod_level), whole)
        if program.graph.vars.get(name) == again:
            return program.variable(name)
    fed = _called(psrt_layers.data, name, example, dtype, bool(lod_level), whole)
    return declare_nested(fed) if lod_level > 1 else fed


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: str = "float32",
    name: str | None = None,
    entry: Any = None,
) -> Variable:
    """Look up the row of each id: (rows, 1) → (rows, width), (rows, k, 1) → (rows, k, width).

    Ids without a last dimension of 1, and ragged ones, get the width behind their dimensions.
    `entry`, one of `fluid.entry_attr`, decides which ids own rows.
    """
    found = lookup(
        input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype, name, entry
    )
    shape = found.var.shape
    found.has_column = False
    if len(shape) < 3 or shape[-2] != 1:
        return found
    return _called(psrt_layers.reshape, found, (*shape[:-2], shape[-1]))


def lookup(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: str = "float32",
    name: str | None = None,
    entry: Any = None,
) -> Variable:
    """Look up the row of each id (`fluid.embedding`): (rows, k) → (rows, k, width).

    A negative padding_idx counts from the end. In the block of a loop the whole table is read, a
    dense parameter.
    """
    program = default_main_program()
    if program.loops or program.steps:
        attr = _attr("embedding", param_attr)
        return lookup_in_loop(input, size, padding_idx, attr, is_distributed)
    if is_distributed and padding_idx is not None and padding_idx < 0:
        padding_idx += size[0]  # to psrt it is an id of its own in such a table
    ids, lengths = fed_lists(input)
    found = _called(
        *(psrt_layers.embedding, ids, size, is_sparse, is_distributed, padding_idx),
        declared(_admitting(_attr("embedding", param_attr), entry), Xavier()),
        dtype_name(dtype),
        layer_name=name or "",
    )
    found.has_column = input.var.ragged and input.var.shape == (ROWS,)
    return found if lengths is None else _called(psrt_layers.sequence_nest, found, lengths)


def _admitting(attr: ParamAttr, entry: Any) -> ParamAttr:
    """`attr` with the admission of `entry`, which overrides its own."""
    admission = admission_of(entry)
    if admission is None:
        return attr
    return replace(attr, table=replace(attr.table or TableOptions(), admission=admission))


def create_parameter(
    shape: Sequence[int],
    dtype: str = "float32",
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Any = None,
) -> Variable:
    """Parameter float32 of `shape`: Xavier by default, a bias 0."""
    check_sizes("create_parameter", shape)
    attr_of(default_initializer)
    if dtype_name(dtype) != "float32":
        raise ProgramError(f"layers.create_parameter was given dtype {dtype}; psrt has float32.")
    given = _attr("create_parameter", name if attr is None else attr)
    default = default_initializer or (Constant(0.0) if is_bias else Xavier())
    return _called(psrt_layers.create_parameter, shape, declared(given, default))


def parameter_in(program: Any, shape: Sequence[int], dtype: Any, attr: ParamAttr) -> Variable:
    """Return a parameter of a program, see `create_parameter`."""
    with program_guard(program):
        return create_parameter(shape, dtype, None, attr)


def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 2**12 - 1,
    topk: int = 1,
    slide_steps: int = 1,
) -> tuple[Variable, Variable, list[Variable]]:
    """AUC of all batches since the startup program, AUC of the last `slide_steps` batches, and the
    four counts: positives and negatives of the second, and of the first.

    `input` (rows, 2) has the probability of class 1 in its second column, (rows, 1) in its only
    one; `label` (rows, 1) is 0 or 1. With `slide_steps` 0 both are that of all batches. The counts
    are state vars `_generated_var_0` to `_generated_var_3`, or of further numbers, as in Fluid.
    """
    counts = [unique_name.generate("_generated_var") for _ in range(4)]
    scores = input = as_rows(input)
    label = as_rows(label)
    if input.shape[-1] == 2:
        scores = _called(psrt_layers.slice, input, [1], [1], [2])
    if label.dtype == "int64":
        label = label.astype("float32")
    options = {"bins": num_thresholds + 1, "curve": curve}
    running = _called(psrt_layers.auc, scores, label, **options)
    if slide_steps:
        of_last = _called(psrt_layers.sliding_auc, scores, label, slide_steps, **options)
    else:
        of_last = _called(psrt_layers.auc, scores, label, **options)
    return running, of_last, [*_counts(of_last, counts[:2]), *_counts(running, counts[2:])]


def _counts(area: Variable, names: Sequence[str]) -> list[Variable]:
    """The positives and negatives that an AUC counts, which get these names."""
    program = area.program
    graph = program.graph
    at = next(at for at, op in enumerate(graph.ops) if area.name in op.writes())
    inputs, outputs = dict(graph.ops[at].inputs), dict(graph.ops[at].outputs)
    for slot, name in zip(("positives", "negatives"), names, strict=True):
        (old,) = inputs[slot]
        graph.vars[name] = dataclasses.replace(graph.vars.pop(old), name=name)
        for slots in (inputs, outputs):
            slots.update({key: (name,) for key, known in slots.items() if known == (old,)})
    graph.ops[at] = dataclasses.replace(graph.ops[at], inputs=inputs, outputs=outputs)
    return [program.variable(name) for name in names]


def sequence_pad(
    x: Variable, pad_value: float | Variable, maxlen: int | None = None, name: str | None = None
) -> tuple[Variable, Variable]:
    """Pad examples to `maxlen`: ragged (n, …) → (rows, maxlen, …) and lengths, int64 (rows, 1).

    `pad_value` is a number or a fill_constant; `maxlen` is that of the longest example by default.
    """
    value = _constant_of(pad_value) if isinstance(pad_value, Variable) else float(pad_value)
    made: tuple[Variable, Variable] = default_main_program().call(
        psrt_layers.sequence_pad, x, value, maxlen, layer_name=name or ""
    )
    return made


def square_error_cost(input: Variable, label: Variable) -> Variable:
    """Square of input − label, elementwise; a label (rows, 1) is that of every column."""
    pair = in_columns(in_rows({"input": input, "label": label}))
    if pair["input"].shape == pair["label"].shape and not pair["input"].var.ragged:
        return _called(psrt_layers.square_error_cost, pair["input"], pair["label"])
    return _called(psrt_layers.square, pair["input"] - pair["label"])


def sum(x: Variable | Sequence[Variable]) -> Variable:
    """Sum of vars of one shape and dtype, elementwise."""
    return _called(psrt_layers.sums, [x] if isinstance(x, Variable) else list(x))


def _called(function: Any, *args: Any, **options: Any) -> Variable:
    made: Variable = default_main_program().call(function, *args, **options)
    return made


def _attr(layer: str, given: Any) -> ParamAttr:
    attr = attr_of(given)
    if attr is False:
        raise ProgramError(f"layers.{layer} was given False for its only parameter.")
    return attr


def _constant_of(variable: Variable) -> float:
    made = [op for op in variable.program.graph.ops if variable.name in op.writes()]
    if not made or made[-1].type != "fill_constant":
        raise ProgramError(
            f"layers.sequence_pad was given pad_value {variable.name}, which is no constant.",
            hint="Give a number.",
        )
    return float(made[-1].attrs["value"])


__all__ = ["auc", "create_parameter", "data", "embedding", "sequence_pad"]
__all__ += ["square_error_cost"]
__all__ += ["sum"]
