"""`DataFeeder`: mini-batches of tuples, one per example, as feeds of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.data.python import Reader, batch
from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import CPUPlace, Variable, cpu_places
from psrt.fluid.running import LoDTensor, tensors_of
from psrt.graph.ops import ANY
from psrt.graph.program import Var


class MisshapenError(DataError, ValueError):
    """Values of an example do not fit the shape of their var."""


class DataFeeder:
    """Converts examples to arrays; `feed_list` are data vars, in the order of an example."""

    def __init__(
        self,
        feed_list: Sequence[Variable | str],
        place: CPUPlace | None = None,
        program: FluidProgram | None = None,
    ) -> None:
        program = default_main_program() if program is None else program
        named = [program.variable(var) if isinstance(var, str) else var for var in feed_list]
        # the name of a var of lists of lists stands for another var: its inner lists
        self._vars = [replace(variable.var, name=variable.name) for variable in named]
        self._nested = {variable.name for variable in named if variable.lod_level > 1}

    def feed(self, iterable: Iterable[Sequence[Any]]) -> dict[str, LoDTensor]:
        """Return a tensor (examples, …) by name, with lengths for a var of lod_level 1.

        Errors are those of `batch_of`.
        """
        examples = list(iterable)
        made = tensors_of(self.batch_of(examples))
        for at, var in enumerate(self._vars):
            if var.name in self._nested:
                tensor, outer = made[var.name], [len(example[at]) for example in examples]
                tensor.set_recursive_sequence_lengths([outer, *tensor.recursive_sequence_lengths()])
        return made

    def batch_of(self, iterable: Iterable[Sequence[Any]]) -> dict[str, Array | Ragged]:
        """Return arrays (examples, …) by name, and a `Ragged` for a var of lod_level 1 or 2.

        That of level 2 has the innermost lists of all examples.

        Raises `DataError` naming the example that has too few or too many values, or the var whose
        values do not fit its shape.
        """
        examples = list(iterable)
        for number, example in enumerate(examples):
            if len(example) != len(self._vars):
                raise DataError(
                    f"Example {number} of the mini-batch has {len(example)} values, but the feeder "
                    f"feeds {', '.join(var.name for var in self._vars)}."
                )
        columns = {var.name: [e[at] for e in examples] for at, var in enumerate(self._vars)}
        for name in self._nested:
            columns[name] = [inner for example in columns[name] for inner in example]
        return {var.name: _fed(var, columns[var.name]) for var in self._vars}

    def feed_parallel(
        self, iterable: Iterable[Iterable[Sequence[Any]]], num_places: int | None = None
    ) -> list[dict[str, LoDTensor]]:
        """Return one feed for each mini-batch, for a run by replicas.

        Raises `DataError`, a `ValueError` too, unless there are `num_places` mini-batches, by
        default one for each replica of `CPU_NUM`.
        """
        parts, places = list(iterable), num_places or len(cpu_places())
        if len(parts) != places:
            raise MisshapenError(
                f"feed_parallel was given {len(parts)} mini-batches for {places} places."
            )
        return [self.feed(part) for part in parts]

    def decorate_reader(
        self,
        reader: Reader[Iterable[Sequence[Any]]],
        multi_devices: bool,
        num_places: int | None = None,
        drop_last: bool = True,
    ) -> Reader[dict[str, LoDTensor] | list[dict[str, LoDTensor]]]:
        """Return a reader of feeds for a reader of mini-batches.

        With `multi_devices` a feed is a list with a mini-batch for each of `num_places`. Those of
        the end that are too few are dropped, or with `drop_last=False` raise `DataError`.
        """

        def feeds() -> Iterator[dict[str, LoDTensor] | list[dict[str, LoDTensor]]]:
            if not multi_devices:
                yield from map(self.feed, reader())
                return
            places = num_places or len(cpu_places())
            for parts in batch(reader, places, drop_last)():
                yield self.feed_parallel(parts, places)

        return feeds


def _fed(var: Var, column: Sequence[Any]) -> Array | Ragged:
    if var.ragged:
        return _lists(var, column)
    shape = var.shape[1:]
    try:
        if ANY in shape:  # examples of one mini-batch agree in the sizes that are open
            return np.array([np.asarray(values, var.dtype) for values in column])
        rows = [np.asarray(values, var.dtype).reshape(shape) for values in column]
        return np.array(rows, var.dtype).reshape(-1, *shape)
    except (ValueError, TypeError) as error:
        raise MisshapenError(
            f"The values of {var.name}, declared with shape {var.shape}, do not fit: {error}."
        ) from error


def _lists(var: Var, column: Sequence[Any]) -> Ragged:
    shape = (-1, *var.shape[1:])
    parts = [np.asarray(values, var.dtype).reshape(shape) for values in column]
    ends = np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)
    return Ragged(np.concatenate([np.empty((0, *var.shape[1:]), var.dtype), *parts]), ends)


__all__ = ["DataFeeder"]
