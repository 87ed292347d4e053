"""The in-process carrier: frames without sockets, and scripted faults.

Requests and replies pass through `encode` and `decode`, so a handler receives the tensors that a
socket would bring. Tests inject network failures by name: nothing sleeps, and a dropped message
raises `DeadlineError` at once. Handlers run on the caller's thread.
"""

from __future__ import annotations

import enum
import threading
from concurrent.futures import wait
from dataclasses import dataclass, field

import numpy as np

from psrt.core.errors import DeadlineError, UnavailableError
from psrt.rpc.methods import Method
from psrt.rpc.serving import Handler, Later, Peer, begin, settle
from psrt.rpc.wire import Message, aligned_empty, decode, encode

STOPPING_S = 30.0

_PEER = Peer("inproc", "same process")


class Fault(enum.Enum):
    """A failure of one call; the value describes it for the caller."""

    DROP_REQUEST = "the request never arrives, and the deadline passes"
    DROP_REPLY = "the call is executed, and its reply is lost"
    RESET_BEFORE = "the connection breaks before the request arrives"
    RESET_AFTER = "the call is executed, then the connection breaks"
    DUPLICATE = "the request arrives twice"
    DELAY = "the request arrives when a gate opens"


@dataclass
class Faults:
    """A script of faults: each line applies to the next `times` calls of a method, or of any."""

    _lines: list[_Line] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def script(
        self,
        fault: Fault,
        method: Method | None = None,
        *,
        after: int = 0,
        times: int = 1,
        gate: threading.Event | None = None,
    ) -> None:
        """Skip `after` matching calls, then fail the next `times`; DELAY waits for `gate`."""
        with self._lock:
            self._lines.append(_Line(fault, method, after, times, gate or threading.Event()))

    def end(self) -> None:
        """Let all calls arrive from now on."""
        with self._lock:
            self._lines.clear()

    def strike(self, method: int) -> _Line | None:
        """Return the fault of this call of `method`, if any, and count it."""
        with self._lock:
            for line in self._lines:
                if line.times and line.method in (None, method):
                    if line.after:
                        line.after -= 1
                    else:
                        line.times -= 1
                        return line
        return None


@dataclass
class _Line:
    fault: Fault
    method: Method | None
    after: int
    times: int
    gate: threading.Event


class InprocServer:
    """A handler in place of a server; `Client` takes it as its carrier."""

    def __init__(self, handler: Handler, faults: Faults | None = None) -> None:
        self.handler = handler
        self.faults = faults or Faults()
        self.stopped = False
        self._handling, self._handled = 0, threading.Condition()

    def __call__(self, endpoint: str) -> InprocConnection:
        """Connect a client."""
        return InprocConnection(self, endpoint)

    def stop(self) -> None:
        """Make every further call raise `UnavailableError`, and let the handler end its calls."""
        with self._handled:
            self.stopped = True
            assert self._handled.wait_for(lambda: self._handling == 0, STOPPING_S)

    def handle(self, request: Message) -> Message | Later:
        """Hand over one call."""
        with self._handled:
            if self.stopped:
                raise UnavailableError("Cannot connect: the pserver has stopped.")
            self._handling += 1
        try:
            return begin(self.handler, request, _PEER)
        finally:
            with self._handled:
                self._handling -= 1
                self._handled.notify_all()


class InprocConnection:
    """One caller of an `InprocServer`."""

    def __init__(self, server: InprocServer, where: str = "inproc") -> None:
        self.where = where
        self._server = server

    def call(self, message: Message, timeout_s: float) -> Message:
        if self._server.stopped:
            raise UnavailableError(f"Cannot connect to {self.where}: it has stopped.")
        line = self._server.faults.strike(message.header.method)
        if line is None:
            return self._carry_out(message, timeout_s)
        return self._call_with(line, message, timeout_s)

    def abort(self) -> None:
        """Do nothing: calls here end by themselves."""

    def close(self) -> None:
        """Do nothing: no resource is open."""

    def _call_with(self, line: _Line, message: Message, timeout_s: float) -> Message:
        fault = line.fault
        if fault is Fault.RESET_BEFORE:
            raise self._lost()
        if fault is Fault.DROP_REQUEST or (fault is Fault.DELAY and not line.gate.wait(timeout_s)):
            raise self._silence(timeout_s)
        reply = self._carry_out(message, timeout_s, 2 if fault is Fault.DUPLICATE else 1)
        if fault is Fault.RESET_AFTER:
            raise self._lost()
        if fault is Fault.DROP_REPLY:
            raise self._silence(timeout_s)
        return reply

    def _carry_out(self, message: Message, timeout_s: float, copies: int = 1) -> Message:
        """Hand over `copies` of the request before waiting for any; the last reply counts."""
        requests = [_over_the_wire(message) for _ in range(copies)]
        outcomes = [self._server.handle(request) for request in requests]
        replies = [self._settle(outcome, message, timeout_s) for outcome in outcomes]
        return _over_the_wire(replies[-1])

    def _settle(self, outcome: Message | Later, message: Message, timeout_s: float) -> Message:
        while isinstance(outcome, Later):
            if not wait([outcome.future], timeout_s).done:
                raise self._silence(timeout_s)
            outcome = settle(outcome, message.header, _PEER)
        return outcome

    def _silence(self, timeout_s: float) -> DeadlineError:
        return DeadlineError(f"{self.where} did not reply within {timeout_s:.3f} s.")

    def _lost(self) -> UnavailableError:
        return UnavailableError(f"The connection to {self.where} was lost.")


def _over_the_wire(message: Message) -> Message:
    """A copy through its bytes, as a socket delivers it."""
    frame = b"".join(encode(message))
    buffer = aligned_empty(len(frame))
    buffer[:] = np.frombuffer(frame, np.uint8)
    return decode(buffer)
