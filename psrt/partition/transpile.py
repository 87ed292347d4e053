"""The program a trainer runs: the user's program without the updates that happen elsewhere.

What is left computes the loss and the gradients, in the same order and over the same vars.
"""

from __future__ import annotations

import dataclasses

from psrt.graph.program import Program


def trainer_program(program: Program) -> Program:
    """For a trainer of a cluster: pservers do all updates. `program` itself is left as it is."""
    kept = [op for op in program.ops if op.role != "optimize"]
    return dataclasses.replace(program, ops=kept)


def local_program(program: Program) -> Program:
    """For a trainer alone: distributed tables have no place in its scope and are updated apart."""
    apart = {p.name for p in program.parameters.values() if p.distributed}
    kept = [op for op in program.ops if op.type != "update" or apart.isdisjoint(op.writes())]
    return dataclasses.replace(program, ops=kept)
