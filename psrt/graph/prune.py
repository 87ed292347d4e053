"""Pruning: cuts a program down to the ops that some of its vars depend on.

Prediction needs it: the forward ops of a trained program also compute a loss from labels, which are
missing then. `prune` makes a new program and does not change the given one; ops and vars keep their
order, so the data vars stay in the order of slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from psrt.core.errors import ProgramError
from psrt.core.hints import did_you_mean
from psrt.graph.program import Op, Program, Var


def prune(program: Program, fetches: Sequence[str], feeds: Sequence[str] | None = None) -> Program:
    """Return the part of `program` that computes the vars named `fetches`.

    `feeds` names the data vars that will be fed; they stay, needed or not, and a needed data var
    that is not among them raises. None keeps every needed data var. Raises `ProgramError` for a
    fetch or feed the program does not have.
    """
    for name in fetches:
        _need_var(program, name, "fetch")
    for name in feeds or ():
        if _need_var(program, name, "feed").kind != "data":
            raise ProgramError(
                f"{name} cannot be a feed: it is a {program.vars[name].kind} var, not a data var.",
                hint=f"The program is fed {_listed(v.name for v in program.data_vars())}.",
            )
    ops, used = _ops_behind(program, fetches)
    if feeds is not None:
        _check_fed(program, fetches, ops, used, feeds)
    kept = used.union(feeds or ())
    return Program(
        program.seed,
        {name: var for name, var in program.vars.items() if name in kept},
        ops,
        {name: record for name, record in program.parameters.items() if name in kept},
    )


def _ops_behind(program: Program, fetches: Sequence[str]) -> tuple[list[Op], set[str]]:
    """Return the ops that `fetches` depend on, in order, and every var they touch."""
    needed, used = set(fetches), set(fetches)
    ops = []
    for op in reversed(program.ops):
        if needed.isdisjoint(op.writes()):
            continue
        ops.append(op)
        needed.update(op.reads())
        used.update(op.reads(), op.writes())
    return ops[::-1], used


def _check_fed(
    program: Program, fetches: Sequence[str], ops: list[Op], used: set[str], feeds: Sequence[str]
) -> None:
    for var in program.data_vars():
        if var.name in used and var.name not in feeds:
            reader = next((f", read by {op}" for op in ops if var.name in op.reads()), "")
            raise ProgramError(
                f"{_listed(fetches)} cannot be computed from the feeds {_listed(feeds)}: "
                f"the data var {var.name}{reader}, is missing.",
                hint=f"Add {var.name} to the feeds, or fetch a var that does not depend on it.",
            )


def _need_var(program: Program, name: str, what: str) -> Var:
    var = program.vars.get(name)
    if var is None:
        hint = did_you_mean(name, program.vars)
        raise ProgramError(f"The program has no var {name} to {what}.", hint=hint)
    return var


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"
