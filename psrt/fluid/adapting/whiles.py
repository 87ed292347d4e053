"""`While` and `while_loop`: layers that are repeated, and vars that they write again.

The block is written once, as `psrt.layers.while_loop` has it. A name that stands for another var at
its end than at its beginning is carried from turn to turn; all other vars of the block are gone
after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.targets import Turn, assign_to, plain_condition, where
from psrt.fluid.adapting.tensors import assign
from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers


class While:
    """Layers that are repeated as long as `cond`, a bool of one element, is True.

    i = fluid.layers.fill_constant([1], "int64", 0)
    n = fluid.layers.fill_constant([1], "int64", 10)
    going = fluid.layers.less_than(i, n)
    with fluid.layers.While(going).block():
        fluid.layers.increment(i)
        fluid.layers.less_than(i, n, cond=going)

    Programs that minimize what it computes train through all turns. Raises `TypeError` for another
    condition, and `ProgramError` for a block that does not change it.
    """

    def __init__(self, cond: Variable, is_test: bool = False, name: str | None = None) -> None:
        if not isinstance(cond, Variable) or cond.dtype != "bool" or cond.shape != (1,):
            raise TypeError(f"The condition of While is {cond!r}, not one bool.")
        self._cond = cond

    @contextmanager
    def block(self) -> Iterator[None]:
        """Write the layers of a turn."""
        program = default_main_program()
        guards, program.guards = program.guards, []
        turn = Turn(program)
        program.loops.append(turn)
        try:
            yield
            changed = turn.changed()
        finally:
            program.guards = guards
            program.loops.remove(turn)
            turn.restore()
        if self._cond.name not in changed:
            raise ProgramError(
                f"The block of While does not change its condition {self._cond.name}, so it would "
                "run for ever.",
                hint="Compare again at its end: layers.less_than(i, n, cond=condition).",
            )
        self._end(program, turn, changed)

    def _end(self, program: FluidProgram, turn: Turn, changed: dict[str, str]) -> None:
        names = [self._cond.name, *(name for name in changed if name != self._cond.name)]
        before = program.variable(self._cond.name)
        first = before
        if program.guards:  # in a branch that is not taken it has no turn
            with turn.loop.outside():
                guard = plain_condition(program.guards[-1])
                first = program.call(psrt_layers.logical_and, plain_condition(before), guard)
                first = program.call(psrt_layers.reshape, first, before.var.shape)
        pairs = [(turn.first(name), program.graph.vars[changed[name]]) for name in names]
        with program.written_into():
            made = turn.loop.end(pairs, first.var)
        outs = [program.wrapped(var) for var in made]
        if program.guards:
            outs[0] = where(program.guards[-1], outs[0], before)
        guards, program.guards = program.guards, []
        for name, out in zip(names, outs, strict=True):
            assign_to(program.variable(name), out)
        program.guards = guards


def while_loop(
    cond: Callable[..., Variable],
    body: Callable[..., Any],
    loop_vars: Sequence[Variable],
    is_test: bool = False,
    name: str | None = None,
) -> Sequence[Variable]:
    """Repeat `body` while `cond` is True; both are given `loop_vars`, which are returned.

    `body` returns as many vars as it is given, of the same types. Raises `TypeError` and
    `ValueError` as Fluid does.
    """
    if not callable(cond) or not callable(body):
        raise TypeError("cond and body in while_loop should be callable")
    if not isinstance(loop_vars, list | tuple):
        raise TypeError("loop_vars in while_loop should be a list or tuple")
    if not loop_vars:
        raise ValueError("loop_vars in while_loop should not be empty")
    going = assign(cond(*loop_vars))
    with While(going, is_test, name).block():
        made = body(*loop_vars)
        after = list(made) if isinstance(made, list | tuple) else [made]
        if len(after) != len(loop_vars):
            raise ValueError(
                "body in while_loop should return the same arity (length and structure) and types "
                "as loop_vars"
            )
        values = [assign(var) for var in after]
        for var, value in zip(loop_vars, values, strict=True):
            assign_to(var, value)
        assign(cond(*loop_vars), going)
    return loop_vars


__all__ = ["While", "while_loop"]
