"""The contract between carriers and handlers: `Handler`, `Later`, and one reply per call.

A carrier decodes a request and calls `begin`. The handler returns a `Message`, or a `Later` when it
has to wait for others (the close of a round): the carrier then waits without holding a pool thread
and calls `settle`. Neither function raises: every failure becomes an error reply. Carriers check
protocol version and method only; handlers check job, plan and tables.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeAlias

from psrt.core.errors import ErrorCode, PsrtError, WireError
from psrt.core.log import in_call
from psrt.core.tracing import span
from psrt.rpc import pb
from psrt.rpc.access import Grant
from psrt.rpc.methods import METHODS, NAMES, UNKNOWN
from psrt.rpc.status import to_wire
from psrt.rpc.wire import PROTOCOL, Message, check_version

log = logging.getLogger("psrt.rpc")


_REPLY_BEFORE = 0.95  # the part of a caller's timeout that a call may wait: the reply must travel


@dataclass(eq=False)
class Peer:
    """A caller, for messages and logs: `stream-tcp 127.0.0.1:50312`.

    One that `lasts` stands for a connection: its carrier passes it with each call of that
    connection, and sets `has_left` when the connection has ended. Others stand for one call.
    `grant` is what the caller has proved by OPEN, None = nothing yet.
    """

    carrier: str
    address: str
    lasts: bool = True
    has_left: bool = False
    grant: Grant | None = None

    def __str__(self) -> str:
        return f"{self.carrier} {self.address}"


@dataclass(frozen=True)
class Later:
    """A reply that waits for `future`; `finish` builds it, on the carrier's thread.

    The handler resolves the future at the deadline of the call at the latest. An exception in it
    becomes the error reply, and `finish` is not called. It may return another `Later`, for a call
    that first waits for something else.
    """

    future: Future[None]
    finish: Callable[[], Message | Later]


# The tensors of a request are views of the carrier's buffer; keeping one keeps the buffer alive.
# A handler returns a reply that it does not keep: the carrier writes into its header.
Handler: TypeAlias = Callable[[Message, Peer], Message | Later]


def deadline_of(header: pb.Header, started: float) -> float:
    """The time by which a call that came in at `started` needs its reply, in seconds."""
    timeout_s = header.timeout_ms / 1000 if header.timeout_ms else math.inf
    return started + _REPLY_BEFORE * timeout_s


def keep_deadline(header: pb.Header, deadline_s: float, now: float) -> None:
    """Shorten the timeout of a call that has waited until `now`."""
    if header.timeout_ms:
        header.timeout_ms = max(1, int(1000 * (deadline_s - now) / _REPLY_BEFORE))


def begin(handler: Handler, request: Message, peer: Peer) -> Message | Later:
    """Run the handler; returns a finished reply or a `Later` for `settle`."""
    with _logged(request.header):
        try:
            _check(request.header)
            outcome = handler(request, peer)
        except Exception as error:
            return error_reply(request.header, error, peer)
    if isinstance(outcome, Later):
        # A reply that is ready needs no second turn on the carrier's pool.
        return settle(outcome, request.header, peer) if outcome.future.done() else outcome
    return _addressed(outcome, request.header)


def settle(later: Later, request: pb.Header, peer: Peer) -> Message | Later:
    """Wait for a `Later` (at once if its future is done) and finish its reply, or wait for more.

    The error of the future is not raised: its traceback would refer to this frame, and so keep the
    caller's connection after its end.
    """
    if not later.future.done():
        with span("wait"):
            wait([later.future])
    failure = later.future.exception()
    if failure is not None:
        return error_reply(request, failure, peer)
    with _logged(request):
        try:
            outcome = later.finish()
            return outcome if isinstance(outcome, Later) else _addressed(outcome, request)
        except Exception as error:
            return error_reply(request, error, peer)


def error_reply(request: pb.Header, error: BaseException, peer: Peer) -> Message:
    if not isinstance(error, PsrtError):
        log.error("call %s of %s failed", request.method, peer, exc_info=error)
    return _addressed(Message(pb.Header(error=to_wire(error))), request)


def _logged(header: pb.Header) -> AbstractContextManager[None]:
    """Lines of the block name the call and its caller."""
    return in_call(NAMES.get(header.method, UNKNOWN), header.trainer)


def _check(header: pb.Header) -> None:
    check_version(header.protocol)
    if header.method not in METHODS or header.reply:
        raise WireError(
            f"This pserver has no method {header.method}.",
            code=ErrorCode.WIRE_UNKNOWN_METHOD,
            hint="Methods are listed in protos/psrt/v1/frame.proto; compare the psrt releases.",
        )


def _addressed(reply: Message, request: pb.Header) -> Message:
    header = reply.header
    header.protocol, header.reply = PROTOCOL, True
    header.method, header.request_id = request.method, request.request_id
    header.trainer = request.trainer
    return reply
