"""Vars (steps, batch, …), where psrt has the examples first.

`layers.transpose(x, [1, 0, 2])` makes a `StepsFirst` of (batch, steps, …), and makes it into that.
Elementwise layers take and return them; so does `StaticRNN`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psrt.core.types import Shape
from psrt.fluid.adapting.layer_table import ALIKE
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers
from psrt.graph.ops import ROWS


class StepsFirst:
    """A var (batch, steps, …) as users see it after a transposition: (steps, batch, …)."""

    def __init__(self, batch_first: Variable) -> None:
        self.batch_first = batch_first

    @property
    def shape(self) -> Shape:
        """The shape, with the steps first."""
        batch, steps, *inner = self.batch_first.shape
        return (steps, batch, *inner)

    @property
    def name(self) -> str:
        """The name of the var, whose fetched value has the batch first."""
        return self.batch_first.name


_KEEPING = frozenset(ALIKE.split()) | {"clip", "dropout", "scale"}


def keeps_steps(layer: str, given: Mapping[str, Any]) -> bool:
    """Return whether a layer computes element by element, and was given a `StepsFirst`."""
    is_elementwise = layer in _KEEPING or layer.startswith("elementwise_")
    return is_elementwise and any(isinstance(value, StepsFirst) for value in given.values())


def batch_first(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with the batch first; (batch, …) gets a step of its own."""
    return {name: _batch_first(value) for name, value in given.items()}


def _batch_first(value: Any) -> Any:
    if isinstance(value, StepsFirst):
        return value.batch_first
    if isinstance(value, Variable) and value.var.shape[:1] == (ROWS,):
        return default_main_program().call(psrt_layers.unsqueeze, value, [1])
    return value


__all__ = ["StepsFirst", "batch_first", "keeps_steps"]
