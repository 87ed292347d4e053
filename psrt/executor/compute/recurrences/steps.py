"""The elements of a batch in steps of a recurrence, and the activations of gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from psrt.core.types import I64, Array


@dataclass(frozen=True)
class RecurrentStep:
    """One step: element `at[i]` of example `examples[i]`, which comes after element `before[i]`.

    Examples are in falling order of length, so those of a later step are the first of this one.
    `before` is empty for the first step.
    """

    at: I64
    before: I64
    examples: I64


def steps_of(offsets: I64, is_reverse: bool) -> Iterator[RecurrentStep]:
    """Yield the steps of examples with these offsets, the longest of which has the most."""
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    fallen = lengths[order]
    first = (offsets[1:] - 1 if is_reverse else offsets[:-1])[order]
    onward = -1 if is_reverse else 1
    before = np.empty(0, np.int64)
    for number in range(int(lengths.max(initial=0))):
        count = int(np.searchsorted(-fallen, -number, side="left"))
        at = first[:count] + onward * number
        yield RecurrentStep(at, before[:count], order[:count])
        before = at


Function: TypeAlias = Callable[[Array], Array]


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    result: Array = np.where(x >= 0, 1, small) / (1 + small)
    return result


FUNCTIONS: dict[str, Function] = {
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "identity": lambda x: x,
}
SLOPES: dict[str, Function] = {
    "sigmoid": lambda y: y * (1 - y),
    "tanh": lambda y: 1 - y * y,
    "relu": lambda y: np.asarray(y > 0, y.dtype),
    "identity": np.ones_like,
}
"""Derivatives, of the value of the function."""
