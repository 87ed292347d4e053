"""Threads that read whole files into memory, and their readers, which return records.

`Loading` owns the threads. Each takes the next file of one list and reads it with a reader of its
own. A piece never spans files, so records are in the order of files and lines for any number of
threads. After an error the other threads stop at their next piece. Waiting without progress raises
a `DeadlineError` that names the files being read.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Protocol

from psrt.core.errors import DeadlineError, PsrtError
from psrt.core.threads import CrashReport, join_threads, start_thread
from psrt.data.datasets.packing import Packer
from psrt.data.datasets.record_lines import RecordParser
from psrt.data.datasets.records import Records
from psrt.data.reading import FileReader
from psrt.data.sources import DataFile, FilePart, TextSource


class RecordReader(Protocol):
    """Reads whole files; belongs to one thread."""

    def read(self, path: DataFile) -> Generator[Records, None, None]:
        """Yield all records of a file, in pieces of this file only."""
        ...


class Loading:
    """Begins at once; `reader` makes a reader for each thread."""

    def __init__(
        self,
        files: Sequence[DataFile],
        source: TextSource,
        reader: Callable[[], RecordReader],
        threads: int,
    ) -> None:
        self._source, self._reader = source, reader
        self._waiting = deque(enumerate(files))
        self._pieces: list[deque[Records]] = [deque() for _ in files]
        self._reading: dict[str, DataFile] = {}
        self._running = max(1, min(threads, len(files)))
        self._progress = 0
        self._error: BaseException | None = None
        self._stopped = False
        self._changed = threading.Condition()
        crashes = CrashReport()
        self._threads = [
            start_thread(self._run, f"data-loader-{i}", crashes) for i in range(self._running)
        ]

    def wait(self, timeout_s: float) -> deque[Records]:
        """Return the pieces in the order of files, once all are read; raises errors of threads.

        `timeout_s` bounds the time without progress.
        """
        while self._wait_for_news(timeout_s):
            pass
        if self._error is not None:
            raise self._error
        return deque(piece for of_file in self._pieces for piece in of_file)

    def close(self, timeout_s: float = 10.0) -> None:
        """End the threads and wait for them; idempotent."""
        self._stopped = True
        self._source.stop()
        join_threads(self._threads, timeout_s, self._reading.get)

    def _wait_for_news(self, timeout_s: float) -> bool:
        """Wait for the next progress; returns whether threads still run."""
        with self._changed:
            seen = self._progress
            if not self._changed.wait_for(lambda: seen != self._progress or self._over, timeout_s):
                names = ", ".join(str(path) for path in self._reading.values()) or "no file"
                raise DeadlineError(
                    f"nothing was loaded within {timeout_s:g} s; loader threads are in {names}.",
                    hint="Check the storage the files are on.",
                )
            return not self._over

    @property
    def _over(self) -> bool:
        return self._running == 0 or self._error is not None

    def _run(self) -> None:
        """Run one thread; an unexpected crash goes to the log and to the waiting thread."""
        error: BaseException | None = None
        try:
            self._load_files(self._reader())
        except PsrtError as expected:
            error = expected
        except BaseException as crash:
            error = crash
            raise
        finally:
            with self._changed:
                self._reading.pop(threading.current_thread().name, None)
                self._error = self._error or error
                self._running -= 1
                self._changed.notify_all()

    def _load_files(self, reader: RecordReader) -> None:
        while taken := self._take_file():
            number, path = taken
            with closing(reader.read(path)) as pieces:
                for piece in pieces:
                    self._pieces[number].append(piece)
                    if not self._go_on():
                        return

    def _take_file(self) -> tuple[int, DataFile] | None:
        with self._changed:
            if not self._waiting or self._stopped:
                return None
            taken = self._waiting.popleft()
            self._reading[threading.current_thread().name] = taken[1]
            return taken

    def _go_on(self) -> bool:
        with self._changed:
            self._progress += 1
            self._changed.notify_all()
            return not self._stopped and self._error is None


class PackedBatches:
    """Batches of a `FileReader`, a new one for each file, packed into records."""

    def __init__(self, reader: Callable[[], FileReader], packer: Packer) -> None:
        self._reader, self._packer = reader, packer

    def read(self, path: DataFile) -> Generator[Records, None, None]:
        reader = self._reader()
        with closing(reader.read(path)) as batches:
            yield from map(self._packer.pack, batches)
        if last := reader.finish():
            yield self._packer.pack(last)


class ParsedLines:
    """MultiSlot text; `on_bytes` is called with the bytes parsed."""

    def __init__(
        self, parser: RecordParser, source: TextSource, on_bytes: Callable[[int], None]
    ) -> None:
        self._parser, self._source, self._on_bytes = parser, source, on_bytes

    def read(self, path: DataFile) -> Generator[Records, None, None]:
        self._parser.begin_file(self._source.name(path))
        start = path.start if isinstance(path, FilePart) else 0
        with closing(self._source.blocks(path, start)) as texts:
            for text in texts:
                self._on_bytes(len(text))
                yield from self._parser.feed(text)
        if last := self._parser.finish():
            yield last
