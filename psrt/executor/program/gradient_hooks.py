"""Hooks that offer each gradient to the sink as soon as it is final.

A gradient is final after the last computation that writes it: its backward op, the sum over the
replicas, or clipping and decay. Its hook runs right after that computation, in the same thread.
A step without hooks has no cost for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from psrt.executor.compute import Step, in_sequence
from psrt.executor.ports import GradSink
from psrt.executor.program.compiled import BoundOp, Compiled
from psrt.graph.program import Parameter, Role


def gradient_hooks(compiled: Compiled, sink: GradSink) -> Mapping[str, Step]:
    """One hook for each parameter with a gradient, by the name of the gradient's last var."""
    made = compiled.program.gradients()
    parameters = compiled.program.parameters.values()

    def offer(parameter: Parameter) -> None:
        sink.offer(parameter.name, compiled.gradient(parameter, made[parameter.name]))

    return {made[p.name]: partial(offer, p) for p in parameters if p.name in made}


def steps_with_hooks(compiled: Compiled, sink: GradSink) -> dict[Role, list[BoundOp]]:
    """Steps of a program without replicas, with a hook after the last writer of each gradient."""
    steps = {role: list(ops) for role, ops in compiled.steps.items()}
    roles: tuple[Role, ...] = ("backward", "clip_and_decay")
    for name, hook in gradient_hooks(compiled, sink).items():
        writers = [
            (role, at)
            for role in roles
            for at, (op, _) in enumerate(steps[role])
            if name in op.writes()
        ]
        if writers:
            role, at = writers[-1]
            op, step = steps[role][at]
            steps[role][at] = op, in_sequence([step, hook])
    return steps
