"""Derived ids, which a program computes from the fed batch alone, and the outer lists of its vars.

Rows of a sparse table are fetched before the step, so its ids are fed, or derived from fed data
(drawn negatives, the path of a class in a tree). Executors run the ops found here first, and a
trainer runs them for the next batch while this one computes.

A ragged var has one level of lists. Where these were cut from longer ones (`sequence_nest`), or
have the lengths of such lists, another ragged var has an element for each of them: the outer level.
"""

from __future__ import annotations

from psrt.graph.ops import OPS
from psrt.graph.program import Op, Program


def derived_ops(program: Program) -> list[Op]:
    """Return the forward ops that compute ids of sparse tables, in program order."""
    needed = {name for op in _lookups(program) for name in op.inputs["ids"]}
    found: list[Op] = []
    for op in reversed(program.ops):
        if op.role == "forward" and not needed.isdisjoint(op.writes()):
            found.append(op)
            needed.update(op.reads())
    return found[::-1]


def derived_vars(program: Program) -> list[str]:
    """Return the vars of `derived_ops` that the rest of the program reads."""
    ops = derived_ops(program)
    inside = {id(op) for op in ops}
    read = {name for op in program.ops if id(op) not in inside for name in op.reads()}
    return [name for op in ops for name in op.writes() if name in read]


def trained_ancestor(program: Program, name: str) -> str:
    """Return a parameter or state var that `name` is computed from, "" if there is none."""
    ancestors = {name}
    for op in reversed(program.ops):
        if not ancestors.isdisjoint(op.writes()):
            ancestors.update(op.reads())
    kinds = ("parameter", "state")
    return next((each for each in sorted(ancestors) if program.vars[each].kind in kinds), "")


def _lookups(program: Program) -> list[Op]:
    return [
        op
        for op in program.ops
        if op.role == "forward"
        and "table" in op.inputs
        and program.parameters[op.inputs["table"][0]].sparse
    ]


# --- lists of lists -------------------------------------------------------------------------------

_MADE = {
    "sequence_nest": "lengths",
    "beam_search": "sources_out",
    "beam_search_decode": "sources_out",
}
"""Op types whose outputs are nested, and the slot with a var that has an element for each list."""


_LENGTHS = "@LENGTHS"


def lengths_name(name: str) -> str:
    """Return the name of the data var with the lengths of the inner lists of `name`."""
    return name + _LENGTHS


def is_lengths_name(name: str) -> bool:
    """Return whether a data var has the lengths of another one's inner lists."""
    return name.endswith(_LENGTHS)


def outer_lists(program: Program, name: str) -> str:
    """Return the var with an element for each list of the ragged var `name`, "" if there is none:
    the lists are those of examples."""
    writers = {made: op for op in program.ops if op.role == "forward" for made in op.writes()}
    while name in writers:
        op = writers[name]
        if op.type in _MADE:
            slot = _MADE[op.type]
            outer = (op.inputs.get(slot) or op.outputs[slot])[0]
            return outer if program.vars[outer].ragged and outer != name else ""
        name = _leader(program, op)
    return ""


def _leader(program: Program, op: Op) -> str:
    """The var whose lists those of an op's output are; "" if the op makes new ones."""
    if op.type == "sequence_regroup":
        given = op.inputs.get("y", ())
        return given[0] if given and program.vars[given[0]].ragged else ""
    ragged = {
        slot: tuple(program.vars[name].ragged for name in names if name)
        for slot, names in op.inputs.items()
    }
    slot = OPS[op.type].lengths_from(ragged)
    return op.inputs[slot][0] if slot else ""
