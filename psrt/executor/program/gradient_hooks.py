"""Telling somebody of each gradient as soon as it is final, while the rest of a step still runs.

A gradient is final after the last computation that writes it: its backward op, the sum over the
replicas, or what adjusts it. That computation is followed by telling, in the same thread; a step
that nobody listens to does nothing for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from psrt.executor.compute import Step, in_turn
from psrt.executor.ports import OnGradient
from psrt.executor.program.compiled import BoundOp, Compiled
from psrt.graph.program import Parameter, Role


def gradient_hooks(compiled: Compiled, on_gradient: OnGradient) -> Mapping[str, Step]:
    """What tells of each gradient, by the name of its last var."""
    made = compiled.program.gradients()
    parameters = compiled.program.parameters.values()

    def tell(parameter: Parameter) -> None:
        on_gradient(parameter.name, compiled.gradient(parameter, made[parameter.name]))

    return {made[p.name]: partial(tell, p) for p in parameters if p.name in made}


def steps_with_hooks(compiled: Compiled, on_gradient: OnGradient) -> dict[Role, list[BoundOp]]:
    """The steps of a program that runs alone, with telling."""
    steps = {role: list(ops) for role, ops in compiled.steps.items()}
    roles: tuple[Role, ...] = ("backward", "adjust")
    for name, tell in gradient_hooks(compiled, on_gradient).items():
        writers = [
            (role, at)
            for role in roles
            for at, (op, _) in enumerate(steps[role])
            if name in op.writes()
        ]
        if writers:
            role, at = writers[-1]
            op, step = steps[role][at]
            steps[role][at] = op, in_turn([step, tell])
    return steps
