"""Reader threads that keep a bounded queue of mini-batches filled.

`QueueReader` owns the threads. Each takes the next file of one list, so that uneven files balance;
a batch may span the files of one thread. With one thread, examples come in the order of files and
lines. The consumer is one thread: it iterates, gets a reader's error after the batches before it,
and closes. Parsing and file reads run without the GIL.

Reading can stop after any batch and continue from its `place`: one thread then gives exactly the
batches that were to come, several give each remaining example once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Generic, NamedTuple, Self, TypeVar

from psrt.core.counters import Counters
from psrt.core.errors import DeadlineError, PsrtError
from psrt.core.threads import CrashReport, join_threads, start_thread
from psrt.data.formats import Format, MultiSlotFormat
from psrt.data.reading.readers import FileReader, reader_of
from psrt.data.slots import Batch, Slot, batch_rows
from psrt.data.sources import (
    BEGINNING,
    Bookmark,
    DataFile,
    Files,
    Place,
    Position,
    Reading,
    TextSource,
)

_T = TypeVar("_T")


class QueueTimeout(TimeoutError):
    """No item came in time; apart from a `TimeoutError` that a producer raised."""


class BoundedQueue(Generic[_T]):
    """Several producers, one consumer. Ends when all producers are done, at an error, or closed.

    Producers that found it full continue when it is half empty: waking a thread for each item
    costs more than the item.
    """

    def __init__(self, capacity: int, producers: int) -> None:
        self._capacity = capacity
        self._producers = producers
        self._items: deque[_T] = deque()
        self._error: BaseException | None = None
        self._closed = False
        lock = threading.Lock()
        self._has_news, self._has_room = threading.Condition(lock), threading.Condition(lock)

    def put(self, item: _T) -> bool:
        """Wait for room, then append `item`; False = closed, stop producing."""
        with self._has_room:
            self._has_room.wait_for(lambda: self._closed or len(self._items) < self._capacity)
            if not self._closed:
                self._items.append(item)
                self._has_news.notify()
            return not self._closed

    def producer_done(self, error: BaseException | None = None) -> None:
        """End one producer; the consumer gets the first `error` after the items queued."""
        with self._has_news:
            self._producers -= 1
            self._error = self._error or error
            self._has_news.notify()

    def get(self, timeout_s: float) -> _T | None:
        """Return the next item, None at the end; raises `QueueTimeout`, or a producer's error."""
        with self._has_news:
            if not self._has_news.wait_for(lambda: self._items or self._over, timeout_s):
                raise QueueTimeout
            if not self._items:
                if self._error is not None:
                    raise self._error
                return None
            item = self._items.popleft()
            if len(self._items) <= self._capacity // 2:
                self._has_room.notify_all()
            return item

    @property
    def has_item(self) -> bool:
        """True if `get` returns an item at once."""
        return bool(self._items)

    def close(self) -> None:
        """Drop the items queued and release producers and consumer."""
        with self._has_news:
            self._closed = True
            self._items.clear()
            self._has_news.notify_all()
            self._has_room.notify_all()

    @property
    def _over(self) -> bool:
        return self._closed or self._error is not None or self._producers == 0


class _Read(NamedTuple):
    """A batch of a thread and its end; `begun`: files begun since the batch before."""

    batch: Batch
    thread: int
    begun: tuple[int, ...]
    position: Position


class QueueReader:
    """Iterate once: `with QueueReader(files, slots, 512) as batches: for batch in batches: …`.

    Files are MultiSlot text of `slots`, or of `format`. Reading begins at their start, or at
    `first`, a `place` of an earlier reader of these files. Threads start at once; `close`, or
    leaving the `with`, ends and joins them. Iterating raises `DeadlineError` with the files being
    read if no batch comes within `wait_timeout_s`.
    """

    def __init__(
        self,
        files: Sequence[DataFile],
        slots: Sequence[Slot],
        batch_size: int,
        threads: int = 1,
        capacity: int = 8,
        *,
        source: TextSource | None = None,
        format: Format | None = None,
        first: Place = BEGINNING,
        wait_timeout_s: float = 120.0,
        counters: Counters | None = None,
    ) -> None:
        self._bookmark = Bookmark(files, first)
        self._waiting = deque(self._bookmark.readings())
        threads = max(1, min(threads, len(self._waiting)))
        registry = counters or Counters()
        self._bytes = registry.counter("data_bytes", "bytes of text parsed")
        self._examples = registry.counter("data_examples", "examples handed to the trainer")
        self._wait_s = registry.timer("data_wait_s", "seconds the trainer waited for a batch")
        self._wait_timeout_s = wait_timeout_s
        self._source = source or Files()
        self._reading: dict[str, DataFile] = {}
        self._queue: BoundedQueue[_Read] = BoundedQueue(max(1, capacity), threads)
        self._crashes = CrashReport()
        format = format or MultiSlotFormat(slots)
        readers = [
            reader_of(format, batch_size, self._source, self._bytes.add) for _ in range(threads)
        ]
        self._threads = [
            start_thread(partial(self._run, i, reader), f"data-reader-{i}", self._crashes)
            for i, reader in enumerate(readers)
        ]

    def __iter__(self) -> Iterator[Batch]:
        while (read := self._next()) is not None:
            self._examples.add(batch_rows(read.batch))
            self._bookmark.hand(read.thread, read.begun, read.position)
            yield read.batch

    @property
    def place(self) -> Place:
        """The end of the last batch returned; for the thread that iterates."""
        return self._bookmark.place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, timeout_s: float = 10.0) -> None:
        """End the threads and wait for them; idempotent."""
        self._queue.close()
        self._source.stop()
        join_threads(self._threads, timeout_s, self._reading.get)

    def _next(self) -> _Read | None:
        with self._wait_s.time():
            try:
                return self._queue.get(self._wait_timeout_s)
            except QueueTimeout:
                names = ", ".join(str(path) for path in list(self._reading.values())) or "no file"
                raise DeadlineError(
                    f"no batch within {self._wait_timeout_s:g} s; reader threads are in {names}.",
                    hint="Check the storage the files are on.",
                ) from None

    def _run(self, thread: int, reader: FileReader) -> None:
        """Run one reader thread; an unexpected crash goes to the log and to the consumer."""
        error: BaseException | None = None
        try:
            self._read_files(thread, reader)
        except PsrtError as expected:
            error = expected
        except BaseException as crash:
            error = crash
            raise
        finally:
            self._reading.pop(threading.current_thread().name, None)
            self._queue.producer_done(error)

    def _read_files(self, thread: int, reader: FileReader) -> None:
        begun: list[int] = []

        def put(batch: Batch) -> bool:
            read = _Read(batch, thread, tuple(begun), reader.position)
            begun.clear()
            return self._queue.put(read)

        while reading := self._take_file():
            self._reading[threading.current_thread().name] = reading.file
            begun.append(reading.number)
            with closing(reader.read(reading.file, reading.first)) as batches:
                if not all(put(batch) for batch in batches):
                    return
        if last := reader.finish():
            put(last)

    def _take_file(self) -> Reading | None:
        try:
            return self._waiting.popleft()
        except IndexError:
            return None
