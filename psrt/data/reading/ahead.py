"""A background thread that keeps the next few items of a generator ready.

`Ahead` owns one thread and a bounded queue; one consumer iterates. An error of the source reaches
the consumer unchanged, after the items that came before it. `close` ends the thread, also while it
waits for room in the queue, and closes the generator; it waits for an item that is being made.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from threading import Thread
from typing import Generic, Self, TypeVar

from psrt.core.errors import DeadlineError
from psrt.core.threads import CrashReport, start_thread
from psrt.data.reading.queue import BoundedQueue, QueueTimeout

log = logging.getLogger(__name__)

Item = TypeVar("Item")

WAIT_S = 600.0
"""Backstop only: most sources have deadlines of their own, and name what they wait for."""


class Ahead(Generic[Item]):
    """Iterates `source` in a thread, at most `capacity` items ahead of the consumer.

    `name` is the thread's, `code` the source's in messages. Raises `DeadlineError` if no item comes
    within `wait_timeout_s`.
    """

    def __init__(
        self,
        source: Generator[Item, None, None],
        capacity: int,
        name: str = "prepare",
        *,
        code: str = "",
        wait_timeout_s: float = WAIT_S,
        leave_timeout_s: float = WAIT_S,
    ) -> None:
        self._source, self._code = source, code or f"thread {name}"
        self._wait_timeout_s, self._leave_timeout_s = wait_timeout_s, leave_timeout_s
        # In a tuple: the queue returns None at its end, and None is an item too.
        self._items: BoundedQueue[tuple[Item]] = BoundedQueue(max(1, capacity), producers=1)
        self._closed = False
        self._thread = start_thread(self._produce, name, CrashReport())

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        try:
            item = self._items.get(self._wait_timeout_s)
        except QueueTimeout:
            raise late(self._code, self._wait_timeout_s) from None
        if item is None:
            raise StopIteration
        return item[0]

    @property
    def has_item(self) -> bool:
        """True if `next` returns an item at once."""
        return self._items.has_item

    def close(self) -> None:
        """Stop the thread and drop the items not consumed yet; idempotent."""
        if not self._closed:
            self._closed = True
            self._items.close()
            leave([self._thread], self._code, self._leave_timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _produce(self) -> None:
        error: BaseException | None = None
        try:
            with closing(self._source) as items:
                all(self._items.put((item,)) for item in items)
        except BaseException as raised:  # the consumer must get it, whatever it is
            error = raised
        self._items.producer_done(error)


def leave(threads: Iterable[Thread], code: str, timeout_s: float) -> None:
    """Wait for threads that were stopped, `timeout_s` in all; log those that still run `code`."""
    deadline = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            log.warning("thread %s goes on until %s returns", thread.name, code)


def late(code: str, timeout_s: float) -> DeadlineError:
    """The error for `code` that made no item in time."""
    return DeadlineError(
        f"{code} gave nothing within {timeout_s:g} s.",
        hint="Check what it waits for, or give a longer wait_timeout_s.",
    )
