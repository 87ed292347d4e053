"""`Prefetch`: batches of a loader, read ahead in threads, with the rows that they look up.

    batches ─▶ thread "prefetch": reads, finds distinct ids ─▶ up to `depth` batches
        exact           the push of a step asks for the rows of the batch that comes next
        max_staleness   the push of a step, or thread "rows ahead", asks for the rows of a batch
                        some steps before its turn

The consumer gets the loader's own batches in their order, an error of the loader in its place, and
its end. Lookups find rows by their ids (`rows_ahead`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import torch

from psrt.core.errors import ConfigError
from psrt.core.specs import HalfAsync, Sync
from psrt.core.types import F32, I64
from psrt.data.reading import Ahead
from psrt.torch.reading.batch_ids import BatchIds
from psrt.torch.reading.pulled_rows import PulledRows
from psrt.torch.reading.read_batch import LEAVE_TIMEOUT_S, ReadBatch
from psrt.torch.rows_ahead import BatchLookups, Rows, Wanted, joined
from psrt.torch.session import TableSession
from psrt.torch.table_optimizer import session_of, tables_of

log = logging.getLogger("psrt.torch")

Batch = TypeVar("Batch")


class Prefetch(Generic[Batch]):
    """Iterates `loader`, up to `depth` batches ahead of the training of `model`.

    `exact` (default in Sync, HalfAsync and `local()`): lookups get the rows that they would get
    without it. They come with the push of the step before, so a step is one round trip instead of
    two. `max_staleness=k` (default 1 in the other modes): rows come while the model computes, in
    Async with the push of a step, else by a thread, and lack at most the last k steps of this
    trainer.

    `ids` maps a batch to the ids of its lookups: by table of an `Embedding` or `EmbeddingBag` a
    tensor, (ids, offsets) or a list of these, or by feature of a collection. Without it the batch
    has them under these names. Raises `ConfigError` for a mode that has no exact rows; iterating
    raises errors of the loader and of pulls.
    """

    def __init__(
        self,
        loader: Iterable[Batch],
        model: torch.nn.Module,
        depth: int = 2,
        *,
        exact: bool | None = None,
        max_staleness: int | None = None,
        ids: Callable[[Batch], Any] | None = None,
    ) -> None:
        self._ids = BatchIds(model, ids)
        self._session, self._loader = session_of(tables_of(model)), loader
        self._staleness = _staleness(self._session, exact, max_staleness)
        self._depth = _at_least_one("depth", depth)
        self._skips, self._warned = 0, False
        self._state: dict[str, Any] = {"batches": 0}

    def __iter__(self) -> Iterator[Batch]:
        self._session.open()
        batches, first = iter(self._loader), self._skips
        self._skips, used = 0, self.lookups_ahead
        with self._ahead(self._read(batches, first)) as ahead, self._session.ahead.keeping(ahead):
            for read in ahead:
                self._state = read.state
                yield read.batch
        if ahead.has_read and used == self.lookups_ahead and not self._warned:
            self._warned = True
            log.warning(
                "no lookup asked for the ids whose rows Prefetch has read ahead: it only costs "
                "time. Give it ids=, a function of a batch that returns the tensors that the model "
                "looks up."
            )

    def __len__(self) -> int:
        """The number of batches of the loader; raises `TypeError` if it has none."""
        return len(self._loader)  # type: ignore[arg-type]

    @property
    def lookups_ahead(self) -> int:
        """Lookups of tables of the session so far that found their rows read ahead."""
        return self._session.ahead.used

    def state_dict(self) -> dict[str, Any]:
        """The position behind the last batch that was handed out, whatever was read beyond.

        It is that of the loader if it has a `state_dict`, else a number of batches.
        """
        return self._state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on behind a position: the next iteration reads batches before it, and drops them,
        unless the loader has a `state_dict`."""
        if "loader" in state_dict:
            self._loader.load_state_dict(state_dict["loader"])  # type: ignore[attr-defined]
        else:
            self._skips = int(state_dict["batches"])
        self._state = state_dict

    def _read(self, batches: Iterator[Batch], first: int) -> Generator[ReadBatch, None, None]:
        for number, batch in enumerate(batches, 1):
            if number > first:
                yield ReadBatch(batch, self._ids.lookups(batch), self._position(number))

    def _position(self, number: int) -> dict[str, Any]:
        state = getattr(self._loader, "state_dict", None)
        return {"batches": number} if state is None else {"loader": state()}

    @contextmanager
    def _ahead(
        self, source: Generator[ReadBatch, None, None]
    ) -> Generator[_ExactRows | PulledRows, None, None]:
        name = type(self._loader).__name__
        read = Ahead(source, self._depth, "prefetch", code=name, leave_timeout_s=LEAVE_TIMEOUT_S)
        if self._staleness is None:
            with read:
                yield _ExactRows(read)
            return
        rows = PulledRows(read, self._session, self._staleness)
        with rows, read:  # the reader ends first: the puller may wait for it
            yield rows


class _ExactRows:
    """Batches whose rows come with the push before; asks for as many as the last step took."""

    def __init__(self, read: Ahead[ReadBatch]) -> None:
        self._read = read
        self._next: deque[ReadBatch] = deque()
        self._given, self._per_step = 0, 1
        self._asked: BatchLookups | None = None
        self._rows: Rows = {}
        self.has_read = False

    def __iter__(self) -> Iterator[ReadBatch]:
        return self

    def __next__(self) -> ReadBatch:
        given = self._next.popleft() if self._next else next(self._read)
        self._given += 1
        return given

    def find(self, table: str, ids: I64) -> F32 | None:
        if self._asked is None or table not in self._rows:
            return None
        return self._asked.found(table, ids, self._rows)

    def before_push(self) -> Wanted:
        self._per_step, self._given = max(1, self._given), 0
        self._rows, self._asked = {}, None
        while len(self._next) < self._per_step and self._read.has_item:
            self._next.append(next(self._read))
        if not self._next:
            return {}
        coming = list(self._next)[: self._per_step]
        self._asked = joined([read.lookups for read in coming])
        return self._asked.wanted

    def arrived(self, rows: Rows) -> None:
        self._rows = rows
        self.has_read |= bool(rows)


def _staleness(session: TableSession, exact: bool | None, staleness: int | None) -> int | None:
    """The bound that the arguments ask for; None for exact rows."""
    mode = session.backend.mode
    has_exact = isinstance(mode, Sync | HalfAsync)
    if exact and staleness is not None:
        raise ConfigError("Prefetch has exact rows or max_staleness, not both.")
    if exact and not has_exact:
        raise ConfigError(
            f"Prefetch has no exact rows in mode {type(mode).__name__}: other trainers change "
            "them at any time.",
            hint="Give max_staleness, the number of own steps that rows may lack.",
        )
    if staleness is not None:
        return _at_least_one("max_staleness", staleness)
    return None if exact or (exact is None and has_exact) else 1


def _at_least_one(name: str, value: int) -> int:
    if value < 1:
        raise ConfigError(f"Prefetch was given {name} = {value}.", hint="Give 1 or more.")
    return value


__all__ = ["Prefetch"]
