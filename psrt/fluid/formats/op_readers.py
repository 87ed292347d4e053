"""Ops of Fluid's program files as layer calls: one function for each family.

Every function has the slots and attributes of PaddlePaddle's op and returns its outputs by slot.
Layers are those of `fluid.layers`, so that what a file computes is what a program would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import psrt.fluid.layers as layers
from psrt.core.errors import DataError
from psrt.fluid.formats.records import FileOp
from psrt.fluid.names import Variable
from psrt.fluid.parameters import ParamAttr


class Vars(Protocol):
    """Vars of a program that have been read so far."""

    def variable(self, name: str) -> Variable: ...
    def shape(self, name: str) -> tuple[int, ...]: ...


class ReadOp:
    """One op of a file, with variables in its slots."""

    def __init__(self, op: FileOp, vars: Vars) -> None:
        self.op, self._vars = op, vars

    def name(self, slot: str) -> str:
        """Return the name of the only var of an input; "" for none."""
        names = self.op.inputs.get(slot) or [""]
        return names[0]

    def one(self, slot: str = "X") -> Variable:
        return self._vars.variable(self.name(slot))

    def many(self, slot: str = "X") -> list[Variable]:
        return [self._vars.variable(name) for name in self.op.inputs[slot]]

    def shape(self, slot: str) -> tuple[int, ...]:
        return self._vars.shape(self.name(slot))

    def attr(self, name: str, default: Any = None) -> Any:
        value = self.op.attrs.get(name, default)
        if value is None:
            raise DataError(f"An op {self.op.type} has no attribute {name}.")
        return value

    def param(self, slot: str) -> ParamAttr | bool:
        """Return the declaration of the parameter in a slot; False for none."""
        name = self.name(slot)
        return ParamAttr(name=name) if name else False


Outputs: TypeAlias = Mapping[str, Variable | Sequence[Variable]]
Reader: TypeAlias = Callable[[ReadOp], Outputs]

READERS: dict[str, Reader] = {}


def reads(*types: str) -> Callable[[Reader], Reader]:
    """Register a function for op types."""

    def register(reader: Reader) -> Reader:
        READERS.update(dict.fromkeys(types, reader))
        return reader

    return register


# --- functions of one var ---

_PLAIN = """
relu sigmoid tanh exp log sqrt rsqrt square abs reciprocal sin cos sign floor ceil round softplus
softsign logsigmoid assign mean
"""

_OF_ONE: dict[str, dict[str, Any]] = {
    **{type: {} for type in _PLAIN.split()},
    "relu6": {"threshold": 6.0},
    "leaky_relu": {"alpha": 0.02},
    "elu": {"alpha": 1.0},
    "swish": {"beta": 1.0},
    "hard_sigmoid": {"slope": 0.2, "offset": 0.5},
    "gelu": {"approximate": False},
    "pow": {"factor": 1.0},
    "clip": {"min": None, "max": None},
    "scale": {"scale": 1.0, "bias": 0.0, "bias_after_scale": True},
    "softmax": {"axis": -1},
    "log_softmax": {"axis": -1},
}


def _of_one(op: ReadOp) -> Outputs:
    named = {name: op.attr(name, default) for name, default in _OF_ONE[op.op.type].items()}
    return {"Out": getattr(layers, op.op.type)(op.one(), **named)}


READERS.update(dict.fromkeys(_OF_ONE, _of_one))


@reads("dropout")
def _dropout(op: ReadOp) -> Outputs:
    how = op.attr("dropout_implementation", "downgrade_in_infer")
    kept = {"is_test": True, "dropout_implementation": how}
    return {"Out": layers.dropout(op.one(), op.attr("dropout_prob", 0.5), **kept)}


@reads("cast")
def _cast(op: ReadOp) -> Outputs:
    return {"Out": layers.cast(op.one(), op.attr("out_dtype"))}


# --- of two and of many ---


@reads(*(f"elementwise_{name}" for name in ["add", "sub", "mul", "div", "max", "min", "pow"]))
def _elementwise(op: ReadOp) -> Outputs:
    compute = getattr(layers, op.op.type)
    return {"Out": compute(op.one("X"), op.one("Y"), axis=op.attr("axis", -1))}


@reads("mul")
def _mul(op: ReadOp) -> Outputs:
    dims = op.attr("x_num_col_dims", 1), op.attr("y_num_col_dims", 1)
    return {"Out": layers.mul(op.one("X"), op.one("Y"), *dims)}


@reads("matmul", "matmul_v2")
def _matmul(op: ReadOp) -> Outputs:
    turned = [
        op.op.attrs.get(f"transpose_{side.upper()}", op.op.attrs.get(f"trans_{side}", False))
        for side in "xy"
    ]
    return {"Out": layers.matmul(op.one("X"), op.one("Y"), *turned, op.attr("alpha", 1.0))}


@reads("cos_sim")
def _cos_sim(op: ReadOp) -> Outputs:
    return {"Out": layers.cos_sim(op.one("X"), op.one("Y"))}


@reads("concat")
def _concat(op: ReadOp) -> Outputs:
    return {"Out": layers.concat(op.many(), axis=op.attr("axis", 0))}


@reads("sum")
def _sum(op: ReadOp) -> Outputs:
    return {"Out": layers.sum(op.many())}


@reads("stack")
def _stack(op: ReadOp) -> Outputs:
    return {"Y": layers.stack(op.many(), axis=op.attr("axis", 0))}


@reads("split")
def _split(op: ReadOp) -> Outputs:
    parts = op.attr("sections", []) or op.attr("num")
    return {"Out": layers.split(op.one(), parts, dim=op.attr("axis", -1))}


# --- shapes ---


@reads("reshape", "reshape2")
def _reshape(op: ReadOp) -> Outputs:
    return {"Out": layers.reshape(op.one(), op.attr("shape"))}


@reads("transpose", "transpose2")
def _transpose(op: ReadOp) -> Outputs:
    return {"Out": layers.transpose(op.one(), op.attr("axis"))}


@reads("squeeze", "squeeze2", "unsqueeze", "unsqueeze2")
def _squeeze(op: ReadOp) -> Outputs:
    return {"Out": getattr(layers, op.op.type.rstrip("2"))(op.one(), op.attr("axes"))}


@reads("flatten", "flatten2")
def _flatten(op: ReadOp) -> Outputs:
    return {"Out": layers.flatten(op.one(), axis=op.attr("axis", 1))}


@reads("flatten_contiguous_range")
def _flatten_range(op: ReadOp) -> Outputs:
    x, start, stop = op.one(), op.attr("start_axis", 1), op.attr("stop_axis", 1)
    stop = stop + len(x.shape) if stop < 0 else stop
    kept = [0] * start
    return {"Out": layers.reshape(x, [*kept, -1, *x.shape[stop + 1 :]])}


@reads("slice")
def _slice(op: ReadOp) -> Outputs:
    ends = op.attr("axes"), op.attr("starts"), op.attr("ends")
    found = layers.slice(op.one("Input"), *ends)
    gone = op.attr("decrease_axis", [])
    return {"Out": layers.squeeze(found, gone) if gone else found}


# --- reductions ---


@reads(*(f"reduce_{name}" for name in ["sum", "mean", "max", "min", "prod"]))
def _reduce(op: ReadOp) -> Outputs:
    dim = None if op.attr("reduce_all", False) else op.attr("dim", [0])
    compute = getattr(layers, op.op.type)
    return {"Out": compute(op.one(), dim=dim, keep_dim=op.attr("keep_dim", False))}


@reads("top_k", "top_k_v2")
def _top_k(op: ReadOp) -> Outputs:
    values, indices = layers.topk(op.one(), op.attr("k", 1))
    return {"Out": values, "Indices": indices}


@reads("arg_max")
def _arg_max(op: ReadOp) -> Outputs:
    return {"Out": layers.argmax(op.one(), axis=op.attr("axis", -1))}


__all__ = ["READERS", "Outputs", "ReadOp", "Vars", "reads"]
