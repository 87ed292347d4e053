"""Fetches beyond vars of one level: lists of lists as `LoDTensor`s, and schedules of the learning
rate, numbers of a step where Fluid has vars; values of replicas, one after the other.

A loss that three replicas compute is fetched with shape (3,). Examples are concatenated, and what
all replicas share has one value: parameters, their gradients, counts of metrics, kept tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

import numpy as np

from psrt.core.specs import LearningRate, rate_at
from psrt.core.tensors import Ragged
from psrt.executor.program import Merge, Merged, merges
from psrt.fluid.framework import FluidProgram
from psrt.fluid.running.lod_tensor import LoDTensor
from psrt.fluid.running.scope import FluidScope
from psrt.fluid.running.values import FluidArray, names_of
from psrt.graph.derived import outer_lists
from psrt.graph.ops import ROWS
from psrt.graph.program import Var

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
    ones. A run that `keeps` leaves persistable tensors in its scope."""

    def __init__(
        self, program: FluidProgram, fetches: Any, as_tensors: bool = True, keeps: bool = True
    ) -> None:
        self._as_tensors, self._narrow, graph = as_tensors, program.narrow, program.graph
        names = names_of(fetches, program.current)
        self._kept = kept_tensors(program) if keeps else {}
        ragged = [name for name in names if name in graph.vars and graph.vars[name].ragged]
        outer = {name: outer_lists(graph, name) for name in ragged if as_tensors}
        self._outer = {name: lists for name, lists in outer.items() if lists}
        self._asked = names
        self.names = [*names, *self._outer.values(), *self._kept.values()]

    def of(self, values: Sequence[Any], scope: FluidScope) -> list[Any]:
        """Return what was asked for, as tensors or as it is, from the values of `names`."""
        made = dict(zip(self.names, values, strict=True))
        for name, var in self._kept.items():
            scope[name] = np.array(made[var], self._narrow.get(name))
        asked = values[: len(self._asked)]
        if not self._as_tensors:
            return list(asked)
        tensors = [LoDTensor.of(value) for value in asked]
        for name, tensor in zip(self._asked, tensors, strict=True):
            lists = made.get(self._outer.get(name, ""))
            if isinstance(lists, Ragged):
                outer = np.diff(lists.offsets).tolist()
                tensor.set_recursive_sequence_lengths([outer, *tensor.recursive_sequence_lengths()])
        return tensors


def kept_tensors(program: FluidProgram) -> dict[str, str]:
    """Return the vars of persistable tensors of a program, which a run leaves in its scope."""
    names, known = program.persistables & program.tensors.keys(), program.graph.vars
    vars = {name: program.current(name) for name in sorted(names)}
    return {n: var for n, var in vars.items() if var in known and not known[var].ragged}


class ReplicaValues:
    """The rule of each var of a program, and values joined by it."""

    def __init__(self, program: FluidProgram) -> None:
        graph = program.graph
        rules, kept = merges(graph), set(kept_tensors(program).values())

        def has_one(var: Var) -> bool:
            is_shared = var.kind in ("parameter", "state") or var.gradient_of in graph.parameters
            rule = rules[var.name]
            return ROWS in var.shape or is_shared or rule is Merge.LAST or var.name in kept

        self._merged = frozenset(var.name for var in graph.vars.values() if has_one(var))

    def merged(self, asked: bool) -> Merged:
        """Return the vars whose values an executor is to merge: none if that was not asked for."""
        return self._merged if asked else False

    @staticmethod
    def joined(values: Iterable[Any], asked: bool) -> list[Any]:
        """Return values in which lists of those of replicas are arrays, if that was asked for."""
        return [_joined(value) if asked else value for value in values]


def _joined(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return np.concatenate([np.atleast_1d(part) for part in value])
