"""The program a trainer of a cluster runs: the user's program without its optimizer.

Updates happen on the pservers; what is left computes the loss and the gradients, in the same order
and over the same vars.
"""

from __future__ import annotations

import dataclasses

from psrt.graph.program import Program


def trainer_program(program: Program) -> Program:
    """`program` without its optimize ops; `program` itself is left as it is."""
    kept = [op for op in program.ops if op.role != "optimize"]
    return dataclasses.replace(program, ops=kept)
