"""The table of op types: slots of an op, and types of its outputs.

An op type is one function decorated with `define`: its inference rule, from the types of the inputs
to the types of the outputs. The rule refuses inputs that do not fit with `Mismatch`, which names
the argument and the shapes; the caller adds the layer and the user's line. Derivatives are in
`psrt.graph.gradients`, computations in `psrt.executor.compute`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from psrt.core.types import Shape

ROWS = -1
"""The size of a dimension that is known only at run time: examples, or elements of a ragged var."""

ANY = -2
"""The size of an inner dimension that differs from batch to batch, such as that of the longest list
of a batch."""

OWN = "own"
"""Lengths that no input has: the op sets the offsets of its output."""


class Mismatch(Exception):
    """Inputs of an op do not fit; the message names arguments and shapes."""


@dataclass(frozen=True)
class TensorType:
    """Shape and dtype of a var; `ragged` implies that dimension 0 counts elements, not examples."""

    shape: Shape
    dtype: str = "float32"
    ragged: bool = False

    def __str__(self) -> str:
        return f"{'ragged ' if self.ragged else ''}{self.dtype} {self.shape}"

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith("float")

    def reshaped(self, shape: Shape) -> TensorType:
        return TensorType(shape, self.dtype, self.ragged)


Types: TypeAlias = dict[str, TensorType]


@dataclass(frozen=True)
class OpCall:
    """Input of an inference rule: the types of the arguments by slot, and the attributes."""

    inputs: Mapping[str, tuple[TensorType, ...]]
    attrs: Mapping[str, Any]

    def one(self, slot: str) -> TensorType:
        return self.inputs[slot][0]

    def many(self, slot: str) -> tuple[TensorType, ...]:
        return self.inputs.get(slot, ())

    def need(self, fits: bool, message: str) -> None:
        if not fits:
            raise Mismatch(message)

    def need_float(self, slot: str) -> TensorType:
        found = self.one(slot)
        self.need(found.is_float, f"argument {slot} must hold floats, not {found}")
        return found

    def need_ndim(self, slot: str, ndim: int) -> TensorType:
        found = self.one(slot)
        fits = len(found.shape) == ndim
        self.need(fits, f"argument {slot} must have {ndim} dimensions, not {found}")
        return found


@dataclass(frozen=True)
class ArgumentSlot:
    """An argument position: `many` takes a list of vars, `optional` may stay empty."""

    name: str
    many: bool = False
    optional: bool = False

    @classmethod
    def parse(cls, text: str) -> ArgumentSlot:
        return cls(text.rstrip("*?"), many=text.endswith("*"), optional=text.endswith("?"))

    def accepts(self, count: int) -> bool:
        return count >= (0 if self.optional else 1) and (self.many or count <= 1)


Infer: TypeAlias = Callable[[OpCall], Types]


@dataclass(frozen=True)
class OpDef:
    """One op type. `infer` is None for gradient ops: a gradient has the type of its var."""

    type: str
    inputs: tuple[ArgumentSlot, ...]
    outputs: tuple[ArgumentSlot, ...]
    infer: Infer | None
    ragged: frozenset[str] = frozenset()
    """Input slots that take ragged vars."""
    lengths: str = ""
    """The input slot whose lengths a ragged output has; OWN where the op makes new ones. Without
    OWN all ragged inputs must have the same lengths."""
    each: str = ""
    """The input slot whose vars have, in order, the types of the vars of a list of outputs."""

    def check_slots(self, inputs: Mapping[str, tuple[Any, ...]]) -> None:
        known = {slot.name: slot for slot in self.inputs}
        for name in inputs.keys() - known.keys():
            raise Mismatch(f"op {self.type} has no argument {name}")
        for slot in self.inputs:
            count = len(inputs.get(slot.name, ()))
            if not slot.accepts(count):
                raise Mismatch(f"op {self.type} got {count} vars as argument {slot.name}")

    def lengths_from(self, ragged: Mapping[str, tuple[bool, ...]]) -> str:
        """Return the input slot whose first var gives a ragged output its lengths; "" for none.

        `ragged` holds for each input, by slot, whether it is ragged.
        """
        if self.lengths:
            return "" if self.lengths == OWN else self.lengths
        return next((slot.name for slot in self.inputs if any(ragged.get(slot.name, ()))), "")

    def types_of(self, call: OpCall) -> Types:
        """Return the output types; raises `Mismatch`."""
        self.check_slots(call.inputs)
        for slot, types in call.inputs.items():
            for found in types:
                if found.ragged and slot not in self.ragged:
                    raise Mismatch(f"argument {slot} is {found}, which only pooling ops reduce")
        assert self.infer is not None, self.type
        return self.infer(call)


OPS: dict[str, OpDef] = {}


def slots(text: str) -> tuple[ArgumentSlot, ...]:
    """Parse a declaration such as `"x* bias?"`."""
    return tuple(ArgumentSlot.parse(word) for word in text.split())


def define(
    type: str,
    inputs: str,
    outputs: str = "out",
    *,
    ragged: str = "",
    lengths: str = "",
    each: str = "",
) -> Callable[[Infer], Infer]:
    """Enter an inference rule into the table; slots: `x`, `x*` (many), `x?` (optional).

    `ragged` lists the slots that take ragged vars. A ragged output has the lengths of the first
    ragged input unless `lengths` names a slot, or OWN. With `each` the output is a list of vars of
    the types of those of that slot, as many as the layer makes.
    """

    def enter(infer: Infer) -> Infer:
        assert type not in OPS, type
        takes = frozenset(ragged.split())
        OPS[type] = OpDef(type, slots(inputs), slots(outputs), infer, takes, lengths, each)
        return infer

    return enter
