"""Fluid's names of temporary vars: `mean_0.tmp_0`, `fc_0.tmp_2`.

A layer of Fluid numbers the vars of its ops, of which one op here may stand for several: `fc` is a
product for each input, their sum, a bias and an activation, and has the last of these vars alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

from psrt.graph.program import Op, Program

T = TypeVar("T")

_TEMPORARY = re.compile(r"(.+)\.tmp_(\d+)")
_OF_ONE_OP = re.compile(
    r"accuracy|concat|cos_sim|cross_entropy|elementwise_\w+|mean|pool2d|reduce_\w+|relu|scale"
    r"|sequence_pool|sigmoid|softmax|tanh"
)
"""Ops of psrt that are one op in Fluid, too."""


def known_name(name: str, program: Program) -> str:
    """Return psrt's name of the var that Fluid calls `name`, if there is one; else `name`."""
    match = _TEMPORARY.fullmatch(name)
    if match is None or name in program.vars:
        return name
    of_layer = (op for op in program.ops if op.layer == match[1] and op.role == "forward")
    return dict(_numbered(of_layer)).get(int(match[2]), name)


def _numbered(ops: Iterable[Op]) -> Iterator[tuple[int, str]]:
    """The numbers that Fluid gives to the outputs of a layer's ops, up to an op unlike Fluid's."""
    number = 0
    for op in ops:
        count = _vars_in_fluid(op)
        if not count:
            return
        number += count
        yield number - 1, next(iter(op.writes()))


def _vars_in_fluid(op: Op) -> int:
    """Return how many vars Fluid makes for an op; 0 if it has other ops."""
    if _OF_ONE_OP.fullmatch(op.type):
        return 1
    if op.type not in ("conv2d", "fc"):
        return 0
    products = len(op.inputs.get("x", ("image",)))
    sums = products > 1
    return products + sums + bool(op.inputs["bias"]) + bool(op.attrs["activation"])


class NamedVars(dict[str, T]):
    """Vars of a program by name, found by Fluid's names of temporary ones, too."""

    def __init__(self, variables: Iterable[tuple[str, T]], program: Program) -> None:
        super().__init__(variables)
        self._program = program

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, known_name(str(name), self._program))

    def __missing__(self, name: str) -> T:
        found = known_name(name, self._program)
        if found == name:
            raise KeyError(name)
        return self[found]


__all__ = ["NamedVars", "known_name"]
