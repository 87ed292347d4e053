"""Fluid's names of temporary vars: `mean_0.tmp_0` is the output of layer `mean_0`."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import TypeVar

T = TypeVar("T")

_ENDS = ".tmp_0"
_OF_ONE_OP = re.compile(
    r"(accuracy|concat|cos_sim|cross_entropy|elementwise_\w+|mean|reduce_\w+|scale|sequence_pool"
    r"|sigmoid|softmax|square_error_cost|tanh)_\d+"
)
"""Layers that are one op in Fluid; the first var of others, such as `fc`, is not their output."""


def known_name(name: str, known: Container[str]) -> str:
    """Return psrt's name of a layer's output for Fluid's, where the layer has one; else `name`."""
    layer = name.removesuffix(_ENDS)
    if not (name.endswith(_ENDS) and _OF_ONE_OP.fullmatch(layer)) or name in known:
        return name
    is_only = f"{layer}.out" in known and f"{layer}.out_1" not in known
    return f"{layer}.out" if is_only else name


class NamedVars(dict[str, T]):
    """Vars by name, found by Fluid's names of temporary ones, too."""

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, known_name(str(name), self.keys()))

    def __missing__(self, name: str) -> T:
        found = known_name(name, self.keys())
        if found == name:
            raise KeyError(name)
        return self[found]


__all__ = ["NamedVars", "known_name"]
