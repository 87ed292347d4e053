"""Clipping and regularisation of gradients as ops of role "clip_and_decay".

The declaration of a parameter overrides the optimizer's for all. Gradients are clipped first and
regularised second, as in Fluid, so a weight decays by an equal share however small its gradient was
made. Where pservers update parameters they regularise, too: `without_decay`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from psrt.core.specs import check_formula
from psrt.graph.clip import ByGlobalNorm, ByNorm, ByValue, Clip, check_clip
from psrt.graph.program import Op, Program, Var, gradient_name
from psrt.graph.regularizer import L1Decay, L2Decay, Regularizer

_DECAYS = ("l1_decay", "l2_decay")


def append_clipping(program: Program, clips: Mapping[str, Clip | None]) -> None:
    """Clip the last gradient of each parameter in `clips`; None leaves it unchanged."""
    for declared in clips.values():
        if declared is not None:
            check_clip(declared)
    norms = {
        clip: _append_global_norm(program, [name for name in clips if clips[name] == clip])
        for clip in dict.fromkeys(clips.values())
        if isinstance(clip, ByGlobalNorm)
    }
    for name, clip in clips.items():
        match clip:
            case ByValue(max=high, min=low):
                limits = {"min": -high if low is None else low, "max": high}
                _append(program, name, "clip_gradient_by_value", "CLIP", limits)
            case ByNorm(norm=norm):
                _append(program, name, "clip_gradient_by_norm", "CLIP", {"norm": norm})
            case ByGlobalNorm(norm=norm):
                found = {"global_norm": (norms[clip],)}
                _append(program, name, "scale_by_global_norm", "CLIP", {"norm": norm}, found)


def append_regularization(program: Program, regularizers: Mapping[str, Regularizer | None]) -> None:
    """Add each parameter's regularizer to its last gradient."""
    for declared in regularizers.values():
        if declared is not None:
            check_formula("regularizer", declared, Regularizer)
    for name, regularizer in regularizers.items():
        weights = {"parameter": (name,)}
        match regularizer:
            case L1Decay(coeff=coeff) if coeff:
                _append(program, name, "l1_decay", "DECAY", {"coeff": coeff}, weights)
            case L2Decay(coeff=coeff) if coeff:
                _append(program, name, "l2_decay", "DECAY", {"coeff": coeff}, weights)


def without_decay(program: Program, of: Collection[str] | None = None) -> Program:
    """Return the program for a trainer whose gradients are regularised by pservers.

    Clipping stays, and `gradients()` names the clipped ones. The decay op of a parameter is removed
    if its record has the regularizer; ops that read the regularised gradient read the one before
    it. `program` is not changed. `of` names the parameters that are regularised there, None = all.
    """
    apart = program.parameters if of is None else of
    before = {
        op.outputs["out"][0]: op.inputs["gradient"][0]
        for op in program.ops
        if op.type in _DECAYS
        and op.inputs["parameter"][0] in apart
        and program.parameters[op.inputs["parameter"][0]].regularizer
    }
    return dataclasses.replace(
        program,
        vars={name: var for name, var in program.vars.items() if name not in before},
        ops=[_reading(before, op) for op in program.ops if before.keys().isdisjoint(op.writes())],
    )


def _reading(instead: Mapping[str, str], op: Op) -> Op:
    """`op` with some of its inputs replaced."""
    if instead.keys().isdisjoint(op.reads()):
        return op
    inputs = {s: tuple(instead.get(name, name) for name in ns) for s, ns in op.inputs.items()}
    return dataclasses.replace(op, inputs=inputs)


def last_gradient_op(program: Program, name: str) -> Op:
    """Return the op that made the last gradient of a parameter; later ones take its origin."""
    gradient = program.gradients()[name]
    return next(op for op in reversed(program.ops) if gradient in op.writes())


def _append_global_norm(program: Program, names: Sequence[str]) -> str:
    """Append the norm over the last gradients of some parameters; returns its var."""
    number = sum(op.type == "global_norm" for op in program.ops)
    made, origin = f"global_norm_{number}", last_gradient_op(program, names[0])
    program.vars[made] = Var(made, (), "float64")
    gradients = program.gradients()
    inputs = {"gradients": tuple(gradients[name] for name in names)}
    program.ops.append(_op("global_norm", inputs, made, {}, origin))
    return made


def _append(
    program: Program,
    name: str,
    type: str,
    suffix: str,
    attrs: dict[str, Any],
    more: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> None:
    """Append an op that makes the next gradient of parameter `name` out of the last."""
    last, origin = program.gradients()[name], last_gradient_op(program, name)
    made = f"{gradient_name(name)}@{suffix}"
    var = program.vars[last]
    program.vars[made] = dataclasses.replace(var, name=made)
    program.ops.append(_op(type, {"gradient": (last,), **more}, made, attrs, origin))


def _op(
    type: str, inputs: Mapping[str, tuple[str, ...]], made: str, attrs: dict[str, Any], origin: Op
) -> Op:
    outputs: dict[str, tuple[str, ...]] = {"out": (made,)}
    return Op(type, dict(inputs), outputs, attrs, "clip_and_decay", origin.layer, origin.origin)
