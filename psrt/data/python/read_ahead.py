"""Reader decorators with threads: `buffered` reads ahead, `xmap_readers` maps by several workers.

Threads start with an iteration and end with it: at the last example, at an error, which the
consumer sees in its place, or when the consumer stops, that is, closes or drops the iterator. A
thread inside the user's code is waited for, but not for ever; it ends with what it is doing.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeAlias, TypeVar

from psrt.core.errors import DeadlineError
from psrt.core.threads import CrashReport, start_thread
from psrt.data.python.decorators import Reader, at_least_one
from psrt.data.reading import BoundedQueue

log = logging.getLogger(__name__)

Example = TypeVar("Example")
Made = TypeVar("Made")
Ahead: TypeAlias = Callable[[], Generator[Example, None, None]]
"""Starts an iteration that can be closed."""

WAIT_TIMEOUT_S = 600.0
_LEAVE_TIMEOUT_S = 10.0


def buffered(
    reader: Reader[Example], size: int, *, wait_timeout_s: float = WAIT_TIMEOUT_S
) -> Ahead[Example]:
    """The same examples, up to `size` of them read ahead by a thread.

    Raises `DeadlineError` if the reader gives no example within `wait_timeout_s`.
    """
    at_least_one("size", size)

    def ahead() -> Generator[Example, None, None]:
        # In a tuple, because None is an example too, and stands for the end in a queue.
        queue: BoundedQueue[tuple[Example]] = BoundedQueue(size, 1)
        thread = start_thread(lambda: _fill(queue, reader), "reader-ahead", CrashReport())
        try:
            while (item := _next(queue, reader, wait_timeout_s)) is not None:
                yield item[0]
        finally:
            queue.close()
            _leave([thread], reader)

    return ahead


def xmap_readers(
    mapper: Callable[[Example], Made],
    reader: Reader[Example],
    process_num: int,
    buffer_size: int,
    order: bool = False,
    *,
    wait_timeout_s: float = WAIT_TIMEOUT_S,
) -> Ahead[Made]:
    """`mapper` of each example by `process_num` threads, up to `buffer_size` ahead of the consumer.

    With `order` in the order of the reader, else as they are done. Threads share the GIL: it pays
    for mappers that read files or compute in numpy. Raises what the mapper raises, and
    `DeadlineError` if it gives nothing within `wait_timeout_s`.
    """
    at_least_one("process_num", process_num)
    examples = buffered(reader, buffer_size, wait_timeout_s=wait_timeout_s)

    def mapped() -> Generator[Made, None, None]:
        ahead: deque[Future[Made]] = deque()
        with closing(_Workers(mapper, process_num)) as workers, closing(examples()) as source:
            for example in source:
                ahead.append(workers.submit(example))
                if len(ahead) > buffer_size:
                    yield _take(ahead, order, mapper, wait_timeout_s)
            while ahead:
                yield _take(ahead, order, mapper, wait_timeout_s)

    return mapped


class _Workers(Generic[Example, Made]):
    """Threads that map what is submitted; not a pool of the library, whose threads outlive us."""

    def __init__(self, mapper: Callable[[Example], Made], count: int) -> None:
        self._mapper = mapper
        self._tasks: SimpleQueue[tuple[Future[Made], Example] | None] = SimpleQueue()
        self._threads = [
            start_thread(self._run, f"reader-map-{i}", CrashReport()) for i in range(count)
        ]

    def submit(self, example: Example) -> Future[Made]:
        future: Future[Made] = Future()
        self._tasks.put((future, example))
        return future

    def close(self) -> None:
        """Forget what has not begun, and end the threads."""
        with suppress(Empty):
            while True:
                self._tasks.get_nowait()
        for _ in self._threads:
            self._tasks.put(None)
        _leave(self._threads, self._mapper)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, example = task
            try:
                future.set_result(self._mapper(example))
            except BaseException as error:
                future.set_exception(error)


def _fill(queue: BoundedQueue[tuple[Example]], reader: Reader[Example]) -> None:
    """The thread of `buffered`: what the reader raises goes to the consumer."""
    error: BaseException | None = None
    try:
        _put_all(queue, reader())
    except BaseException as raised:
        error = raised
    queue.producer_done(error)


def _put_all(queue: BoundedQueue[tuple[Example]], examples: Iterable[Example]) -> None:
    iterator = iter(examples)
    try:
        all(queue.put((example,)) for example in iterator)
    finally:
        # A reader that reads ahead itself ends its thread now, not when it is collected.
        getattr(iterator, "close", lambda: None)()


def _next(
    queue: BoundedQueue[tuple[Example]], reader: Reader[Example], timeout_s: float
) -> tuple[Example] | None:
    deadline = time.monotonic() + timeout_s
    try:
        return queue.get(timeout_s)
    except TimeoutError:
        if time.monotonic() < deadline:  # the reader's own
            raise
        raise _late(reader, timeout_s) from None


def _take(
    ahead: deque[Future[Made]], order: bool, mapper: Callable[..., Made], timeout_s: float
) -> Made:
    candidates = [ahead[0]] if order else ahead
    done = wait(candidates, timeout_s, FIRST_COMPLETED).done
    if not done:
        raise _late(mapper, timeout_s)
    chosen = next(iter(done))
    ahead.remove(chosen)
    return chosen.result()


def _leave(threads: Sequence[Thread], code: Callable[..., Any]) -> None:
    deadline = time.monotonic() + _LEAVE_TIMEOUT_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            log.warning("thread %s goes on until %s returns", thread.name, _name(code))


def _late(code: Callable[..., Any], timeout_s: float) -> DeadlineError:
    return DeadlineError(
        f"{_name(code)} gave nothing within {timeout_s:g} s.",
        hint="See what it waits for, or give a longer wait_timeout_s.",
    )


def _name(code: Callable[..., Any]) -> str:
    return getattr(code, "__qualname__", type(code).__qualname__)
