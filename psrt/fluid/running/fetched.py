"""Fetches beyond vars of one level: lists of lists as `LoDTensor`s, and schedules of the learning
rate, numbers of a step where Fluid has vars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from psrt.core.specs import LearningRate, rate_at
from psrt.core.tensors import Ragged
from psrt.fluid.framework import FluidProgram
from psrt.fluid.running.lod_tensor import LoDTensor
from psrt.fluid.running.scope import FluidScope
from psrt.fluid.running.values import FluidArray
from psrt.graph.derived import outer_lists
from psrt.graph.program import Program

_SCHEDULES = get_args(LearningRate)


class FetchedRates:
    """A fetch list, of which some may be schedules; `vars` are the others."""

    def __init__(self, fetches: Any) -> None:
        listed = fetches if isinstance(fetches, list | tuple) else [fetches]
        self._rates = {at: each for at, each in enumerate(listed) if isinstance(each, _SCHEDULES)}
        self.vars = [each for each in listed if not isinstance(each, _SCHEDULES)]
        if not self._rates:
            self.vars = fetches

    @property
    def are_all(self) -> bool:
        """True for schedules alone."""
        return bool(self._rates) and not self.vars

    def beside(self, values: Sequence[Any], step: int) -> list[Any]:
        """Return the values of `vars` with those of schedules in step `step` = 0, 1, … among them,
        float32 (1,)."""
        found = list(values)
        for at, rate in self._rates.items():
            found.insert(at, np.array([rate_at(rate, step)], np.float32).view(FluidArray))
        return found


def rates_alone(fetches: Any, scope: FluidScope, program: FluidProgram) -> list[Any]:
    """Return the values of schedules in the next step of a program without ops."""
    rates = FetchedRates(fetches)
    if not rates.are_all:
        return []
    scope.steps[program] += 1
    return rates.beside([], scope.steps[program] - 1)


class FetchedTensors:
    """The fetches of a run; those of one that returns `as_tensors` have outer lists beside inner
    ones."""

    def __init__(self, program: Program, names: Sequence[str], as_tensors: bool = True) -> None:
        self._as_tensors = as_tensors
        self.names = self._asked = list(names)
        if not as_tensors:
            return
        ragged = [name for name in names if name in program.vars and program.vars[name].ragged]
        self._outer = {name: outer for name in ragged if (outer := outer_lists(program, name))}
        self.names = [*names, *self._outer.values()]

    def of(self, values: Sequence[Any]) -> list[Any]:
        """Return what was asked for, as tensors or as it is, from the values of `names`."""
        if not self._as_tensors:
            return list(values)
        made = dict(zip(self.names[len(self._asked) :], values[len(self._asked) :], strict=True))
        tensors = [LoDTensor.of(value) for value in values[: len(self._asked)]]
        for name, tensor in zip(self._asked, tensors, strict=True):
            lists = made.get(self._outer.get(name, ""))
            if isinstance(lists, Ragged):
                outer = np.diff(lists.offsets).tolist()
                tensor.set_recursive_sequence_lengths([outer, *tensor.recursive_sequence_lengths()])
        return tensors
