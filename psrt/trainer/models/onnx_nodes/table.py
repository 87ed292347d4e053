"""The table of exports: op type → the ONNX nodes that compute the same.

Nodes are plain data here; `onnx_export` makes the file. An exporter is one function decorated with
`exports`; it gets the op as a `Drawing` and adds nodes. What ONNX cannot express it refuses with
`drawing.need`, and the error names op, layer and the user's line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from psrt.core.errors import ProgramError
from psrt.core.specs import SparseTableSpec
from psrt.core.types import I64, Array, Shape
from psrt.graph.program import Op, Var

OPSET = 18
"""The first with operations on bits; onnxruntime has read it since 1.14."""

ML_DOMAIN, ML_OPSET = "ai.onnx.ml", 2
"""Domain of LabelEncoder, the one op with a vocabulary, and its version."""


@dataclass(frozen=True)
class OnnxNode:
    """One ONNX node; attributes are ints, floats, texts or lists of them."""

    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any]
    domain: str = ""


@dataclass(frozen=True)
class Vocabulary:
    """The ids (n,) of a distributed table that have a row in the file, in the order of the rows; a
    row of zeros follows them. `spec` has the initial values of all others."""

    ids: I64
    spec: SparseTableSpec


@dataclass
class OnnxGraph:
    """ONNX nodes in order, and the arrays they take as constants."""

    vars: Mapping[str, Var]
    vocabularies: Mapping[str, Vocabulary] = field(default_factory=dict)
    nodes: list[OnnxNode] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)

    def unique(self, prefix: str) -> str:
        """`:` stands in no var name that a layer makes, so a name is new when it is new here."""
        return f"{prefix}:{len(self.nodes)}:{len(self.constants)}"


class Drawing:
    """One op being exported into a graph."""

    def __init__(self, op: Op, graph: OnnxGraph) -> None:
        self.op, self._graph = op, graph
        self.attrs = op.attrs

    def one(self, slot: str) -> str:
        """The var in `slot`."""
        return self.op.inputs[slot][0]

    def all(self, slot: str) -> tuple[str, ...]:
        return self.op.inputs.get(slot, ())

    def out(self, slot: str = "out") -> str:
        return self.op.outputs[slot][0]

    def shape(self, slot: str) -> Shape:
        return self.shape_of(self.one(slot))

    def shape_of(self, name: str) -> Shape:
        return self._graph.vars[name].shape

    def dtype(self, slot: str) -> str:
        return self._graph.vars[self.one(slot)].dtype

    def is_ragged(self, name: str) -> bool:
        """Return True for a var whose examples have any number of elements."""
        return self._graph.vars[name].ragged

    def out_shape(self) -> Shape:
        return self.shape_of(self.out())

    def node(self, type: str, inputs: Sequence[str], *outs: str, **attrs: Any) -> str:
        """Add a node; returns the name of its first output, one of `outs` or a new one."""
        names = outs or (self._graph.unique(self.out()),)
        self._graph.nodes.append(OnnxNode(type, tuple(inputs), names, attrs))
        return names[0]

    def place_of(self, ids: str, known: I64, default: int) -> str:
        """The positions of ids in `known`; `default` for any other."""
        out = self._graph.unique(self.out())
        places = {"keys_int64s": known.tolist(), "values_int64s": list(range(len(known)))}
        attrs = {**places, "default_int64": default}
        self._graph.nodes.append(OnnxNode("LabelEncoder", (ids,), (out,), attrs, ML_DOMAIN))
        return out

    def vocabulary(self, table: str) -> Vocabulary | None:
        """The vocabulary of a distributed table; None for one that is whole."""
        return self._graph.vocabularies.get(table)

    def ints(self, *values: int) -> str:
        """A constant (n,) int64."""
        return self.constant(np.array(values, np.int64))

    def constant(self, values: Array) -> str:
        name = self._graph.unique("constant")
        self._graph.constants[name] = values
        return name

    def number(self, value: float, dtype: str = "float32") -> str:
        """A constant of shape ()."""
        return self.constant(np.array(value, dtype))

    def need(self, fits: bool, why: str) -> None:
        if not fits:
            raise refusal(self.op, why)


def refusal(op: Op, why: str) -> ProgramError:
    return ProgramError(
        f"{op} cannot be exported to ONNX: {why}. Nothing was written.",
        hint="Fetch a var before that op, or predict with `psrt predict`.",
    )


Exporter: TypeAlias = Callable[[Drawing], None]
EXPORTS: dict[str, Exporter] = {}


def exports(*types: str) -> Callable[[Exporter], Exporter]:
    """Enter an exporter into the table for op `types`."""

    def enter(exporter: Exporter) -> Exporter:
        for type in types:
            assert type not in EXPORTS, type
            EXPORTS[type] = exporter
        return exporter

    return enter
