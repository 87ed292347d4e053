"""A background thread that keeps the next few items of a generator ready.

Owns one thread and a bounded queue; the training thread iterates. An error of the source surfaces
in the consumer, as itself, after the items that came before it. `close` ends the thread, also while
it waits for room in the queue, and closes the generator; it waits for an item that is being made.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from types import TracebackType
from typing import Generic, Self, TypeVar

from psrt.core.errors import DeadlineError
from psrt.core.threads import CrashReport, start_thread
from psrt.data.reading import BoundedQueue

Item = TypeVar("Item")

WAIT_S = 600.0
"""Backstop only: sources have deadlines of their own, and name what they wait for."""


class Ahead(Generic[Item]):
    """Iterates `source`, at most `capacity` items ahead of the consumer; `name` is the thread's."""

    def __init__(
        self, source: Generator[Item, None, None], capacity: int, name: str = "prepare"
    ) -> None:
        self._source = source
        self._items: BoundedQueue[Item] = BoundedQueue(max(1, capacity), producers=1)
        self._thread = start_thread(self._produce, name, CrashReport())

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        try:
            item = self._items.get(WAIT_S)
        except TimeoutError:
            raise DeadlineError(
                f"thread {self._thread.name} has no next item after {WAIT_S:.0f} s."
            ) from None
        if item is None:
            raise StopIteration
        return item

    def close(self) -> None:
        """Stop preparing; items not consumed yet are dropped."""
        self._items.close()
        self._thread.join(WAIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _produce(self) -> None:
        try:
            with closing(self._source) as items:
                for item in items:
                    if not self._items.put(item):
                        break
            self._items.producer_done()
        except BaseException as error:  # whatever it is, the consumer must see it
            self._items.producer_done(error)
