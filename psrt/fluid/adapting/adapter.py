"""Layer functions with Fluid's signatures, computed by psrt's layer functions.

The signatures are read from `layer_table`; nothing here depends on a layer. A call binds its
arguments as Python would, passes each under psrt's name, and runs in the default main program.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from typing import Any, TypeAlias

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.declared import declared
from psrt.fluid.adapting.sizes import reshaping
from psrt.fluid.adapting.steps_first import StepsFirst, batch_first, keeps_steps
from psrt.fluid.adapting.targets import (
    as_rows,
    assign_to,
    have_column,
    in_columns,
    in_rows,
    moving_in_branch,
    with_column,
    with_dimensions,
)
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import dtype_name
from psrt.fluid.parameters import attr_of
from psrt.graph import layers as psrt_layers

Layer: TypeAlias = Callable[..., Any]

_PARAM = {"param_attr": "param", "bias_attr": "bias", "attr": "param"}
_BY_DIMENSION = frozenset(("expand", "slice", "split", "unsqueeze", "unstack"))
"""Layers that count dimensions: a scalar has one, as users see it."""

_OF_COLUMNS = frozenset(("reduce_max", "reduce_mean", "reduce_sum", "slice", "split", "unsqueeze"))
"""Layers whose result depends on the dimensions that rows of lists have."""

_ALIKE_IN_COLUMNS = frozenset(
    ("dropout", "relu", "scale", "sequence_concat", "sequence_reverse", "sequence_slice", "tanh")
)
"""Layers whose result has the dimensions of their inputs."""

_OF_ROWS = frozenset(("huber_loss", "sigmoid_cross_entropy_with_logits", "smooth_l1"))
"""Losses of rows: lists have one element each there."""

_NAME = Parameter("name", Parameter.POSITIONAL_OR_KEYWORD, default=None)


def signatures(table: str) -> Iterator[tuple[str, Signature]]:
    """Yield name and signature of each line; an argument's annotation is what it becomes."""
    text = "".join(
        f"def {line}: ...\n" for line in table.strip().replace("\n    ", " ").split("\n")
    )
    for function in ast.parse(text).body:
        assert isinstance(function, ast.FunctionDef)
        yield function.name, Signature([*_parameters(function.args), _NAME])


def signature_like(function: Layer) -> Signature:
    """Return Fluid's signature of a layer with psrt's arguments, except those of parameters."""
    fluid = {psrt: name for name, psrt in _PARAM.items() if name != "attr"}
    given = inspect.signature(function).parameters.values()
    renamed = [p.replace(name=fluid.get(p.name, p.name), annotation=p.empty) for p in given]
    return Signature([*renamed, _NAME])


def adapted(name: str, signature: Signature, function: Layer) -> Layer:
    """Return the layer `name` with Fluid's `signature`, computed by psrt's `function`."""
    known = inspect.signature(function).parameters
    target_name, act_name = _named(signature, "target"), _named(signature, "activation")

    def layer(*args: Any, **options: Any) -> Any:
        try:
            bound = signature.bind(*args, **options)
        except TypeError as error:
            raise ProgramError(
                f"layers.{name} does not take these arguments: {error}.",
                hint=f"It is {name}{bare(signature)}.",
            ) from None
        bound.apply_defaults()
        layer_name = bound.arguments.pop("name") or ""
        given = _translated(name, signature, bound.arguments, known)
        has_steps = keeps_steps(name, given)
        if has_steps:
            given = batch_first(given)
        if not name.startswith("sequence_"):
            given = in_rows(given)
        if name in _BY_DIMENSION:
            given = {key: with_dimensions(value) for key, value in given.items()}
        if name in _OF_COLUMNS:
            given = {key: with_column(value) for key, value in given.items()}
        if name == "reshape":
            given = reshaping(given)
        if name == "log_loss":
            given = in_columns(given)
        if name in _OF_ROWS:
            given = {key: as_rows(value) for key, value in given.items()}
        if name == "batch_norm":
            given = moving_in_branch(given)
        made = default_main_program().call(function, layer_name=layer_name, **given)
        if bound.arguments.get(act_name):
            made = made.program.call(psrt_layers.scale, made, act=bound.arguments[act_name])
        if has_steps:
            return StepsFirst(made)
        if name in _ALIKE_IN_COLUMNS:
            made.has_column = have_column(given.values())
        target = bound.arguments.get(target_name)
        return made if target is None else assign_to(target, made)

    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = function.__doc__
    layer.__signature__ = signature  # type: ignore[attr-defined]
    return layer


def _translated(
    layer: str, signature: Signature, arguments: dict[str, Any], known: Any
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        becomes = signature.parameters[name].annotation
        if becomes in ("any", "target", "activation"):
            continue
        if becomes == "fixed":
            _check_fixed(layer, signature.parameters[name], value)
        elif name in _PARAM:
            given[_PARAM[name]] = _declared(layer, name, value)
        elif value is not None:
            value = dtype_name(value) if name == "dtype" else value
            given[name if becomes is Parameter.empty else becomes] = value
        elif known[name].default is Parameter.empty:
            raise ProgramError(f"layers.{layer} needs {name}, which Fluid would determine itself.")
    return given


def _declared(layer: str, name: str, value: Any) -> Any:
    attr = attr_of(value)
    if attr is False and name != "bias_attr":
        raise ProgramError(f"layers.{layer} was given {name}=False, but computes with a parameter.")
    return attr and declared(attr)


def _named(signature: Signature, becomes: str) -> str:
    """The name of the argument that becomes this, "" for none."""
    named = (p.name for p in signature.parameters.values() if p.annotation == becomes)
    return next(named, "")


def _check_fixed(layer: str, parameter: Parameter, value: Any) -> None:
    if value is not parameter.default and value != parameter.default:
        raise ProgramError(
            f"layers.{layer} was given {parameter.name}={value!r}; psrt has {parameter.default!r} "
            "alone.",
            hint=f"Leave {parameter.name} out.",
        )


def _parameters(arguments: ast.arguments) -> Iterator[Parameter]:
    defaults = [Parameter.empty] * (len(arguments.args) - len(arguments.defaults))
    values = [*defaults, *(ast.literal_eval(default) for default in arguments.defaults)]
    for argument, default in zip(arguments.args, values, strict=True):
        note = argument.annotation
        becomes = note.id if isinstance(note, ast.Name) else Parameter.empty
        yield Parameter(
            argument.arg, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=becomes
        )


def bare(signature: Signature) -> Signature:
    """Return a signature as users call it, without notes on its arguments."""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=bare, return_annotation=signature.empty)
