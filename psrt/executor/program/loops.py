"""The op `while_loop`: a program that is run as long as a condition holds.

Its backward keeps nothing of the forward: it runs all turns once more, keeps what each began with,
and computes each turn again, last one first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from psrt.core.errors import DataError, ProgramError
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.executor.compute import Bound, Step, computes
from psrt.executor.memory import Cell
from psrt.executor.program.compiled import Compiled, body_of
from psrt.executor.program.fetches import copy_of
from psrt.graph.backward import append_gradients, vars_that_need_gradients
from psrt.graph.builder import Builder
from psrt.graph.layers import elementwise_mul, reduce_sum, sums
from psrt.graph.program import Program, Var

_TURNS = 1 << 20
"""More than the turns of a loop: a turn of a step draws random numbers of its own."""

Carried: TypeAlias = list[Array | Ragged]
Flow: TypeAlias = list[Array | None]
"""Gradients of the carried vars; None for those that are no floats, and for lists."""


class _Turn:
    """The program of a turn, compiled, over the cells of what it reads.

    `gradients` are the names of the gradients of `wanted` vars, which `backward` computes.
    """

    def __init__(self, op: Bound, wanted: Sequence[str] = ()) -> None:
        self.op, attrs = op, op.attrs
        body = body_of(op)
        self.following = attrs["following"]
        count = attrs["carried"]
        self.carried, self.captured = attrs["reads"][:count], attrs["reads"][count:]
        self.are_floats = [_is_trained(body.vars[name]) for name in self.carried]
        self.cotangents: dict[int, str] = {}
        self.gradients = self._differentiated(body, wanted) if wanted else {}
        self.compiled = Compiled(body, op.dtype)

    def enter(self, cells: Sequence[Cell]) -> Carried:
        """Set what all turns read; returns the first values of what they carry."""
        count = len(self.carried)
        for name, cell in zip(self.captured, cells[count:], strict=True):
            self._set(name, _value_of(cell))
        self.compiled.context.first_example = self.op.context.first_example
        return [_value_of(cell) for cell in cells[:count]]

    def turns(self, values: Carried) -> Iterator[Carried]:
        """Yield the carried values before each turn, and those after the last one."""
        number = 0
        yield values
        while _decision(_values(values[0])):
            self._load(number, values)
            self.compiled.run("forward")
            values = [copy_of(self.compiled.cells[name]) for name in self.following]
            number += 1
            yield values

    def backward(self, number: int, values: Carried, flow: Flow) -> dict[str, Array]:
        """Compute a turn again, and gradients by var from those of what it carried on."""
        self._load(number, values)
        for position, name in self.cotangents.items():
            d = flow[position]
            assert d is not None
            self.compiled.cells[name].value = d
        self.compiled.run("forward")
        self.compiled.run("backward")
        return {name: self.compiled.cells[made].value for name, made in self.gradients.items()}

    def _load(self, number: int, values: Carried) -> None:
        self.compiled.context.step = self.op.context.step * _TURNS + number
        for name, value in zip(self.carried, values, strict=True):
            self._set(name, value)

    def _set(self, name: str, value: Array | Ragged) -> None:
        cell = self.compiled.cells[name]
        cell.value = _values(value)
        cell.offsets = value.offsets if isinstance(value, Ragged) else None

    def _differentiated(self, body: Program, wanted: Sequence[str]) -> dict[str, str]:
        """Append the gradients of the sum of all that is carried on, each times its cotangent."""
        floats = [name for name in self.carried if _is_trained(body.vars[name])]
        wanted = [*dict.fromkeys((*wanted, *floats))]
        needed = vars_that_need_gradients(body, wanted)
        parts: list[Var] = []
        with Builder(body).written_into():
            for position, name in enumerate(self.following):
                if name in needed and not body.vars[name].ragged:
                    var = body.vars[name]
                    cotangent = Var(f"@COTANGENT_{position}", var.shape, var.dtype, "data")
                    body.vars[cotangent.name] = cotangent
                    self.cotangents[position] = cotangent.name
                    parts.append(reduce_sum(elementwise_mul(var, cotangent)))
            if not parts:
                return {}
            target = sums(parts)
        return append_gradients(body, target, wanted)


@computes("while_loop")
def while_loop(op: Bound) -> Step:
    cells, outs, turn = op.all("x"), op.all("out"), _Turn(op)

    def run() -> None:
        *_, last = turn.turns(turn.enter(cells))
        for out, value in zip(outs, last, strict=True):
            values = _values(value)
            np.copyto(out.reserve(values.shape), values)
            out.offsets = value.offsets if isinstance(value, Ragged) else None

    return run


@computes("while_loop_grad")
def while_loop_grad(op: Bound) -> Step:
    cells, grads, targets = op.all("x"), op.many("out@GRAD"), op.many("x@GRAD")
    names = op.attrs["reads"]
    wanted = [name for name, target in zip(names, targets, strict=True) if target is not None]
    for name, grad in zip(names, grads, strict=False):
        if grad is not None and op.vars[op.op.inputs["x"][names.index(name)]].ragged:
            raise ProgramError(
                f"A loop that carries the lists {name} was to be trained through; no gradient goes "
                "through lists that differ from turn to turn.",
                hint="Let the loop carry plain rows, or train with DynamicRNN.",
            )
    turn, forward = _Turn(op, wanted), _Turn(op)

    def run() -> None:
        turn.enter(cells)
        *before, after = forward.turns(forward.enter(cells))
        flow: Flow = [
            None if not is_float else np.zeros_like(_values(value)) if grad is None else grad.value
            for is_float, value, grad in zip(turn.are_floats, after, grads, strict=True)
        ]
        sums = {name: np.zeros_like(cell.value) for name, cell in zip(names, cells, strict=True)}
        for number in reversed(range(len(before))):
            made = turn.backward(number, before[number], flow)
            for name in turn.captured:
                if name in made:
                    sums[name] += made[name].reshape(sums[name].shape)
            flow = [
                None if d is None else _copied(made.get(name), _values(value))
                for d, name, value in zip(flow, turn.carried, before[number], strict=True)
            ]
        found = [*flow, *(sums[name] for name in turn.captured)]
        for target, values in zip(targets, found, strict=True):
            if target is not None and values is not None:
                np.copyto(target.reserve(values.shape), values)

    return run


def _is_trained(var: Var) -> bool:
    """True for what gradients go through: plain floats."""
    return var.type.is_float and not var.ragged


def _decision(condition: Array) -> bool:
    if condition.size != 1:
        raise DataError(
            f"A condition has {condition.size} elements; one decides whether layers are computed.",
            hint="Reduce it to one bool, or choose for each example with layers.where.",
        )
    return bool(condition.item())


def _value_of(cell: Cell) -> Array | Ragged:
    return cell.value if cell.offsets is None else Ragged(cell.value, cell.offsets)


def _values(value: Array | Ragged) -> Array:
    """The rows of a value, in lists or not."""
    return value.values if isinstance(value, Ragged) else value


def _copied(gradient: Array | None, value: Array) -> Array:
    """A gradient that the next turn cannot overwrite; zeros of a var that had no influence."""
    return np.zeros_like(value) if gradient is None else np.array(gradient).reshape(value.shape)


__all__ = ["while_loop", "while_loop_grad"]
