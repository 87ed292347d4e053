"""Chains of tags by Fluid's names; lists, or rows that are filled up to one length."""

from __future__ import annotations

from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.declared import declared
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable
from psrt.fluid.parameters import attr_of
from psrt.graph import layers as psrt_layers
from psrt.graph.param import Param


def linear_chain_crf(
    input: Variable, label: Variable, param_attr: Any = None, length: Variable | None = None
) -> Variable:
    """Return −ln P(label | input) of each example (rows, 1), which Fluid calls the likelihood.

    `input` holds a float for each tag of each element. With a `length`, int64 (rows, 1), both are
    rows that are filled up: (rows, longest, tags) and (rows, longest).
    """
    x, tags = (_lists(var, length) for var in (input, label))
    return _called(psrt_layers.linear_chain_crf, x, tags, _weights(param_attr))


def crf_decoding(
    input: Variable, param_attr: Any, label: Variable | None = None, length: Variable | None = None
) -> Variable:
    """Return the most probable tag of each element, int64, by the weights of `linear_chain_crf`.

    With a `label` it is 1 where they agree, else 0. With a `length` the result is filled up by 0.
    Raises `ProgramError` for a `param_attr` without a name.
    """
    attr = attr_of(param_attr)
    if not attr or not attr.name:
        raise ProgramError(
            "layers.crf_decoding was given no name of its weights.",
            hint='Give that of linear_chain_crf: param_attr=fluid.ParamAttr(name="crfw").',
        )
    known = default_main_program().graph.parameters
    weights = Param(attr.name) if attr.name in known else _weights(param_attr)
    tags = None if label is None else _lists(label, length)
    path = _called(psrt_layers.crf_decoding, _lists(input, length), weights, tags)
    if length is None:
        return path
    padded, _ = default_main_program().call(psrt_layers.sequence_pad, path, 0)
    return _called(psrt_layers.squeeze, padded, [2])


def _weights(param_attr: Any) -> Any:
    attr = attr_of(param_attr)
    return declared(attr) if attr else None


def _lists(x: Variable, length: Variable | None) -> Variable:
    return x if length is None else _called(psrt_layers.sequence_unpad, x, length)


def _called(function: Any, *args: Any) -> Variable:
    made: Variable = default_main_program().call(function, *args)
    return made


__all__ = ["crf_decoding", "linear_chain_crf"]
