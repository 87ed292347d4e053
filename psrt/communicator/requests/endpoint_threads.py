"""Threads for the calls to each pserver, so that a step calls all of them in parallel.

Threads live as long as the communicator: starting one per step would cost more than the step's
messages. Jobs of one endpoint start in the order submitted; with one thread for each, the default,
they also end in it. The error of a job is raised where its result is awaited; `results` raises the
first one at once, without waiting for the other pservers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

from psrt.core.errors import DeadlineError, InternalError
from psrt.core.threads import CrashReport, start_thread
from psrt.core.tracing import carried

T = TypeVar("T")
_Inbox: TypeAlias = "SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]"

BACKSTOP_S = 5.0
"""Waiting for a job ends this long after its timeout, in case a call misses its own deadline."""


class EndpointThreads:
    """`threads` threads for each of the endpoints `names`."""

    def __init__(
        self, names: Sequence[str], purpose: str, crashes: CrashReport, threads: int = 1
    ) -> None:
        self._closing = threading.Lock()
        self._closed = False
        self._threads = threads
        self._inboxes: list[_Inbox] = [SimpleQueue() for _ in names]
        for name, inbox in zip(names, self._inboxes, strict=True):
            for _ in range(threads):
                start_thread(partial(_serve, inbox), f"{purpose} {name}", crashes)

    def submit(self, endpoint: int, job: Callable[[], T]) -> Future[T]:
        """Run `job` on a thread of `names[endpoint]`; fails with `InternalError` after `close`."""
        future: Future[T] = Future()
        with self._closing:
            if self._closed:
                future.set_exception(InternalError("a call was made after the threads ended"))
            else:
                self._inboxes[endpoint].put((carried(job), future))
        return future

    def close(self) -> None:
        """End the threads once they are idle; jobs submitted before still run, later ones fail."""
        with self._closing:
            self._closed = True
            for inbox in self._inboxes:
                for _ in range(self._threads):
                    inbox.put(None)


def _serve(inbox: _Inbox) -> None:
    while (item := inbox.get()) is not None:
        job, future = item
        try:
            future.set_result(job())
        except BaseException as error:
            future.set_exception(error)
        del item, job, future  # an idle thread must not keep the last step's arrays alive


def results(
    futures: Sequence[Future[T]], names: Sequence[str], doing: str, timeout_s: float
) -> list[T]:
    """The results of the jobs, in order.

    Raises the first failure, or `DeadlineError` `BACKSTOP_S` after `timeout_s`.
    """
    done, _ = wait(futures, timeout_s + BACKSTOP_S, FIRST_EXCEPTION)
    for future in done:
        future.result()
    silent = [name for name, future in zip(names, futures, strict=True) if future not in done]
    if silent:
        raise DeadlineError(
            f"{doing} has no answer from {', '.join(silent)} after {timeout_s + BACKSTOP_S:.0f} s",
            hint="Look at the log of that pserver.",
        )
    return [future.result() for future in futures]
