"""Fusing updates: one op applies all dense parameters that one optimizer trains.

Bit-identical: the kernels run parameter by parameter. It removes the graph's work between them,
which for small parameters (biases) exceeds the update.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from psrt.graph.program import Op, Program


def fuse_updates(program: Program, keep: Collection[str] = ()) -> Program:
    """Fuse updates of dense parameters with equal optimizer and rate into one `updates`."""
    groups: dict[object, list[Op]] = {}
    for op in program.ops:
        if op.type == "update":
            parameter = program.parameters[op.inputs["parameter"][0]]
            key = op if parameter.sparse else (parameter.optimizer, parameter.learning_rate)
            groups.setdefault(id(op) if parameter.sparse else key, []).append(op)
    others = [op for op in program.ops if op.type != "update"]
    fused = [_one(group) for group in groups.values()]
    return dataclasses.replace(program, ops=others + fused)


def _one(group: list[Op]) -> Op:
    if len(group) == 1:
        return group[0]
    parameters = tuple(op.inputs["parameter"][0] for op in group)
    gradients = tuple(op.inputs["gradient"][0] for op in group)
    return dataclasses.replace(
        group[0],
        type="updates",
        inputs=group[0].inputs | {"parameter": parameters, "gradient": gradients},
        outputs={"parameter": parameters},
        layer=", ".join(dict.fromkeys(op.layer for op in group)),
    )
