"""Recurrent layers over the elements of each example, and a recurrence of any step."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple

from psrt.core.types import Shape
from psrt.graph.builder import Layer, Vars
from psrt.graph.initializer import Constant, Xavier
from psrt.graph.layers.repeating.repeated_layers import RepeatedLayers
from psrt.graph.ops import ROWS
from psrt.graph.param import Param
from psrt.graph.program import Op, Program, Var


class LstmStates(NamedTuple):
    """Ragged (n, size): the state and the cell after each element."""

    hidden: Var
    cell: Var


def dynamic_lstm(
    input: Var,
    size: int,
    h_0: Var | None = None,
    c_0: Var | None = None,
    param: Param | str | None = None,
    bias: Param | str | None = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
) -> LstmStates:
    """Long short-term memory: ragged `input` (n, `size`) → states and cells (n, size / 4).

    `input` is a projection of the elements to the gates candidate, input, forget and output; `size`
    is four times that of the state. States before the first element are `h_0` and `c_0` (rows,
    size / 4), or 0. Activations are sigmoid, tanh, relu or identity (Hochreiter & Schmidhuber 1997;
    peepholes: Gers et al. 2002).
    """
    layer = Layer("dynamic_lstm")
    width = _width(layer, size, 4)
    weight = layer.parameter("w_0", (width, 4 * width), param, Xavier())
    peepholes = layer.flag("use_peepholes", use_peepholes)
    biases = layer.parameter("b_0", ((7 if peepholes else 4) * width,), bias, Constant(0.0))
    inputs: dict[str, Vars] = {"input": input, "weight": weight, "bias": biases}
    inputs |= {slot: var for slot, var in (("h_0", h_0), ("c_0", c_0)) if var is not None}
    both = layer.op(
        "lstm",
        inputs,
        is_reverse=layer.flag("is_reverse", is_reverse),
        gate_activation=gate_activation,
        cell_activation=cell_activation,
        candidate_activation=candidate_activation,
    )
    ends = ((0, width), (width, 2 * width))
    parts = [
        layer.op("slice", {"input": both}, axes=(1,), starts=(start,), ends=(end,))
        for start, end in ends
    ]
    return LstmStates(*parts)


def dynamic_gru(
    input: Var,
    size: int,
    param: Param | str | None = None,
    bias: Param | str | None = None,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    candidate_activation: str = "tanh",
    h_0: Var | None = None,
    origin_mode: bool = False,
) -> Var:
    """Gated recurrent units: ragged `input` (n, 3 · `size`) → states (n, `size`).

    `input` is a projection of the elements to the gates update, reset and candidate. The state
    before the first element is `h_0` (rows, size), or 0. A new state is (1 − update) · old + update
    · candidate, or with `origin_mode` the opposite, as in Cho et al. 2014.
    """
    layer = Layer("dynamic_gru")
    width = layer.whole("size", size, least=1)
    weight = layer.parameter("w_0", (width, 3 * width), param, Xavier())
    biases = layer.parameter("b_0", (3 * width,), bias, Constant(0.0))
    inputs: dict[str, Vars] = {"input": input, "weight": weight, "bias": biases}
    if h_0 is not None:
        inputs["h_0"] = h_0
    return layer.op(
        "gru",
        inputs,
        is_reverse=layer.flag("is_reverse", is_reverse),
        gate_activation=gate_activation,
        candidate_activation=candidate_activation,
        origin_mode=layer.flag("origin_mode", origin_mode),
    )


def _width(layer: Layer, size: int, gates: int) -> int:
    size = layer.whole("size", size, least=gates)
    if size % gates:
        raise layer.error(f"argument size is {size}, not a multiple of {gates}, one for each gate")
    return size // gates


class Recurrence(RepeatedLayers):
    """A recurrence over the elements of each example; layers in the block compute one step.

        with layers.Recurrence() as loop:
            word = loop.element(words)              # ragged (n, d) → (rows, d)
            before = loop.state(size=16)            # (rows, 16), zeros at first
            after = layers.fc([word, before], 16, act="tanh")
            loop.update(before, after)
            loop.output(after)
        (states,) = loop.outputs()                  # ragged (n, 16)

    A step sees the examples that have as many elements. Vars that belong to examples enter by
    `static`, parameters and constants as they are. Lookups in tables, states of metrics and ragged
    vars stay outside of the block: `ProgramError`. Programs that differentiate it train through
    all steps.
    """

    def __init__(self) -> None:
        super().__init__("recurrence")
        self._elements: dict[str, Var] = {}
        self._statics: dict[str, Var] = {}
        self._initial: dict[str, Var] = {}
        self._firsts: dict[str, float] = {}
        self._following: dict[str, str] = {}
        self._outputs: list[Var] = []
        self._result: list[Var] = []

    def __enter__(self) -> Recurrence:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.end()

    def element(self, x: Var) -> Var:
        """Return the element of each example at this step: ragged (n, …) → (rows, …).

        Lists of numbers (n,) give (rows, 1).
        """
        if not x.ragged:
            raise self._layer.error(f"argument x is {x.type}, not elements of examples")
        return self._entering(self._elements, x, x.shape if x.shape[1:] else (ROWS, 1))

    def static(self, x: Var) -> Var:
        """Return the rows of `x` (rows, …) of the examples at this step."""
        if x.ragged or x.shape[:1] != (ROWS,):
            raise self._layer.error(
                f"argument x is {x.type}, not one row for each example",
                "Reduce lists with sequence_pool; what is equal for all enters as it is.",
            )
        return self._entering(self._statics, x, x.shape)

    def state(self, initial: Var | None = None, size: int = 0, value: float = 0.0) -> Var:
        """Return the state before this step (rows, size): at first `initial`, or `value`."""
        if initial is not None:
            return self._entering(self._initial, initial, initial.shape)
        width = self._layer.whole("size", size, least=1)
        var = self._new((ROWS, width), "float32")
        self._firsts[var.name] = float(self._layer.number("value", value))
        return var

    def update(self, state: Var, value: Var) -> None:
        """Let `state` be `value`, of its shape, before the next step."""
        if value.shape != state.shape or value.dtype != "float32":
            raise self._layer.error(f"a state of {state.type} was updated with {value.type}")
        self._following[state.name] = value.name

    def output(self, *vars: Var) -> None:
        """Collect vars (rows, width) of each step; they are returned by `outputs`."""
        for var in vars:
            if len(var.shape) != 2 or var.shape[0] != ROWS or var.dtype != "float32":
                raise self._layer.error(f"argument vars has {var.type}, not floats (rows, width)")
        self._outputs += vars

    def outputs(self) -> list[Var]:
        """Return the vars of `output`, each ragged (n, width)."""
        if not self._result:
            raise self._layer.error("the step has not ended, or has no output")
        return list(self._result)

    def end(self) -> None:
        """End the step, and append the recurrence of it."""
        program, states = self._layer.program, [*self._initial, *self._firsts]
        missing = [name for name in states if name not in self._following]
        if missing or not self._outputs:
            raise self._layer.error("the step updates not every state, or has no output")
        ops = self._taken()
        made = dict.fromkeys(name for op in ops for name in op.writes())
        entered = self._elements | self._initial | self._statics
        captured = dict.fromkeys(
            name
            for op in ops
            for name in op.reads()
            if name not in made and name not in entered and name not in self._firsts
        )
        self._check(ops, captured)
        body = Program(program.seed, ops=ops)
        for name in (*entered, *self._firsts, *captured):
            found = program.vars[name]
            body.vars[name] = Var(name, found.shape, found.dtype, "data")
        body.vars |= {name: program.vars[name] for name in made}
        for name in (*entered, *self._firsts, *made):
            del program.vars[name]
        columns = [*self._outputs, *(body.vars[name] for name in states)]
        both = self._layer.op(
            "recurrence",
            {"x": [*entered.values(), *(program.vars[name] for name in captured)]},
            body=body.to_text(),
            reads=(*entered, *captured),
            elements=len(self._elements),
            states=tuple(states),
            firsts=tuple(self._firsts.values()),
            following=tuple(self._following[name] for name in states),
            outputs=tuple(var.name for var in self._outputs),
            width=sum(var.shape[1] for var in columns),
            is_test=False,
        )
        self._result = list(self._parts(both))

    def _parts(self, both: Var) -> Iterator[Var]:
        """The columns of each output."""
        start = 0
        for var in self._outputs:
            ends = {"starts": (start,), "ends": (start + var.shape[1],)}
            yield self._layer.op("slice", {"input": both}, axes=(1,), **ends)
            start += var.shape[1]

    def _entering(self, group: dict[str, Var], x: Var, shape: Shape) -> Var:
        var = self._new(shape, x.dtype)
        group[var.name] = x
        return var

    def _new(self, shape: Shape, dtype: str) -> Var:
        name = f"{self._layer.name}.in"
        number = len(self._elements) + len(self._statics) + len(self._initial) + len(self._firsts)
        return self._layer.var(f"{name}_{number}", shape, dtype, "temp")

    def _check(self, ops: list[Op], captured: dict[str, None]) -> None:
        """Raise for what a step cannot do or read."""
        vars = self._layer.program.vars
        for op in ops:
            self._check_op(op, "step")
        for name in captured:
            if vars[name].shape[:1] == (ROWS,):
                raise self._layer.error(
                    f"the step reads {name}, {vars[name].type}", "Give it to `static` first."
                )
