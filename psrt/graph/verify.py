"""Legality of a program, checked after it was built, read from text or rewritten.

A program is legal when every op is of a known type with the slots of that type, reads only vars
defined before it, is the only writer of its outputs (an update op and a metric change their own
parameter or state in place), and declares outputs of the type its rule infers. The first violation
is raised as a `ProgramError` that names op, layer and the user's line.
"""

from __future__ import annotations

from collections.abc import Iterable

from psrt.core.errors import ErrorCode, ProgramError
from psrt.graph.gradients import RULES
from psrt.graph.ops import DTYPES, OPS, Mismatch, OpCall, OpDef
from psrt.graph.program import ROLES, Op, Program

_ACCUMULATING = {type for type, rule in RULES.items() if rule.accumulates}
_DTYPES = (*DTYPES, "int32", "uint8")
"""Dtypes of values, and of what an op keeps for its gradient."""


def verify(program: Program) -> None:
    """Raise `ProgramError` at the first violation."""
    _check_parameters(program)
    defined = {name for name, var in program.vars.items() if var.kind != "temp"}
    written: dict[str, Op] = {}
    for op in program.ops:
        definition = _definition_of(op)
        _check_reads(program, op, defined)
        _check_writes(program, op, written)
        _check_types(program, op, definition)
        defined.update(op.writes())


def check_computed(program: Program, fetches: Iterable[str]) -> None:
    """Raise `ProgramError` for a fetch that no op of a legal program computes."""
    written = {name for op in program.ops for name in op.writes()}
    for name in fetches:
        if program.vars[name].kind == "temp" and name not in written:
            raise ProgramError(f"The program has no op that computes {name}.")


def _refuse(op: Op, what: str, code: ErrorCode = ErrorCode.PROGRAM_INVALID) -> ProgramError:
    return ProgramError(f"The program is not legal: {op} {what}.", code=code)


def _check_parameters(program: Program) -> None:
    for name, parameter in program.parameters.items():
        var = program.vars.get(name)
        if var is None or var.kind != "parameter" or var.shape != parameter.shape:
            shape = parameter.shape
            raise ProgramError(f"Parameter {name} of shape {shape} does not fit its var {var}.")
    for var in program.vars.values():
        if var.kind == "parameter" and var.name not in program.parameters:
            raise ProgramError(f"Var {var.name} is a parameter, but no parameter has its name.")
        if var.dtype not in _DTYPES:
            raise ProgramError(f"Var {var.name} has the unknown dtype {var.dtype!r}.")


def _definition_of(op: Op) -> OpDef:
    definition = OPS.get(op.type)
    if definition is None:
        raise _refuse(op, "is of an unknown type")
    if op.role not in ROLES:
        raise _refuse(op, f"has the unknown role {op.role!r}")
    try:
        definition.check_slots(op.inputs)
    except Mismatch as mismatch:
        raise _refuse(op, f"is malformed: {mismatch}") from mismatch
    known = {slot.name for slot in definition.outputs}
    if not op.outputs.keys() <= known:
        raise _refuse(op, f"writes slots {sorted(op.outputs)}, its type has {sorted(known)}")
    return definition


def _check_reads(program: Program, op: Op, defined: set[str]) -> None:
    for name in op.reads():
        if name not in program.vars:
            raise _refuse(op, f"reads {name}, which is not declared")
        if name not in defined:
            raise _refuse(op, f"reads {name} before an op has computed it")
        parameter = program.parameters.get(name)
        is_lookup = op.type.removesuffix("_grad") in _ACCUMULATING or op.type == "update"
        reads_rows = is_lookup or op.role == "clip_and_decay"
        if parameter is not None and parameter.sparse and not reads_rows:
            raise _refuse(op, f"reads the sparse parameter {name}, of which only rows can be read")


def _check_writes(program: Program, op: Op, written: dict[str, Op]) -> None:
    for name in op.writes():
        if name not in program.vars:
            raise _refuse(op, f"writes {name}, which is not declared")
        if name in written and program.vars[name].kind != "state":
            raise _refuse(op, f"writes {name}, which {written[name]} has written")
        if program.vars[name].kind != "temp" and name not in op.reads():
            raise _refuse(op, f"overwrites {name}, which is a {program.vars[name].kind} var")
        written[name] = op


def _check_types(program: Program, op: Op, definition: OpDef) -> None:
    if definition.infer is None or op.role == "backward":
        _check_gradient_types(program, op)
        return
    for names in (*op.inputs.values(), *op.outputs.values()):
        if "" in names:
            raise _refuse(op, "has a var without a name")
    inputs = {slot: tuple(program.vars[n].type for n in names) for slot, names in op.inputs.items()}
    try:
        inferred = definition.types_of(OpCall(inputs, op.attrs))
    except (Mismatch, LookupError, TypeError, ValueError, AttributeError) as mismatch:
        raise _refuse(op, f"does not fit: {mismatch}", ErrorCode.SHAPE_MISMATCH) from mismatch
    for slot, names in op.outputs.items():
        if names == op.inputs.get(slot):  # changed in place
            continue
        computed = inputs[definition.each] if definition.each else (inferred[slot],) * len(names)
        for name, expected in zip(names, computed, strict=False):
            if program.vars[name].type != expected:
                declared = program.vars[name].type
                raise _refuse(
                    op,
                    f"writes {name} declared as {declared}, but computes {expected}",
                    ErrorCode.SHAPE_MISMATCH,
                )


def _check_gradient_types(program: Program, op: Op) -> None:
    for name in op.writes():
        var = program.vars[name]
        source = program.vars.get(var.gradient_of)
        if source is None:
            raise _refuse(op, f"writes {name}, which is not declared as a gradient")
        if source.type != var.type:
            raise _refuse(
                op,
                f"writes {name} of type {var.type}, but {source.name} is {source.type}",
                ErrorCode.SHAPE_MISMATCH,
            )
