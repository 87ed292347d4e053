"""The program a trainer runs: the user's program without the updates that happen elsewhere.

The remaining ops compute the loss and the gradients, in unchanged order and over unchanged vars.
"""

from __future__ import annotations

import dataclasses

from psrt.core.specs import Collective, CommunicationMode, Geo
from psrt.graph.clip_and_decay import without_decay
from psrt.graph.program import Program


def program_for(program: Program, mode: CommunicationMode) -> Program:
    """The program of a trainer in `mode`; `program` itself is not changed."""
    if isinstance(mode, Collective):
        return collective_program(program)
    return geo_program(program) if isinstance(mode, Geo) else trainer_program(program)


def trainer_program(program: Program) -> Program:
    """The program of a trainer in a cluster: pservers regularise and update."""
    kept = [op for op in program.ops if op.role != "optimize"]
    return without_decay(dataclasses.replace(program, ops=kept))


def geo_program(program: Program) -> Program:
    """The program of a Geo trainer: updates dense parameters in the scope, but no sparse tables.

    The communicator updates those in the trainer's memory; the scope holds none of their rows.
    """
    return _without_updates_of(_tables(program), program)


def collective_program(program: Program) -> Program:
    """The program of a trainer in a group without pservers: updates dense parameters in the scope.

    The communicator regularises and updates sparse tables, by the mean gradients of all trainers.
    """
    tables = _tables(program)
    return without_decay(_without_updates_of(tables, program), tables)


def local_program(program: Program) -> Program:
    """The program of a trainer without pservers: does not update distributed tables.

    These are not in its scope and are updated apart.
    """
    apart = {p.name for p in program.parameters.values() if p.distributed}
    return _without_updates_of(apart, program)


def _tables(program: Program) -> set[str]:
    return {p.name for p in program.parameters.values() if p.sparse or p.distributed}


def _without_updates_of(names: set[str], program: Program) -> Program:
    kept = [op for op in program.ops if op.type != "update" or names.isdisjoint(op.writes())]
    return dataclasses.replace(program, ops=kept)


__all__ = ["local_program", "program_for", "trainer_program"]
