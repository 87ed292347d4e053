"""Vars that a layer is given to write, and values of one element an example beside whole ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import Variable, shown_shape
from psrt.graph import layers as psrt_layers
from psrt.graph.ops import ROWS
from psrt.graph.program import Var


def assign_to(target: Variable, made: Variable) -> Variable:
    """Let `target` have the value of `made` from here on; returns `target`.

    A var that outlives steps is written, by a loop once it has ended; any other name stands for the
    new var. In a branch it has the new value only if the branch is taken.
    """
    program = made.program
    assert isinstance(program, FluidProgram)
    name = program.current(target.name)
    known = program.graph.vars.get(name)
    if known is not None and made.var.dtype != known.dtype:
        made = program.call(psrt_layers.cast, made, known.dtype)
    if known is None and any(target.name in turn.tensors for turn in program.loops):
        begun_outside(target, lambda: _undefined(made))
        known = program.graph.vars[program.current(target.name)]
    if known is not None and program.guards:
        made = where(program.guards[-1], made, program.variable(name))
    if known is not None and known.kind == "state" and not program.loops:
        program.call(psrt_layers.set_state, target, made)
        return target
    return program.assign(target, made)


class Turn:
    """The block of a loop under construction: what each name stood for before it.

    `tensors` are the names of `create_tensor` and its like that existed then.
    """

    def __init__(self, program: FluidProgram) -> None:
        self.before, self.tensors = dict(program.newest), {*program.tensors}
        self._program, self._vars = program, {*program.graph.vars}
        self.loop: psrt_layers.Loop = program.call(psrt_layers.Loop)
        self.loop.begin()

    def first(self, name: str) -> Var:
        """Return the var that a name stood for."""
        return self._program.graph.vars[self.before.get(name, name)]

    def changed(self) -> dict[str, str]:
        """Return names that stand for another var now, as such of the type of the one before."""
        made: dict[str, str] = {}
        for name in [n for n, var in self._program.newest.items() if self.before.get(n) != var]:
            if name in self._vars or name in self.before:
                var = self._program.variable(name)
                first = self.first(name)
                if var.var.shape != first.shape and var.shape == shown_shape(first.shape):
                    var = self._program.call(psrt_layers.reshape, var, first.shape)
                made[name] = var.var.name
        return made

    def restore(self) -> None:
        """Let all names stand for what they stood for."""
        self._program.newest.clear()
        self._program.newest.update(self.before)


def begun_outside(tensor: Variable, make: Callable[[], Variable]) -> None:
    """Let a tensor that no op has written begin as `make` has it, before loops around it."""
    program = default_main_program()
    around = [turn for turn in program.loops if tensor.name in turn.tensors]
    with ExitStack() as outside:
        for turn in reversed(around):
            outside.enter_context(turn.loop.outside())
        made = make().var.name
    for turn in around:
        turn.before[tensor.name] = made
    program.newest[tensor.name] = made


def _undefined(like: Variable) -> Variable:
    made: Variable = default_main_program().call(
        psrt_layers.undefined, like.var.shape, like.var.dtype
    )
    return made


@contextmanager
def guarded(condition: Variable) -> Iterator[None]:
    """Let vars be written in the block only if the bool `condition` holds."""
    program = default_main_program()
    whole = plain_condition(condition)
    if program.guards:
        whole = program.call(psrt_layers.logical_and, program.guards[-1], whole)
    program.guards.append(whole)
    known = len(program.graph.ops)
    try:
        yield
    finally:
        program.guards.pop()
    _check_kept(program, known)


def _check_kept(program: FluidProgram, known: int) -> None:
    """Raise for a layer from number `known` on that counts although its branch is not taken."""
    for op in program.graph.ops[known:]:
        kept = [name for name in op.writes() if program.graph.vars[name].kind == "state"]
        if kept and op.type != "set_state":
            raise ProgramError(
                f"{op} is in a branch. psrt would compute it in every step, so it would count "
                "batches whose branch is not taken.",
                hint=f"Call layers.{op.type} outside of the branches.",
            )


def moving_in_branch(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of `batch_norm`: in a branch its statistics move only if it is taken."""
    guards = default_main_program().guards
    if not guards:
        return dict(given)
    whole = guards[-1]
    return {**given, "condition": _one_bool(whole) if whole.var.shape == (ROWS,) else whole}


def where(condition: Variable, x: Variable, y: Variable) -> Variable:
    """Return x where `condition` holds, else y, in the shape of y."""
    program = default_main_program()
    if x.var.shape != y.var.shape and x.shape == y.shape:
        x = program.call(psrt_layers.reshape, x, y.var.shape)
    whole = plain_condition(condition)
    if whole.var.shape == (ROWS,) and y.var.shape[:1] != (ROWS,):
        whole = _one_bool(whole)
    made: Variable = program.call(psrt_layers.where, whole, x, y)
    return made


def _one_bool(condition: Variable) -> Variable:
    """Return the condition of a batch of one example; a step fails for another batch."""
    call = default_main_program().call
    yes, no = (call(psrt_layers.fill_constant, (), "bool", value) for value in (1, 0))
    made: Variable = call(psrt_layers.cond, condition, lambda: yes.var, lambda: no.var)
    return made


def plain_condition(condition: Variable) -> Variable:
    """Return a condition of one element as a scalar, which fits all shapes."""
    if condition.var.shape != (1,):
        return condition
    made: Variable = default_main_program().call(psrt_layers.reshape, condition, ())
    return made


def in_rows(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments whose ragged vars are plain rows, if others have rows of examples.

    Fluid joins them without a look at their lengths; here a step refuses lists of other than one.
    """
    found = [var for value in given.values() for var in _variables(value)]
    ragged = any(var.var.ragged for var in found)
    rows = any(not var.var.ragged and var.var.shape[:1] == (ROWS,) for var in found)
    if not (ragged and rows):
        return dict(given)
    return {name: as_rows(value) for name, value in given.items()}


def in_columns(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments whose lists of numbers are lists of rows (n, 1), if others are such."""
    found = [var for value in given.values() for var in _variables(value)]
    if not (all(x.var.ragged for x in found) and any(x.var.shape == (ROWS, 1) for x in found)):
        return dict(given)
    call = default_main_program().call
    return {
        name: call(psrt_layers.reshape, x, (ROWS, 1))
        if isinstance(x, Variable) and x.var.shape == (ROWS,)
        else x
        for name, x in given.items()
    }


def with_dimensions(value: Any) -> Any:
    """Return scalars as users see them, of shape (1,), in lists, too; other values as they are."""
    if isinstance(value, Variable) and value.var.shape == ():
        return default_main_program().call(psrt_layers.reshape, value, (1,))
    if isinstance(value, list | tuple):
        return [with_dimensions(item) for item in value]
    return value


def with_whole_labels(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of a loss whose labels of classes are int64, also where they are fed as
    floats."""
    label = given["label"]
    if given.get("soft_label") or not isinstance(label, Variable) or not label.var.type.is_float:
        return dict(given)
    return {**given, "label": default_main_program().call(psrt_layers.cast, label, "int64")}


def with_column(value: Any) -> Any:
    """Return rows of `fluid.embedding` of lists with Fluid's shape, (n, 1, width); others as they
    are."""
    if not isinstance(value, Variable) or not value.has_column:
        return value
    return default_main_program().call(psrt_layers.reshape, value, (ROWS, 1, value.shape[-1]))


def have_column(values: Iterable[Any]) -> bool:
    """Return whether all vars of ragged rows among `values` have a column, and there is one."""
    columns = [x.has_column for value in values for x in _variables(value) if x.var.ragged]
    return bool(columns) and all(columns)


def _variables(value: Any) -> Iterator[Variable]:
    if isinstance(value, Variable):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _variables(item)


def as_rows(value: Any) -> Any:
    """Return lists of one element an example as rows, in lists, too; others as they are."""
    if isinstance(value, Variable) and value.var.ragged:
        return default_main_program().call(psrt_layers.sequence_rows, value)
    if isinstance(value, list | tuple):
        return [as_rows(item) for item in value]
    return value


__all__ = [
    "Turn",
    "as_rows",
    "assign_to",
    "begun_outside",
    "guarded",
    "have_column",
    "in_columns",
    "in_rows",
    "moving_in_branch",
    "plain_condition",
    "where",
    "with_column",
    "with_dimensions",
    "with_whole_labels",
]
