"""Values that trainers of Sync compute a step on, kept until the step after it.

A trainer may die when some pservers have its push of a step and others have not. Those that have it
close the round; its successor has to compute the step again for the others, on the same values. So
a pserver keeps what it sent for the last two steps, and sends that again for a step whose push it
has. Dense blocks are kept as they are: the next update then copies them first. Rows are copied.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from psrt.core.types import I64, Array
from psrt.pserver.serving.parts import ChangedPull, Pull, RowsPull
from psrt.rpc import pb
from psrt.rpc.wire import Message

MOST_BYTES = 16 << 20
"""Values of one call that are kept. Larger ones are not: to copy 64 MiB in each round takes 25
ms."""

KEPT_STEPS = 2


class _KeptRead(NamedTuple):
    """Reply to one pull of a table, for step `step` of lineage `origin`."""

    origin: int
    step: int
    ids: I64 | None
    part: pb.Part
    tensors: tuple[Array, ...]

    def fits(self, origin: int, step: int, pull: Pull) -> bool:
        """True if it is the answer to `pull` for a step."""
        ids = pull.rows.ids if isinstance(pull, RowsPull) else None
        same = ids is self.ids or (
            ids is not None and self.ids is not None and np.array_equal(ids, self.ids)
        )
        return (self.origin, self.step) == (origin, step) and same


class KeptReads:
    """The kept values of all trainers, by table; any thread calls this."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._of: dict[tuple[int, str], list[_KeptRead]] = {}

    def add(
        self, trainer: int, origin: int, step: int, pulls: Sequence[Pull], reply: Message
    ) -> None:
        """Keep a reply that `trainer` computes `step` on; the first of each table and step."""
        if sum(tensor.nbytes for tensor in reply.tensors) > self._most_bytes:
            return
        tensors = iter(reply.tensors)
        made = [_made(origin, step, pull, part, tensors) for pull, part in _pairs(pulls, reply)]
        with self._lock:
            for read in made:
                kept = self._of.setdefault((trainer, read.part.table), [])
                if not any((each.origin, each.step) == (origin, step) for each in kept):
                    self._of[trainer, read.part.table] = [*kept[1 - KEPT_STEPS :], read]

    def again(self, trainer: int, origin: int, step: int, pulls: Sequence[Pull]) -> Message | None:
        """The reply that `trainer` has computed `step` on; None if any of it is not kept."""
        header = pb.Header()
        tensors: list[Array] = []
        with self._lock:
            for pull in pulls:
                kept = self._of.get((trainer, _table(pull)), ())
                found = [each for each in kept if each.fits(origin, step, pull)]
                if not found:
                    return None
                header.parts.add().CopyFrom(found[0].part)
                tensors += found[0].tensors
        return Message(header, tensors)

    def release(self, trainer: int) -> None:
        """Drop what is kept for a trainer."""
        with self._lock:
            self._of = {key: kept for key, kept in self._of.items() if key[0] != trainer}


def _pairs(pulls: Sequence[Pull], reply: Message) -> list[tuple[Pull, pb.Part]]:
    return list(zip(pulls, reply.header.parts, strict=True))


def _made(origin: int, step: int, pull: Pull, part: pb.Part, tensors: Iterator[Array]) -> _KeptRead:
    """The read of one part; takes its tensors from the iterator."""
    kept = pb.Part(kind=part.kind, table=part.table, version=part.version)
    precision = "float32" if isinstance(pull, ChangedPull) else pull.precision
    taken = [next(tensors) for _ in range(2 if precision == "int8" else 1)]
    if not isinstance(pull, RowsPull):
        return _KeptRead(origin, step, None, kept, tuple(taken))
    copies = tuple(tensor.copy() for tensor in taken)
    return _KeptRead(origin, step, pull.rows.ids.copy(), kept, copies)


def _table(pull: Pull) -> str:
    return str(pull.table.spec.name)
