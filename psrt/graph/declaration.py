"""Optimizer declarations and `minimize`, which appends training to a program.

`minimize` appends the backward, clipping, regularisation and one update op per parameter. It also
writes optimizer, learning rate and regularizer into each parameter's record; the partition plan
makes the pservers' tables from these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypedDict

from psrt.core import specs
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.specs import ComputedRate, LearningRate, check_formula, scaled, schedule_of
from psrt.graph.backward import append_backward
from psrt.graph.builder import current_builder
from psrt.graph.clip import Clip
from psrt.graph.clip_and_decay import append_clipping, append_regularization
from psrt.graph.names import user_line
from psrt.graph.param import Param
from psrt.graph.program import Op, Program, Var, gradient_name
from psrt.graph.regularizer import Regularizer


@dataclass(frozen=True)
class Declaration:
    """An optimizer with its learning rate, and the clip and regularizer of its gradients.

    `regularization` and `grad_clip` apply to parameters whose `Param` sets none.
    """

    spec: specs.Optimizer
    learning_rate: LearningRate
    regularization: Regularizer | None = None
    grad_clip: Clip | None = None

    def minimize(self, loss: Var, also: Sequence[str] = ()) -> dict[str, str]:
        """Train every parameter that `loss`, a var of shape (), depends on.

        Returns the gradient var that each update reads, by parameter name. Vars named in `also` get
        gradients that nothing is updated by. A program may have
        several losses if each trains parameters of its own. Raises `ProgramError` outside a
        program, for a loss that is no scalar or depends on no trainable parameter, and for a
        parameter another loss trains; `ConfigError` for an unusable clip or regularizer.
        """
        program = current_builder("minimize").program
        return self.apply(list(append_backward(program, loss, also)))

    def apply(self, names: Sequence[str]) -> dict[str, str]:
        """Clip, regularise and update the parameters `names`, which have gradients.

        Returns the gradient var that each update reads, by parameter name. Raises `ConfigError` for
        an unusable clip or regularizer.
        """
        builder = current_builder("minimize")
        program = builder.program
        params = {name: builder.declared.get(name, Param()) for name in names}
        append_clipping(program, {n: params[n].clip or self.grad_clip for n in names})
        decays = {n: params[n].regularizer or self.regularization for n in names}
        append_regularization(program, decays)
        last = program.gradients()
        for name in names:
            parameter, used = program.parameters[name], params[name].optimizer or self
            program.parameters[name] = dataclasses.replace(
                parameter,
                optimizer=used.spec,
                learning_rate=scaled(used.learning_rate, parameter.rate_scale),
                regularizer=_with_effect(decays[name]),
            )
            program.ops.append(_update(program, name, last[name], used.learning_rate))
        return {name: last[name] for name in names}


def forget_updates(program: Program, names: Collection[str]) -> None:
    """Remove the updates of parameters, and what clips and regularises their gradients.

    Raises `ProgramError` if what remains reads a gradient that would be gone, as after a clip by
    the norm of more gradients than these.
    """
    gradients = {gradient_name(name) for name in names}
    made, gone, rest = set(gradients), list[Op](), list[Op]()
    for op in program.ops:
        is_gone = op.role in ("clip_and_decay", "optimize") and not made.isdisjoint(op.reads())
        (gone if is_gone else rest).append(op)
        if is_gone and op.role == "clip_and_decay":
            made.update(op.writes())
    lost = made - gradients
    kept = {op.inputs["parameter"][0] for op in gone if op.role == "optimize"} - set(names)
    if kept or any(not lost.isdisjoint(op.reads()) for op in rest):
        raise ProgramError(
            f"The optimizers of {', '.join(sorted(names))} were not replaced: gradients of "
            f"{', '.join(sorted(kept)) or 'another op'} are clipped together with theirs.",
            hint="Give the new optimizer all parameters that are clipped together.",
        )
    program.ops[:] = rest
    for name in lost:
        del program.vars[name]


def computed_rates(program: Program) -> dict[str, ComputedRate]:
    """Return learning rates that vars of a program hold, by parameter."""
    rates = {p.name: p.learning_rate for p in program.trained()}
    return {name: rate for name, rate in rates.items() if isinstance(rate, ComputedRate)}


def _with_effect(regularizer: Regularizer | None) -> Regularizer | None:
    return regularizer if regularizer is not None and regularizer.coeff else None


def _update(program: Program, name: str, gradient: str, rate: LearningRate) -> Op:
    user = next(op for op in program.ops if name in op.reads())
    inputs: dict[str, tuple[str, ...]] = {"parameter": (name,), "gradient": (gradient,)}
    if isinstance(rate, ComputedRate):
        inputs["rate"] = (rate.var,)
    return Op(
        "update",
        inputs,
        {"parameter": (name,)},
        role="optimize",
        layer=user.layer,
        origin=user.origin,
    )


class GradientOptions(TypedDict, total=False):
    """Keyword arguments of every optimizer: the defaults of its parameters."""

    regularization: Regularizer | None
    grad_clip: Clip | None


def declare(
    spec: specs.Optimizer, learning_rate: float | LearningRate, options: GradientOptions
) -> Declaration:
    """Make a declaration; raises `ConfigError` for numbers the formula does not allow."""
    try:
        check_formula("optimizer", spec, specs.Optimizer)
        return Declaration(spec, schedule_of(learning_rate), **options)
    except ConfigError as error:
        raise ConfigError(f"{user_line()}: {error.message}", hint=error.hint) from error


__all__ = ["Declaration", "GradientOptions", "computed_rates", "declare", "forget_updates"]
