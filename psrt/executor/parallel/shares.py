"""Near-equal shares of a batch, one for each replica.

With fewer examples than replicas some shares are empty. A batch without examples goes to the first
replica, which runs it as one executor would. A value for the whole batch goes to all replicas, or
is fed once for each of them. Shares are views; only offsets of ragged vars are copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from psrt.core.errors import DataError, ErrorCode
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.executor.memory import RowBatch
from psrt.executor.program import Feed, check_is_batch, has_rows
from psrt.graph.program import Var


@dataclass(frozen=True)
class BatchShare:
    """Examples `start` to `stop` of a batch of `examples`; share `number` 0, 1, …"""

    number: int
    start: int
    stop: int
    examples: int

    @property
    def is_empty(self) -> bool:
        """True if the replica has no examples to run."""
        return self.start == self.stop and (self.examples > 0 or self.number > 0)

    @property
    def weight(self) -> float:
        if not self.examples:
            return float(not self.is_empty)
        return (self.stop - self.start) / self.examples

    def part(self, fed: Array | Ragged, var: Var | None = None) -> Array | Ragged:
        """The share of one fed var; derived ids may have several rows per example, or none."""
        if isinstance(fed, Ragged):
            start, stop = self._elements(fed)
            offsets = fed.offsets[self.start : self.stop + 1] - start
            return Ragged(fed.values[start:stop], offsets)
        if var is not None and not has_rows(var):
            return self.own_value(fed, var)
        each = len(fed) // max(1, self.examples)
        return fed[self.start * each : self.stop * each]

    def own_value(self, fed: Array, var: Var) -> Array:
        """The value for this replica of a var without examples, see `is_for_each`."""
        if fed.shape == var.shape or not var.shape:
            return fed
        each = var.shape[0]
        are_single = len(fed) == each * self.examples  # some replicas may have no example
        place = self.start if are_single else self.number
        return fed[place * each : (place + 1) * each]

    def span(self, count: int, fed: Array | Ragged, has_rows: bool = True) -> slice:
        """The slice of the share among the `count` flat ids of `fed`."""
        if isinstance(fed, Ragged):
            return slice(*self._elements(fed))
        if not has_rows:
            return slice(0, count)
        each = count // max(1, self.examples)
        return slice(self.start * each, self.stop * each)

    def _elements(self, fed: Ragged) -> tuple[int, int]:
        if fed.batch_size != self.examples:
            raise DataError(
                f"Ids of {fed.batch_size} lists were made of those of {self.examples} examples; "
                "replicas share lists of examples alone.",
                hint="Look ids of lists of lists up as they are fed.",
            )
        return int(fed.offsets[self.start]), int(fed.offsets[self.stop])


@lru_cache(maxsize=64)
def shares(examples: int, replicas: int) -> tuple[BatchShare, ...]:
    """Near-equal shares, one for each replica, larger ones first, empty ones last."""
    cuts = [-(-examples * r // replicas) for r in range(replicas + 1)]
    return tuple(
        BatchShare(r, start, stop, examples) for r, (start, stop) in enumerate(pairwise(cuts))
    )


def examples_of(feed: Feed, vars: Mapping[str, Var]) -> int:
    """The number of examples of a batch; 1 for a program that is fed nothing."""
    check_is_batch(feed)
    with_rows = [var for var in vars.values() if var.kind == "data" and has_rows(var)]
    for var in with_rows:
        if var.name in feed:
            return _length(feed[var.name], var)
    if with_rows:
        var = with_rows[0]
        raise DataError(f"The batch does not feed {var.name}, declared as {var.type}.")
    return 1


def _length(fed: Array | Ragged, var: Var) -> int:
    try:
        return fed.batch_size if isinstance(fed, Ragged) else len(fed)
    except TypeError as error:  # None, a number, or an array without dimensions
        what = f"{var.name} is declared with shape {var.shape}, but fed with {fed!r}."
        raise DataError(what, code=ErrorCode.SHAPE_MISMATCH) from error


def is_for_each(fed: Array | Ragged | None, var: Var, replicas: int) -> bool:
    """Return whether `fed` holds a value for each of several replicas, one after the other."""
    if fed is None or isinstance(fed, Ragged) or has_rows(var) or not var.shape or replicas < 2:
        return False
    return np.shape(fed)[:1] == (var.shape[0] * replicas,)


def part_of_feed(share: BatchShare, feed: Feed, vars: Mapping[str, Var]) -> Feed:
    return {name: share.part(fed, vars.get(name)) for name, fed in feed.items()}


def part_of_rows(
    share: BatchShare, batch: RowBatch, feed: Feed, vars: Mapping[str, Var]
) -> RowBatch:
    """The rows of the whole batch, with the index of the share's ids only."""
    index = {
        name: positions[share.span(len(positions), feed[name], _has_rows(vars, name))]
        for name, positions in batch.index.items()
    }
    return RowBatch(batch.ids, batch.rows, index)


def _has_rows(vars: Mapping[str, Var], name: str) -> bool:
    return name not in vars or bool(has_rows(vars[name]))
