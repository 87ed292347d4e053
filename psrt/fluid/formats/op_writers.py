"""Ops of psrt as ops of Fluid's program files, which predict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from psrt.core.types import Shape
from psrt.fluid.formats.tensor_files import NUMBERS
from psrt.graph.ops import ANY, ROWS
from psrt.graph.program import Op, Var


class FileTarget(Protocol):
    """The program under construction."""

    def shape(self, name: str) -> Shape: ...
    def var(self, name: str) -> Var: ...
    def temp(self, shape: Shape, dtype: str = ..., ragged: bool = ...) -> str: ...
    def op(
        self,
        type: str,
        inputs: Mapping[str, Sequence[str]],
        outputs: Mapping[str, Sequence[str]],
        **attrs: Any,
    ) -> None: ...


Writer: TypeAlias = Callable[[Op, FileTarget], None]

WRITERS: dict[str, Writer] = {}


class NotWritten(Exception):
    """An op has no counterpart in Fluid."""


def writes(*types: str) -> Callable[[Writer], Writer]:
    """Register a function for op types."""

    def register(writer: Writer) -> Writer:
        WRITERS.update(dict.fromkeys(types, writer))
        return writer

    return register


def names_of(op: Op) -> tuple[str, str]:
    """The names of the only input x and of the output."""
    return next(iter(op.inputs.values()))[0], op.outputs["out"][0]


# --- functions of one var: equal names and attributes ---

_OF_ONE = """
relu sigmoid tanh exp log sqrt rsqrt square abs reciprocal sin cos sign floor ceil round softplus
softsign logsigmoid assign relu6 leaky_relu elu swish hard_sigmoid pow clip softmax log_softmax mean
"""


@writes(*_OF_ONE.split())
def _of_one(op: Op, to: FileTarget) -> None:
    x, out = names_of(op)
    to.op(op.type, {"X": [x]}, {"Out": [out]}, **op.attrs)


@writes("gelu", "gelu_tanh")
def _gelu(op: Op, to: FileTarget) -> None:
    x, out = names_of(op)
    to.op("gelu", {"X": [x]}, {"Out": [out]}, approximate=op.type == "gelu_tanh")


@writes("scale")
def _scale(op: Op, to: FileTarget) -> None:
    x, out = names_of(op)
    numbers = {name: float(op.attrs[name]) for name in ("scale", "bias")}
    to.op("scale", {"X": [x]}, {"Out": [out]}, bias_after_scale=True, **numbers)


@writes("cast")
def _cast(op: Op, to: FileTarget) -> None:
    x, out = names_of(op)
    dtypes = {"in_dtype": NUMBERS[to.var(x).dtype], "out_dtype": NUMBERS[op.attrs["dtype"]]}
    to.op("cast", {"X": [x]}, {"Out": [out]}, **dtypes)


@writes("dropout")
def _dropout(op: Op, to: FileTarget) -> None:
    x, out = names_of(op)
    kept = {"dropout_prob": float(op.attrs["p"]), "is_test": True}
    how = op.attrs["implementation"]
    to.op("dropout", {"X": [x]}, {"Out": [out]}, dropout_implementation=how, **kept)


# --- of two and of many ---


@writes(*(f"elementwise_{name}" for name in ["add", "sub", "mul", "div", "max", "min", "pow"]))
def _elementwise(op: Op, to: FileTarget) -> None:
    sides = {"X": op.inputs["x"], "Y": op.inputs["y"]}
    to.op(op.type, sides, {"Out": op.outputs["out"]}, axis=op.attrs["axis"])


@writes("square_error_cost")
def _square_error(op: Op, to: FileTarget) -> None:
    _, out = names_of(op)
    apart = to.temp(to.shape(out))
    sides = {"X": op.inputs["input"], "Y": op.inputs["label"]}
    to.op("elementwise_sub", sides, {"Out": [apart]}, axis=-1)
    to.op("square", {"X": [apart]}, {"Out": [out]})


@writes("fc")
def _fc(op: Op, to: FileTarget) -> None:
    out = op.outputs["out"][0]
    shape, ragged = to.shape(out), to.var(out).ragged
    parts = []
    for x, w in zip(op.inputs["x"], op.inputs["w"], strict=True):
        parts.append(to.temp(shape, ragged=ragged))
        columns = {"x_num_col_dims": len(shape) - 1, "y_num_col_dims": 1}
        to.op("mul", {"X": [x], "Y": [w]}, {"Out": [parts[-1]]}, **columns)
    made = parts[0]
    if len(parts) > 1:
        made = to.temp(shape, ragged=ragged)
        to.op("sum", {"X": parts}, {"Out": [made]})
    finish(op, to, made, axis=len(shape) - 1)


def finish(op: Op, to: FileTarget, made: str, axis: int) -> None:
    """Add the bias along `axis`, and apply the fused activation."""
    out, bias = op.outputs["out"][0], op.inputs.get("bias", ())
    shape, ragged = to.shape(out), to.var(out).ragged
    if bias:
        added = to.temp(shape, ragged=ragged)
        to.op("elementwise_add", {"X": [made], "Y": bias}, {"Out": [added]}, axis=axis)
        made = added
    to.op(op.attrs["activation"] or "assign", {"X": [made]}, {"Out": [out]})


@writes("matmul")
def _matmul(op: Op, to: FileTarget) -> None:
    sides = {"X": op.inputs["x"], "Y": op.inputs["y"]}
    turned = {f"transpose_{side}": op.attrs[f"transpose_{side.lower()}"] for side in "XY"}
    to.op("matmul", sides, {"Out": op.outputs["out"]}, alpha=float(op.attrs["alpha"]), **turned)


@writes("cos_sim")
def _cos_sim(op: Op, to: FileTarget) -> None:
    out = op.outputs["out"][0]
    norms = {f"{side}Norm": [to.temp(to.shape(out))] for side in "XY"}
    sides = {"X": op.inputs["x"], "Y": op.inputs["y"]}
    to.op("cos_sim", sides, {"Out": [out], **norms})


@writes("concat", "sum")
def _concat(op: Op, to: FileTarget) -> None:
    to.op(op.type, {"X": op.inputs["x"]}, {"Out": op.outputs["out"]}, **op.attrs)


@writes("stack")
def _stack(op: Op, to: FileTarget) -> None:
    to.op("stack", {"X": op.inputs["x"]}, {"Y": op.outputs["out"]}, axis=op.attrs["axis"])


# --- shapes ---


@writes("reshape")
def _reshape(op: Op, to: FileTarget) -> None:
    x, out = names_of(op)
    before, sizes = to.shape(x), list(op.attrs["shape"])
    for at, size in enumerate(sizes):
        if size < 0 and before[at : at + 1] == (size,):
            sizes[at] = 0  # as in x
    if sum(size < 0 for size in sizes) > 1:
        raise NotWritten
    sizes = [-1 if size in (ROWS, ANY) else size for size in sizes]
    same = {"XShape": [to.temp((0, *before))]}
    to.op("reshape2", {"X": [x]}, {"Out": [out], **same}, shape=sizes)


@writes("transpose")
def _transpose(op: Op, to: FileTarget) -> None:
    x, out = names_of(op)
    same = {"XShape": [to.temp((0, *to.shape(x)))]}
    to.op("transpose2", {"X": [x]}, {"Out": [out], **same}, axis=list(op.attrs["perm"]))


@writes("slice")
def _slice(op: Op, to: FileTarget) -> None:
    x, out = names_of(op)
    to.op("slice", {"Input": [x]}, {"Out": [out]}, decrease_axis=[], **op.attrs)


# --- reductions ---


@writes(*(f"reduce_{name}" for name in ["sum", "mean", "max", "min", "prod"]))
def _reduce(op: Op, to: FileTarget) -> None:
    x, out = names_of(op)
    axes = list(op.attrs["axes"])
    options = {"keep_dim": op.attrs["keep_dims"], "reduce_all": len(axes) == len(to.shape(x))}
    to.op(op.type, {"X": [x]}, {"Out": [out]}, dim=axes or [0], **options)


__all__ = ["WRITERS", "FileTarget", "NotWritten", "finish", "names_of", "writes"]
