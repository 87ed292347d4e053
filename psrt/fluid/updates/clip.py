"""Gradient clipping by Fluid's names; psrt clips on the trainer, before regularisation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from psrt.core.errors import ProgramError
from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import Variable, missing
from psrt.graph.builder import Param
from psrt.graph.clip import ByGlobalNorm, ByNorm, ByValue, Clip
from psrt.graph.clip_and_decay import append_clipping

_Clip = TypeVar("_Clip", ByValue, ByNorm, ByGlobalNorm)

_INSTEAD = {
    "ErrorClipByValue": "It bounds gradients of values; psrt bounds those of parameters: "
    "GradientClipByValue, GradientClipByNorm, GradientClipByGlobalNorm."
}


Chooser: TypeAlias = Callable[[Variable], bool]


@dataclasses.dataclass(frozen=True)
class ChosenClip:
    """A clip for the parameters that `need_clip` returns True for."""

    clip: Clip
    need_clip: Chooser

    def __post_init__(self) -> None:
        if not callable(self.need_clip):
            raise TypeError(f"need_clip is {self.need_clip!r}, not a function of a parameter.")

    def names(self, program: FluidProgram) -> list[str]:
        """Return the names of these parameters."""
        known = list(program.graph.parameters)
        return [name for name in known if self.need_clip(program.variable(name))]


def GradientClipByValue(
    max: float, min: float | None = None, need_clip: Chooser | None = None
) -> ByValue | ChosenClip:
    """Clip every element to [min, max]; without `min` to [−max, max].

    `need_clip`, a function, returns True for the parameters whose gradients are clipped.
    """
    return _chosen(ByValue(float(max), None if min is None else float(min)), need_clip)


def GradientClipByNorm(clip_norm: float, need_clip: Chooser | None = None) -> ByNorm | ChosenClip:
    """Scale each gradient g to g · clip_norm / ‖g‖ where ‖g‖ is above `clip_norm`.

    `need_clip` is that of `GradientClipByValue`.
    """
    return _chosen(ByNorm(float(clip_norm)), need_clip)


def GradientClipByGlobalNorm(
    clip_norm: float, group_name: str = "default_group", need_clip: Chooser | None = None
) -> ByGlobalNorm | ChosenClip:
    """Scale all gradients by one factor, so that their joint norm is at most `clip_norm`.

    Pascanu, Mikolov & Bengio 2013, algorithm 1. psrt groups the parameters that have equal
    declarations; another `group_name` raises `ProgramError`. `need_clip` is that of
    `GradientClipByValue`.
    """
    if group_name != "default_group":
        raise ProgramError(
            f"GradientClipByGlobalNorm was given the group {group_name!r}; psrt forms groups by "
            "declaration: equal ones clip together.",
            hint="Leave group_name out; give the groups different norms to keep them apart.",
        )
    return _chosen(ByGlobalNorm(float(clip_norm)), need_clip)


def _chosen(clip: _Clip, need_clip: Chooser | None) -> _Clip | ChosenClip:
    return clip if need_clip is None else ChosenClip(clip, need_clip)


def set_gradient_clip(
    clip: Clip | ChosenClip,
    param_list: Iterable[str | Variable] | None = None,
    program: FluidProgram | None = None,
) -> None:
    """Declare a clip for parameters, by default all that exist; call it before `minimize`.

    Raises `ProgramError` for a name that is no parameter.
    """
    program = program or default_main_program()
    declared = program.builder.declared
    if isinstance(clip, ChosenClip):
        param_list, clip = param_list or clip.names(program), clip.clip
    elif param_list is None:
        param_list = list(program.graph.parameters)
    for parameter in param_list:
        name = parameter if isinstance(parameter, str) else parameter.name
        if name not in program.graph.parameters:
            raise ProgramError(f"set_gradient_clip names {name}, which is no parameter.")
        declared[name] = dataclasses.replace(declared.get(name, Param()), clip=clip)


def append_gradient_clip_ops(
    param_grads: Sequence[tuple[Variable, Variable]],
) -> Sequence[tuple[Variable, Variable]]:
    """Clip as `set_gradient_clip` has declared; returns the pairs with the clipped gradients."""
    if not param_grads:
        return param_grads
    program = param_grads[0][0].program
    assert isinstance(program, FluidProgram)
    declared = program.builder.declared
    params = {var.name: declared.get(var.name, Param()) for var, _ in param_grads}
    append_clipping(program.graph, {name: param.clip for name, param in params.items()})
    for name, param in params.items():
        declared[name] = dataclasses.replace(param, clip=None)  # it is done
    last = program.graph.gradients()
    return [(var, program.variable(last[var.name])) for var, _ in param_grads]


__all__ = ["GradientClipByGlobalNorm", "GradientClipByNorm", "GradientClipByValue"]
__all__ += ["append_gradient_clip_ops", "set_gradient_clip"]


def __getattr__(name: str) -> object:
    raise missing("fluid.clip", name, __all__, _INSTEAD)
