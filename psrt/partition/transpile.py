"""The program a trainer runs: the user's program without the updates that happen elsewhere.

What is left computes the loss and the gradients, in the same order and over the same vars.
"""

from __future__ import annotations

import dataclasses

from psrt.core.specs import CommunicationMode, Geo
from psrt.graph.clip_and_decay import without_decay
from psrt.graph.program import Program


def program_for(program: Program, mode: CommunicationMode) -> Program:
    """What a trainer of a cluster in `mode` runs; `program` itself is left as it is."""
    return geo_program(program) if isinstance(mode, Geo) else trainer_program(program)


def trainer_program(program: Program) -> Program:
    """For a trainer of a cluster: pservers regularise and do all updates.

    `program` itself is left as it is.
    """
    kept = [op for op in program.ops if op.role != "optimize"]
    return without_decay(dataclasses.replace(program, ops=kept))


def geo_program(program: Program) -> Program:
    """For Geo: dense parameters are updated in the scope, sparse tables by the communicator.

    A sparse table has rows in the trainer's own memory then, which the gradients of a step are
    applied to; the scope holds none of it.
    """
    tables = {p.name for p in program.parameters.values() if p.sparse or p.distributed}
    return _without_updates_of(tables, program)


def local_program(program: Program) -> Program:
    """For a trainer alone: distributed tables have no place in its scope and are updated apart."""
    apart = {p.name for p in program.parameters.values() if p.distributed}
    return _without_updates_of(apart, program)


def _without_updates_of(names: set[str], program: Program) -> Program:
    kept = [op for op in program.ops if op.type != "update" or names.isdisjoint(op.writes())]
    return dataclasses.replace(program, ops=kept)
