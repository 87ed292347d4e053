"""Reader decorators with threads: `buffered` reads ahead, `xmap_readers` maps in several workers.

Threads start with an iteration and end with it: at the last example, at an error, which the
consumer gets in its place, or when the consumer closes or drops the iterator. Closing waits a
limited time for a thread inside the user's code, which ends once that returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar

from psrt.core.threads import CrashReport, start_thread
from psrt.data.python.decorators import Reader, at_least_one
from psrt.data.reading import WAIT_S, Ahead, late, leave

Example = TypeVar("Example")
Made = TypeVar("Made")
Iteration: TypeAlias = Callable[[], Generator[Example, None, None]]
"""Starts an iteration that can be closed."""

_LEAVE_TIMEOUT_S = 10.0


def buffered(
    reader: Reader[Example], size: int, *, wait_timeout_s: float = WAIT_S
) -> Iteration[Example]:
    """Read up to `size` examples ahead in a thread; their order is the reader's.

    Raises `DeadlineError` if the reader gives no example within `wait_timeout_s`.
    """
    at_least_one("size", size)

    def ahead() -> Generator[Example, None, None]:
        with Ahead(
            _examples(reader),
            size,
            "reader-ahead",
            code=_name(reader),
            wait_timeout_s=wait_timeout_s,
            leave_timeout_s=_LEAVE_TIMEOUT_S,
        ) as examples:
            yield from examples

    return ahead


def xmap_readers(
    mapper: Callable[[Example], Made],
    reader: Reader[Example],
    process_num: int,
    buffer_size: int,
    order: bool = False,
    *,
    wait_timeout_s: float = WAIT_S,
) -> Iteration[Made]:
    """Map examples in `process_num` threads, up to `buffer_size` ahead of the consumer.

    With `order` in the order of the reader, else as they complete. Threads share the GIL, so this
    helps mappers that read files or compute in numpy. Raises the mapper's errors, and
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
    """Threads that map submitted examples; a library pool's threads would outlive the iteration."""

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
        """Drop examples not begun, and end the threads."""
        with suppress(Empty):
            while True:
                self._tasks.get_nowait()
        for _ in self._threads:
            self._tasks.put(None)
        leave(self._threads, _name(self._mapper), _LEAVE_TIMEOUT_S)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, example = task
            try:
                future.set_result(self._mapper(example))
            except BaseException as error:
                future.set_exception(error)


def _examples(reader: Reader[Example]) -> Generator[Example, None, None]:
    """Begin the reader's iteration on first use, and close it with this one."""
    yield from reader()


def _take(
    ahead: deque[Future[Made]], order: bool, mapper: Callable[..., Made], timeout_s: float
) -> Made:
    candidates = [ahead[0]] if order else ahead
    done = wait(candidates, timeout_s, FIRST_COMPLETED).done
    if not done:
        raise late(_name(mapper), timeout_s)
    chosen = next(iter(done))
    ahead.remove(chosen)
    return chosen.result()


def _name(code: Callable[..., Any]) -> str:
    return getattr(code, "__qualname__", type(code).__qualname__)
