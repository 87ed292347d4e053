"""Writes a saved model as one ONNX file, for runtimes that are not psrt.

Inputs are the model's feeds, outputs its fetches, both by their names; the first dimension is free.
Of a distributed table, of which any int64 is an id, the file has the rows that were trained, and
computes the initial values of others. A ragged input that a lookup pools is two, its
elements and their offsets. Programs without a counterpart in ONNX are refused before anything is
written: other ragged vars, op types without an exporter. Limit: 2 GiB a file,
of protobuf. The `onnx` package is an extra, imported here alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError, ProgramError
from psrt.core.types import Array
from psrt.graph.ops import ROWS
from psrt.graph.program import Op, Program, Var
from psrt.trainer.models.inference import Predictor
from psrt.trainer.models.onnx_nodes import (
    EXPORTS,
    ML_DOMAIN,
    ML_OPSET,
    OPSET,
    Drawing,
    OnnxGraph,
    OnnxNode,
    Vocabulary,
    offsets_of,
    refusal,
)

IR_VERSION = 8
"""IR version of OPSET: onnxruntime refuses files of a newer one than its own."""

LARGEST_FILE_BYTES = 2**31 - 2**20
BATCH = "batch"
POOLING = ("slot_embeddings", "weighted_embedding")
"""Ops that take ragged inputs and have no ragged output."""


def export_onnx(predictor: Predictor, path: Path) -> None:
    """Write `path`, complete or not at all; its directory must exist.

    Raises `ProgramError` naming the var, table or op that cannot be exported, `ConfigError` where
    the `onnx` package is not installed.
    """
    onnx = _onnx()
    vocabularies = _vocabularies(predictor)
    graph = graph_of(predictor.program, vocabularies)
    _check_made(predictor.program, graph, predictor.fetches)
    constants = graph.constants | _parameters(predictor, vocabularies)
    _check_size(constants)
    model = onnx.helper.make_model(
        _graph_proto(onnx, predictor, graph, constants),
        opset_imports=_opsets(onnx, graph),
        ir_version=IR_VERSION,
        producer_name="psrt",
    )
    onnx.checker.check_model(model, full_check=True)
    written = path.with_name(f"{path.name}.tmp")
    try:
        written.write_bytes(model.SerializeToString())
        os.replace(written, path)
    finally:
        written.unlink(missing_ok=True)


def _opsets(onnx: Any, graph: OnnxGraph) -> list[Any]:
    used = {node.domain for node in graph.nodes}
    versions = {"": OPSET, ML_DOMAIN: ML_OPSET}
    return [onnx.helper.make_opsetid(*each) for each in versions.items() if each[0] in {"", *used}]


def graph_of(program: Program, vocabularies: Mapping[str, Vocabulary]) -> OnnxGraph:
    """The nodes of a program for testing, or a refusal."""
    _check_ragged(program)
    graph = OnnxGraph(program.vars, vocabularies)
    for op in program.ops:
        _draw(op, graph)
    return graph


def _check_ragged(program: Program) -> None:
    """Raise `ProgramError` for a ragged var that an op reads for which it is not pooled at once."""
    for op in program.ops:
        names = [name for of_slot in op.inputs.values() for name in of_slot]
        unpooled = [name for name in names if program.vars[name].ragged]
        if unpooled and op.type not in POOLING:
            raise ProgramError(
                f"The var {unpooled[0]} is ragged, which ONNX has no type for, and {op} does not "
                "pool it. Nothing was written.",
                hint="Pool it with layers.slot_embeddings, feed a fixed number of values an "
                "example, padded, or use `psrt predict`.",
            )


def inputs_of(predictor: Predictor) -> list[str]:
    """The names of the inputs of a file: the feeds, and offsets behind each ragged one."""
    vars = predictor.program.vars
    pairs = ((name, offsets_of(name)) for name in predictor.feeds)
    return [each for pair in pairs for each in pair[: 1 + vars[pair[0]].ragged]]


def _draw(op: Op, graph: OnnxGraph) -> None:
    exporter = EXPORTS.get(op.type)
    if exporter is None:
        raise refusal(op, "psrt has no ONNX form of it")
    exporter(Drawing(op, graph))


def _check_made(program: Program, graph: OnnxGraph, fetches: Sequence[str]) -> None:
    """Some exporters leave outputs out that only gradients read, such as the mask of a dropout."""
    made = {name for node in graph.nodes for name in node.outputs}
    read = {name for node in graph.nodes for name in node.inputs}.union(fetches)
    for op in program.ops:
        for slot, names in op.outputs.items():
            if not made.issuperset(read.intersection(names) - program.parameters.keys()):
                raise refusal(op, f"psrt has no ONNX form of its output {slot}")


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ConfigError(
            f"the package onnx cannot be imported ({error}).",
            hint="Install psrt-cluster[onnx] from a checkout of psrt: pip install '.[onnx]'.",
        ) from error
    return onnx


def _vocabularies(predictor: Predictor) -> dict[str, Vocabulary]:
    """The ids of each distributed table, at least one, the padding id among them."""
    found = {}
    for name, record in predictor.program.parameters.items():
        if record.distributed:
            table = predictor.table(name)
            more = [record.padding_id] if record.padding_id is not None else []
            ids = np.append(table.ids, np.array(more or [0][: not len(table.ids)], np.int64))
            found[name] = Vocabulary(np.unique(ids), table.spec)
    return found


def _parameters(predictor: Predictor, vocabularies: Mapping[str, Vocabulary]) -> dict[str, Array]:
    """Return whole parameters, with zeros in padding rows as lookups read them.

    Of a distributed table the rows of its vocabulary, and one of zeros.
    """
    found: dict[str, Array] = {}
    for name, record in predictor.program.parameters.items():
        if vocabulary := vocabularies.get(name):
            rows = predictor.pull_rows({name: vocabulary.ids})[name]
            found[name] = np.append(rows, np.zeros_like(rows[:1]), axis=0)
            continue
        values = predictor.parameter(name)
        if record.padding_id is not None:
            values = values.copy()
            values[record.padding_id] = 0
        found[name] = values
    return found


def _check_size(constants: Mapping[str, Array]) -> None:
    size = sum(array.nbytes for array in constants.values())
    if size > LARGEST_FILE_BYTES:
        largest = max(constants, key=lambda name: constants[name].nbytes)
        raise ProgramError(
            f"The parameters take {size:,} bytes, {largest} most of them; an ONNX file holds at "
            f"most {LARGEST_FILE_BYTES:,}. Nothing was written.",
            hint="Fetch a var that needs fewer parameters, or use `psrt predict`.",
        )


def _graph_proto(
    onnx: Any, predictor: Predictor, graph: OnnxGraph, constants: Mapping[str, Array]
) -> Any:
    helper, vars = onnx.helper, predictor.program.vars
    used = {name for node in graph.nodes for name in node.inputs} | set(predictor.fetches)
    return helper.make_graph(
        [_node(helper, node) for node in graph.nodes],
        "psrt",
        [_input_info(onnx, vars, name) for name in inputs_of(predictor)],
        [_value_info(onnx, vars[name]) for name in predictor.fetches],
        [
            onnx.numpy_helper.from_array(np.asarray(array, order="C"), name)
            for name, array in constants.items()
            if name in used
        ],
    )


def _node(helper: Any, node: OnnxNode) -> Any:
    return helper.make_node(node.type, node.inputs, node.outputs, domain=node.domain, **node.attrs)


def _input_info(onnx: Any, vars: Mapping[str, Var], name: str) -> Any:
    if name in vars:
        return _value_info(onnx, vars[name])
    int64 = onnx.helper.np_dtype_to_tensor_dtype(np.dtype("int64"))
    return onnx.helper.make_tensor_value_info(name, int64, [f"{BATCH} + 1"])


def _value_info(onnx: Any, var: Var) -> Any:
    dtype = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(var.dtype))
    first = f"elements of {var.name}" if var.ragged else BATCH
    dims = [first if size == ROWS else size for size in var.shape]
    return onnx.helper.make_tensor_value_info(var.name, dtype, dims)
