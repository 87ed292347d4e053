"""A trainer's client of one pserver: connect, call, retry, and describe failures.

`Client` is thread-safe. It keeps a pool of connections, one for each concurrent call; a connection
that failed is closed and never used again. The retry policy repeats a call that could not reach the
pserver, with the same header and so the same push key, within the deadline of the call. Tensors of
a reply are views of memory that is reused only after the last of them is gone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import threading
from collections.abc import Callable, Sequence
from functools import partial

from psrt.core.clock import Clock, MonotonicClock
from psrt.core.errors import DeadlineError, ErrorCode, PsrtError, UnavailableError, WireError
from psrt.core.log import in_call
from psrt.core.randomness import system_random
from psrt.core.types import Array
from psrt.rpc import pb
from psrt.rpc.busy_poll import NEVER, BusyPoll
from psrt.rpc.connecting import connected
from psrt.rpc.dialing import Carrier, LastingCall, dialer, lasting_call
from psrt.rpc.error_text import describe, failed, lost_if_late
from psrt.rpc.methods import METHODS, Method
from psrt.rpc.pairs import PartAddress
from psrt.rpc.pool import NOT_ENDED, ConnectionPool, Opened
from psrt.rpc.recovering import Recovering, soon
from psrt.rpc.retry import AttemptReports, RetryPolicy, patience, tried_again
from psrt.rpc.route import Route
from psrt.rpc.status import from_wire
from psrt.rpc.wire import PROTOCOL, Message

log = logging.getLogger("psrt.rpc")

_HELLO_S, _LEAST_S = 5.0, 0.001
_HURRIED_S = 1.0
_COMPLETE_S, _CONFIRM_S = 5.0, 1.0  # of one attempt; COMPLETE waits for no other trainer
_POLICY = RetryPolicy(max_s=0.5)
_AGAIN_S = 0.05  # the longest wait before the next attempt, if another pserver may serve


class Client:
    """A client: `connect`, then `call` from any thread, then `close`."""

    def __init__(
        self,
        endpoint: str,
        trainer: int,
        incarnation: int,
        carrier: Carrier,
        hello: pb.Hello,
        *,
        retry: RetryPolicy = _POLICY,
        clock: Clock | None = None,
        busy_poll: BusyPoll = NEVER,
    ) -> None:
        self.endpoint = endpoint
        self.is_hurried = self._makes_cuts = False
        self.trainer, self.incarnation = trainer, incarnation
        self.hello, self.carrier = hello, carrier
        self.route = Route(endpoint, lambda to: dialer(carrier, to, trainer, busy_poll=busy_poll))
        self._recovery = Recovering(self.route, bool(hello.durability))
        self._presence: LastingCall | None = None
        self._retry = retry
        self._clock = clock or MonotonicClock()
        self._pool = ConnectionPool()
        self._numbers = threading.Lock()
        self._requests = self._pushes = 0
        self._reports = AttemptReports()
        self._closed = threading.Event()

    @property
    def trainers(self) -> int:
        """Number of trainers of the job."""
        return int(self.hello.trainers)

    @property
    def makes_cuts(self) -> bool:
        """True if the pserver's job writes cuts; known once connected."""
        return self._makes_cuts

    def recovers_by(self, send_again: Callable[[], None]) -> None:
        """Go on with a recovered pserver; `send_again` repeats what its tables lack."""
        self._recovery.send_again = send_again
        self._retry = soon(self._retry)

    def move(self, place: PartAddress) -> None:
        """Send all calls to `place` from now on; those under way are tried again there."""
        self.route.move(place)
        self._pool.abort()

    def connect(self, timeout_s: float, on_wait: Callable[[str], None] = log.info) -> pb.HelloReply:
        """Send HELLO over gRPC, waiting up to `timeout_s` for a pserver that is not up yet.

        `on_wait` receives a line of text every few seconds. Raises `UnavailableError`.
        """
        self._recovery.forget()
        greet = partial(self._greet, min(_HELLO_S, timeout_s))
        return connected(self.route, greet, timeout_s, self._clock, self._closed, on_wait)

    def attend(self, timeout_s: float) -> None:
        """Let the pserver detect the end of this process, from now until `close`.

        One of an earlier release detects it only over connections of the stream carrier.
        """
        try:
            self.call(Method.ATTEND, timeout_s=timeout_s)
        except WireError as error:
            if error.code is not ErrorCode.WIRE_UNKNOWN_METHOD:
                raise
            return
        if self._presence is not None:
            self._presence.close()  # that of a process which was started again has ended
        attend = self._fill(Method.ATTEND, None, ())
        self._presence = lasting_call(self.carrier, self.route.place.endpoint, attend)

    def call(
        self,
        method: Method,
        *,
        header: pb.Header | None = None,
        tensors: Sequence[Array] = (),
        into: Sequence[Array | None] = (),
        timeout_s: float,
    ) -> Message:
        """Call and return the reply; `header` is completed and belongs to the client from now on.

        Tensor i of the reply may be `into[i]` itself, which a failed call may have written to.
        Raises the error that the pserver reported, `UnavailableError` when it could not be reached,
        and `DeadlineError` when no reply came within `timeout_s`, retries included.
        """
        message = self._fill(method, header, tensors)
        message.into = into
        with in_call(method.name):
            return self._reported(message, self._try(message, timeout_s))

    def complete(self, timeout_s: float, position: str = "") -> pb.Complete:
        """Report that this trainer has finished; the reply has whether all others have, too.

        After another start of the job it goes on at `position`. The pserver may end after its last
        reply. It answers repetitions until `confirm`, or for some attempts, so a lost reply is
        asked for again soon.
        """
        asked = pb.Complete(will_confirm=True, position=position)
        message = self._fill(Method.COMPLETE, pb.Header(complete=asked), ())
        return self._reported(message, self._try(message, timeout_s, _COMPLETE_S)).header.complete

    def confirm(self) -> None:
        """Confirm the reply to COMPLETE: this trainer will not ask for it again."""
        confirmation = pb.Header(complete=pb.Complete(confirms=True))
        with contextlib.suppress(PsrtError):  # the pserver ends a little later without it
            self._attempt(self._fill(Method.COMPLETE, confirmation, ()), _CONFIRM_S)

    @property
    def last_push(self) -> int:
        """The sequence of the last push, 0 = none."""
        return self._pushes

    def next_push_key(self) -> pb.PushKey:
        """Return the key of the next push; a retry of that push must carry the same key."""
        with self._numbers:
            self._pushes += 1
            return pb.PushKey(incarnation=self.incarnation, sequence=self._pushes)

    def hurry(self) -> None:
        """Bound retries to one second from now on, for a process that was asked to end.

        Safe in a signal handler: takes no lock.
        """
        self.is_hurried = True
        budget_s = min(self._retry.budget_s, _HURRIED_S)
        self._retry = dataclasses.replace(self._retry, budget_s=budget_s)

    def close(self) -> None:
        """Close presence and idle connections, others as their calls end; retries stop."""
        self._closed.set()
        self._pool.close()
        if self._presence is not None:
            self._presence.close()

    def _fill(self, method: Method, header: pb.Header | None, tensors: Sequence[Array]) -> Message:
        header = pb.Header() if header is None else header
        with self._numbers:
            self._requests += 1
            header.request_id = self._requests
        header.protocol, header.method, header.trainer = PROTOCOL, method, self.trainer
        header.push_key.incarnation = self.incarnation
        return Message(header, list(tensors))

    def _reported(self, message: Message, reply: Message) -> Message:
        """Return the reply; raises the error that it reports."""
        if reply.header.HasField("error"):
            what = describe(message.header, self.endpoint)
            raise self._recovery.again(from_wire(reply.header.error, what))
        return reply

    def _try(self, message: Message, timeout_s: float, attempt_s: float = math.inf) -> Message:
        """Repeat attempts until a reply arrives, which may report an error, or retries end.

        An attempt without a reply in `attempt_s` counts as a lost connection. The time in which a
        pserver recovers is not the call's own: all limits begin anew.
        """
        started, attempts = self._clock.now(), 0
        cause: PsrtError | None = None
        while True:
            left_s = max(timeout_s - (self._clock.now() - started), _LEAST_S)
            advances, place = self._recovery.advances, self.route.place
            try:
                return self._attempt(message, min(left_s, attempt_s))
            except PsrtError as failure:
                if self._recovery.advances != advances:
                    started, attempts, cause = self._clock.now(), 0, None
                attempts += 1
                moved = self.route.failed(failure, place)
                elapsed_s = self._clock.now() - started
                error = failure if left_s <= attempt_s else lost_if_late(failure)
                # A retry that ran out of time explains less than the failure that caused it.
                if cause is None or not isinstance(error, DeadlineError):
                    cause = error
                delay_s = self._delay(message, attempts, elapsed_s, error)
                if delay_s is None or elapsed_s + delay_s >= timeout_s:
                    what = describe(message.header, self.endpoint)
                    raise failed(what, attempts, elapsed_s, cause) from failure
                if self._reports.is_due(error.code, started + elapsed_s):
                    what = describe(message.header, self.endpoint)
                    log.warning("%s", tried_again(what, error.message, attempts))
                self._recover(0.0 if moved else delay_s)

    def _attempt(self, message: Message, left_s: float) -> Message:
        (route := self.route).check(self.route.place)
        opened, place = self._connection(left_s), route.place
        try:
            message.header.timeout_ms = max(1, int(left_s * 1000))
            message.header.part, message.header.process = place.header_part, opened.process
            with NOT_ENDED if route.failover is None else self._pool.in_use(opened):
                reply = opened.connection.call(message, patience(left_s))
            route.check(place)
        except BaseException:
            opened.connection.close()
            raise
        self._pool.give_back(opened)
        self._reports.answered()
        self._recovery.answered()
        route.answered()
        if reply.header.error.code in self._recovery.waits_for:
            self._reported(message, reply)  # raises it
        return reply

    def _connection(self, left_s: float) -> Opened:
        """A connection to a pserver that has all earlier pushes of this trainer."""
        opened = self._pool.take() or self._open(left_s)
        if not self._recovery.is_due:
            return opened
        self._pool.give_back(opened)
        self._recovery.run(left_s)
        return self._pool.take() or self._open(left_s)

    def _delay(
        self, message: Message, attempts: int, elapsed_s: float, error: PsrtError
    ) -> float | None:
        """Seconds until the next attempt, or None to give up."""
        if self._closed.is_set() or not METHODS[message.header.method].repeatable:
            return None
        delay_s = self._retry.next_delay(attempts - 1, elapsed_s, error, system_random.random)
        return delay_s if delay_s is None or self.route.failover is None else min(delay_s, _AGAIN_S)

    def _recover(self, delay_s: float) -> None:
        """Drop data ports and connections, because the pserver may have moved; then wait."""
        self.route.hello = None
        self._pool.drop()
        self._closed.wait(delay_s)

    def _open(self, timeout_s: float) -> Opened:
        reply = self.route.hello or self._greet(min(_HELLO_S, timeout_s))
        return Opened(self.route.dial(reply, timeout_s), reply.process)

    def _greet(self, timeout_s: float) -> pb.HelloReply:
        """Send HELLO on a new connection; a pserver that does not reply counts as unreachable."""
        message = self._fill(Method.HELLO, pb.Header(hello=self.hello), ())
        message.header.timeout_ms = max(1, int(timeout_s * 1000))
        place = self.route.place
        message.header.part = place.header_part
        connection = self.route.dial(None, timeout_s)
        try:
            reply = connection.call(message, timeout_s)
        except DeadlineError as error:
            raise UnavailableError(f"It did not answer HELLO in {timeout_s:.1f} s.") from error
        finally:
            connection.close()
        hello: pb.HelloReply = self._reported(message, reply).header.hello_reply
        self.route.check(place)
        self._recovery.met(hello.incarnation, hello.process)
        self.route.hello, self._makes_cuts = hello, hello.makes_cuts
        return hello
