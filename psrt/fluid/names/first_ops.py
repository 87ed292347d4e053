"""Ops of a startup program, as users see them: one for each var that it fills."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from psrt.core.specs import Constant, Initializer, Normal, TruncatedNormal, Uniform
from psrt.graph.program import Op, Program


def first_ops(program: Program) -> Iterator[Op]:
    """Yield the op that gives each parameter and state of `program` its first value.

    Types and attributes are Fluid's. They show what a run does; each run does all of it.
    """
    for parameter in program.parameters.values():
        type, numbers = _drawn(parameter.initializer)
        if type != "fill_constant":
            numbers["seed"] = parameter.seed
        yield _op(type, parameter.name, parameter.shape, "float32", numbers)
    for var in program.vars.values():
        if var.kind == "state":
            yield _op("fill_constant", var.name, var.shape, var.dtype, {"value": var.initial})


def _drawn(initializer: Initializer) -> tuple[str, dict[str, Any]]:
    match initializer:
        case Constant(value=value):
            return "fill_constant", {"value": value}
        case Uniform(low=low, high=high):
            return "uniform_random", {"min": low, "max": high}
        case Normal(mean=mean, std=std):
            return "gaussian_random", {"mean": mean, "std": std}
        case TruncatedNormal(mean=mean, std=std):
            return "truncated_gaussian_random", {"mean": mean, "std": std}


def _op(type: str, name: str, shape: Any, dtype: str, numbers: dict[str, Any]) -> Op:
    attrs = {"shape": [*shape], "dtype": dtype, **numbers}
    return Op(type, {}, {"Out": (name,)}, attrs, layer=name, origin="startup")


__all__ = ["first_ops"]
