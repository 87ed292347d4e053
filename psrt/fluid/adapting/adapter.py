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
    with_whole_labels,
)
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import dtype_name
from psrt.fluid.parameters import attr_of
from psrt.graph import layers as psrt_layers

Layer: TypeAlias = Callable[..., Any]

Arguments: TypeAlias = dict[str, Any]
Preparation: TypeAlias = Callable[[Arguments], Arguments]

_PARAM = {"param_attr": "param", "bias_attr": "bias", "attr": "param"}

_ALIKE_IN_COLUMNS = frozenset(
    ("dropout", "relu", "scale", "sequence_concat", "sequence_reverse", "sequence_slice", "tanh")
)
"""Layers whose result has the dimensions of their inputs."""


def _each(change: Callable[[Any], Any]) -> Preparation:
    return lambda given: {name: change(value) for name, value in given.items()}


_PREPARED: tuple[tuple[frozenset[str], Preparation], ...] = (
    # layers that count dimensions: a scalar has one, as users see it
    (frozenset(("expand", "slice", "split", "unsqueeze", "unstack")), _each(with_dimensions)),
    # layers whose result depends on the dimensions that rows of lists have
    (
        frozenset(("reduce_max", "reduce_mean", "reduce_sum", "slice", "split", "unsqueeze")),
        _each(with_column),
    ),
    # losses of rows: lists have one element each there
    (frozenset(("huber_loss", "sigmoid_cross_entropy_with_logits", "smooth_l1")), _each(as_rows)),
    (frozenset(("log_loss",)), in_columns),
    (frozenset(("cross_entropy", "softmax_with_cross_entropy")), with_whole_labels),
    (frozenset(("reshape",)), reshaping),
    (frozenset(("batch_norm",)), moving_in_branch),
)
"""Layers, and how their arguments become psrt's, in this order."""

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
    prepare = [preparation for layers, preparation in _PREPARED if name in layers]
    if not name.startswith("sequence_"):
        prepare.insert(0, in_rows)

    def layer(*args: Any, **options: Any) -> Any:
        arguments = _bound(name, signature, args, options)
        layer_name = arguments.pop("name") or ""
        given = _translated(name, signature, arguments, known)
        has_steps = keeps_steps(name, given)
        if has_steps:
            given = batch_first(given)
        for preparation in prepare:
            given = preparation(given)
        made = default_main_program().call(function, layer_name=layer_name, **given)
        if arguments.get(act_name):
            made = made.program.call(psrt_layers.scale, made, act=arguments[act_name])
        if has_steps:
            return StepsFirst(made)
        if name in _ALIKE_IN_COLUMNS:
            made.has_column = have_column(given.values())
        target = arguments.get(target_name)
        return made if target is None else assign_to(target, made)

    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = function.__doc__
    layer.__signature__ = signature  # type: ignore[attr-defined]
    return layer


def _bound(name: str, signature: Signature, args: Any, options: Any) -> Arguments:
    """The arguments of a call by name, with defaults."""
    try:
        bound = signature.bind(*args, **options)
    except TypeError as error:
        raise ProgramError(
            f"layers.{name} does not take these arguments: {error}.",
            hint=f"It is {name}{bare(signature)}.",
        ) from None
    bound.apply_defaults()
    return bound.arguments


def _translated(layer: str, signature: Signature, arguments: Arguments, known: Any) -> Arguments:
    given: Arguments = {}
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
