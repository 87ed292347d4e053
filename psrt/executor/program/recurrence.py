"""The op `recurrence`: a step that is a program, run for each element of the examples.

It is here, and not with the other computations, because its step is compiled as programs are. The
backward keeps nothing of the forward but states: it computes each step once more, last one first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute import Bound, RecurrentStep, Step, computes, offsets_of, steps_of
from psrt.executor.memory import Cell
from psrt.executor.program.compiled import Compiled, body_of
from psrt.graph.backward import append_gradients
from psrt.graph.builder import Builder
from psrt.graph.layers import concat, data, elementwise_mul, reduce_sum
from psrt.graph.program import Program

_COTANGENT = "@COTANGENT"


class _Body:
    """The program of a step, compiled, over the cells of what it reads.

    `gradients` are the names of the gradients of `wanted` vars, which `backward` computes.
    """

    def __init__(self, op: Bound, wanted: Sequence[str] = ()) -> None:
        self.op, attrs = op, op.attrs
        body = body_of(op)
        self.results = (*attrs["outputs"], *attrs["following"])
        self.states, self.inputs = attrs["states"], attrs["reads"]
        self.gradients = _differentiated(body, self.results, wanted) if wanted else {}
        self.program, self.compiled = body, Compiled(body, op.dtype)
        sizes = [body.vars[name].shape[1] for name in self.results]
        self.ends = np.cumsum([0, *sizes]).tolist()

    @property
    def width(self) -> int:
        """The number of columns of a result."""
        return int(self.ends[-1])

    def columns(self, state: int) -> slice:
        """The columns of a state in the result."""
        at = len(self.results) - len(self.states) + state
        return slice(self.ends[at], self.ends[at + 1])

    def kinds(self) -> Iterator[tuple[int, str, str]]:
        """Number, name and kind of each var that is read: element, state, static or captured."""
        shapes = self.program.vars
        for number, name in enumerate(self.inputs):
            if number < self.op.attrs["elements"]:
                yield number, name, "element"
            elif name in self.states:
                yield number, name, "state"
            else:
                yield number, name, "static" if shapes[name].shape[:1] == (-1,) else "captured"

    def load(self, step: RecurrentStep, cells: Sequence[Cell], result: Array) -> None:
        """Set what the step reads; `result` has the states of the steps before."""
        context = self.compiled.context
        context.step, context.first_example = self.op.context.step, self.op.context.first_example
        for number, name, kind in self.kinds():
            values = cells[number].value
            if kind == "element":
                self._set(name, _as_column(values[step.at]))
            elif kind == "captured":
                self._set(name, values)
            elif kind == "static" or not len(step.before):
                self._set(name, values[step.examples])
        given = len(self.states) - len(self.op.attrs["firsts"])
        for number, name in enumerate(self.states):
            if len(step.before):
                self._set(name, result[step.before, self.columns(number)])
            elif number >= given:
                width = self.program.vars[name].shape[1]
                first = self.op.attrs["firsts"][number - given]
                self._set(name, np.full((len(step.at), width), first, self.op.dtype))

    def forward(self) -> Array:
        """Compute the step; returns its results side by side."""
        self.compiled.run("forward")
        return np.concatenate([self.compiled.cells[name].value for name in self.results], axis=1)

    def backward(self, d: Array) -> dict[str, Array]:
        """Compute the step, and gradients by var from those of its results."""
        self._set(_COTANGENT, d)
        self.compiled.run("forward")
        self.compiled.run("backward")
        return {name: self.compiled.cells[made].value for name, made in self.gradients.items()}

    def _set(self, name: str, values: Array) -> None:
        self.compiled.cells[name].value = np.ascontiguousarray(values)


def _as_column(values: Array) -> Array:
    return values[:, None] if values.ndim == 1 else values


def _differentiated(body: Program, results: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """Append the gradients of the sum of all results, each times its cotangent."""
    with Builder(body).written_into():
        vars = [body.vars[name] for name in results]
        joined = concat(vars, axis=1)
        cotangent = data(_COTANGENT, (joined.shape[1],))
        target = reduce_sum(elementwise_mul(joined, cotangent))
    return append_gradients(body, target, wanted)


@computes("recurrence")
def recurrence(op: Bound) -> Step:
    cells, out, body = op.all("x"), op.one("out"), _Body(op)

    def run() -> None:
        result = out.reserve((len(cells[0].value), body.width))
        for step in steps_of(offsets_of(cells[0]), is_reverse=False):
            body.load(step, cells, result)
            result[step.at] = body.forward()

    return run


@computes("recurrence_grad")
def recurrence_grad(op: Bound) -> Step:
    cells, out, grad, targets = op.all("x"), op.one("out"), op.one("out@GRAD"), op.many("x@GRAD")
    names = op.attrs["reads"]
    needed = [name for name, target in zip(names, targets, strict=True) if target is not None]
    body = _Body(op, [*dict.fromkeys((*needed, *op.attrs["states"]))])

    def run() -> None:
        flowing = np.array(grad.value)  # what flows back through states is added
        sums = [
            None if target is None else np.zeros_like(cell.value)
            for cell, target in zip(cells, targets, strict=True)
        ]
        for step in reversed(list(steps_of(offsets_of(cells[0]), is_reverse=False))):
            body.load(step, cells, out.value)
            made = body.backward(flowing[step.at])
            for number, name, kind in body.kinds():
                total = sums[number]
                if total is None or name not in made or (kind == "state" and len(step.before)):
                    continue
                if kind == "captured":
                    total += made[name]
                else:
                    at = step.at if kind == "element" else step.examples
                    total[at] += made[name].reshape(len(at), *total.shape[1:])
            for number, name in enumerate(body.states):
                if len(step.before) and name in made:
                    flowing[step.before, body.columns(number)] += made[name]
        for target, total in zip(targets, sums, strict=True):
            if target is not None and total is not None:
                np.copyto(target.reserve(total.shape), total)

    return run


__all__ = ["recurrence", "recurrence_grad"]
