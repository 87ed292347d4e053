"""Durations of calls by method, and refusals by reason, for the metrics of a pserver."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import Future
from functools import partial

from psrt.core.errors import ErrorCode, PsrtError
from psrt.observe.durations import Durations
from psrt.rpc.methods import NAMES, UNKNOWN
from psrt.rpc.serving import Handler, Later, Peer
from psrt.rpc.wire import Message


class CallMeter:
    """Measures the calls of the handlers that it wraps; names of methods and reasons are bounded.

    The time of a call lasts until its reply can be written, waits for other trainers included.
    """

    def __init__(self) -> None:
        self.durations = Durations()
        self._lock = threading.Lock()
        self._refused: Counter[str] = Counter()

    def refused(self) -> dict[str, int]:
        """Calls answered with an error, by the name of its code."""
        with self._lock:
            return dict(self._refused)

    def wrap(self, handler: Handler) -> Handler:
        """A handler that does what `handler` does, and is measured."""
        return partial(self._handle, handler)

    def _handle(self, handler: Handler, message: Message, peer: Peer) -> Message | Later:
        started_s = time.perf_counter()
        name = NAMES.get(message.header.method, UNKNOWN)
        try:
            reply = handler(message, peer)
        except Exception as error:
            self._failed(name, started_s, error)
            raise
        return self._ended(name, started_s, reply)

    def _ended(self, name: str, started_s: float, reply: Message | Later) -> Message | Later:
        """Count the call, or measure the rest of one that waits."""
        if isinstance(reply, Later):
            reply.future.add_done_callback(partial(self._waited, name, started_s))
            return Later(reply.future, partial(self._finish, reply, name, started_s))
        self.durations.add(name, time.perf_counter() - started_s)
        return reply

    def _finish(self, later: Later, name: str, started_s: float) -> Message | Later:
        try:
            reply = later.finish()
        except Exception as error:
            self._failed(name, started_s, error)
            raise
        return self._ended(name, started_s, reply)

    def _waited(self, name: str, started_s: float, future: Future[None]) -> None:
        """Count a call whose wait ended with an error, so that it is not finished."""
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self._failed(name, started_s, error)

    def _failed(self, name: str, started_s: float, error: BaseException) -> None:
        self.durations.add(name, time.perf_counter() - started_s)
        code = error.code if isinstance(error, PsrtError) else ErrorCode.INTERNAL
        with self._lock:
            self._refused[code.name] += 1
