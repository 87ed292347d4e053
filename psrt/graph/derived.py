"""Derived ids: ids of sparse tables that a program computes from the fed batch alone.

Rows of a sparse table are fetched before the step, so its ids are fed, or derived from fed data
(drawn negatives, the path of a class in a tree). Executors run the ops found here first, and a
trainer runs them for the next batch while this one computes.
"""

from __future__ import annotations

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
