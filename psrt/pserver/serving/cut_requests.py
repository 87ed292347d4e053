"""Requests of a pserver for a cut: asked of the first pserver of the job, and awaited."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError

from psrt.core.clock import Clock
from psrt.core.errors import ErrorCode, JobError
from psrt.pserver.checkpoints import WaitingCaller
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import Method

POLL_S = 0.1
"""Seconds between two checks for an end of a wait."""

_LEAST_S = 0.001


def ask_first(
    endpoint: str, carrier: Carrier, method: Method, header: pb.Header, timeout_s: float
) -> int:
    """Call the first pserver of the job; returns the number of a cut in its reply."""
    client = Client(endpoint, 0, 1, carrier, pb.Hello())
    client.hurry()  # one that has ended does not come back
    try:
        reply = client.call(method, header=header, timeout_s=max(timeout_s, _LEAST_S))
    finally:
        client.close()
    return int(reply.header.cut.number)


def await_cut(
    caller: WaitingCaller, clock: Clock, deadline_s: float, check: Callable[[], None] = lambda: None
) -> None:
    """Wait for a cut until `deadline_s`, or until `check` raises; raises the error of one that was
    given up."""
    while True:
        try:
            caller.future.result(POLL_S)
        except FutureTimeoutError:
            check()
            if clock.now() >= deadline_s:
                raise no_cut("it was not complete in time") from None
        else:
            return


def no_cut(why: str) -> JobError:
    """The error of a cut that cannot be made."""
    return JobError(
        f"no cut was made: {why}. Earlier cuts are complete.",
        code=ErrorCode.CUT_GIVEN_UP,
        hint="See the logs of the trainers; a cut needs all that have not completed.",
    )
