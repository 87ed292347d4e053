"""Repetition while a condition holds, and arrays of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from psrt.core.types import Shape
from psrt.graph.builder import Layer, Vars
from psrt.graph.layers.repeating.repeated_layers import RepeatedLayers
from psrt.graph.ops import array_shape
from psrt.graph.program import Op, Program, Var


class Loop(RepeatedLayers):
    """Turns of a loop under construction: layers between `begin` and `end` compute one of them.

    `while_loop` is the function of it. Vars that a turn computes are gone after it, except those
    that it carries to the next one. Lookups in tables and states of metrics stay outside:
    `ProgramError`.
    """

    def __init__(self) -> None:
        super().__init__("while_loop")

    def end(self, carried: Sequence[tuple[Var, Var]], condition: Var | None = None) -> list[Var]:
        """End the turn, and append the loop; returns the carried vars after it.

        `carried` are pairs: a var from before the loop, and what it is after a turn. The first is
        that of the condition, which may begin as `condition` instead. Raises `ProgramError` for
        pairs that differ in type.
        """
        program, ops = self._layer.program, self._taken()
        made = dict.fromkeys(name for op in ops for name in op.writes())
        entered = [before.name for before, _ in carried]
        self._check(ops, carried)
        read = [name for op in ops for name in op.reads()] + [after.name for _, after in carried]
        captured = [name for name in dict.fromkeys(read) if name not in {*made, *entered}]
        body = Program(program.seed, ops=ops)
        for name in (*entered, *captured):
            found = program.vars[name]
            body.vars[name] = Var(name, found.shape, found.dtype, "data", found.ragged)
        body.vars |= {name: program.vars.pop(name) for name in made}
        first = carried[0][0] if condition is None else condition
        inputs = [first.name, *entered[1:], *captured]
        return self._layer.op_each(
            "while_loop",
            {"x": [program.vars[name] for name in inputs]},
            len(carried),
            body=body.to_text(),
            reads=(*entered, *captured),
            carried=len(carried),
            following=tuple(after.name for _, after in carried),
            is_test=False,
        )

    def _check(self, ops: Sequence[Op], carried: Sequence[tuple[Var, Var]]) -> None:
        """Raise for what a turn cannot do."""
        for op in ops:
            self._check_op(op, "loop")
        for before, after in carried:
            if before.type != after.type:
                raise self._layer.error(
                    f"{before.name} is {before.type} before a turn, and {after.type} after it",
                    "What a loop carries has one shape and dtype; arrays may grow.",
                )
        names = [before.name for before, _ in carried]
        if len({*names}) < len(names):
            raise self._layer.error("two vars that the loop changes are one var before it")


def while_loop(
    cond: Callable[..., Var], body: Callable[..., Vars], loop_vars: Sequence[Var]
) -> list[Var]:
    """Repeat `body` while `cond` is True; both are given the loop's vars, at first `loop_vars`.

    `cond` returns a bool of one element, `body` as many vars as it is given, of the same types.
    Programs that differentiate the result train through all turns.
    """
    layer, loop = Layer("while_loop"), Loop()
    before = [layer.op("assign", {"x": var}) for var in loop_vars]
    go_on = cond(*before)
    loop.begin()
    made = body(*before)
    after = [made] if isinstance(made, Var) else [*made]
    if len(after) != len(before):
        raise layer.error(f"body returned {len(after)} vars, of {len(before)} that it was given")
    pairs = [(go_on, cond(*after)), *zip(before, after, strict=True)]
    return loop.end(pairs)[1:]


def create_array(shape: Sequence[int], dtype: str = "float32") -> Var:
    """Array without elements, for `array_write`; elements have `shape`, where -1 first is rows."""
    layer = Layer("create_array")
    element: Shape = layer.wholes("shape", shape)
    return layer.op("empty", {}, shape=array_shape(element), dtype=dtype)


def undefined(shape: Sequence[int], dtype: str = "float32") -> Var:
    """Value before its first turn of a loop, without examples, 0 where sizes are known."""
    return Layer("undefined").op("empty", {}, shape=tuple(shape), dtype=dtype)


def array_write(x: Var, i: Var, array: Var, condition: Var | None = None) -> Var:
    """`array` with `x` as element `i`; elements that are missing before it are 0.

    Where a bool `condition` is False the array stays as it is. `i` is int64, one number.
    """
    inputs: dict[str, Vars] = {"array": array, "x": x, "i": i}
    if condition is not None:
        inputs["condition"] = condition
    return Layer("array_write").op("array_write", inputs)


def array_read(array: Var, i: Var) -> Var:
    """Element `i` of `array`; a step fails for one that does not exist."""
    return Layer("array_read").op("array_read", {"array": array, "i": i})


def array_length(array: Var) -> Var:
    """Number of elements of `array`, int64 (1,)."""
    return Layer("array_length").op("array_length", {"array": array})


__all__ = ["Loop", "array_length", "array_read", "array_write", "create_array"]
__all__ += ["undefined", "while_loop"]
