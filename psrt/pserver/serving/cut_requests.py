"""Requests of a pserver about a cut, to the first pserver of the job: for one, and its part."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError

from psrt.coordinator.part_chain import PartOutcome
from psrt.core.clock import Clock
from psrt.core.errors import ErrorCode, JobError, PsrtError
from psrt.pserver.checkpoints import Coordination, WaitingCaller
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import Method
from psrt.rpc.wire import Message

log = logging.getLogger("psrt.pserver")

POLL_S = 0.1
"""Seconds between two checks for an end of a wait."""

_LEAST_S = 0.001


def cut_reply(number: int, complete: int = 0, trainers: int = 0) -> Message:
    """A reply that names a cut; see `pb.Cut`."""
    return Message(pb.Header(cut=pb.Cut(number=number, complete=complete, trainers=trainers)))


def ask_first(
    endpoint: str, carrier: Carrier, method: Method, header: pb.Header, timeout_s: float
) -> pb.Cut:
    """Call the first pserver of the job; returns the cut in its reply."""
    client = Client(endpoint, 0, 1, carrier, pb.Hello())
    client.hurry()  # one that has ended does not come back
    try:
        reply = client.call(method, header=header, timeout_s=max(timeout_s, _LEAST_S))
    finally:
        client.close()
    return reply.header.cut


def report_part(
    first: str, carrier: Carrier, incarnation: int, part: pb.CutPart, timeout_s: float
) -> int:
    """Send a part to the first pserver; returns the number of the cut once it is complete.

    Raises the error of a cut that was given up.
    """
    client = Client(first, 0, incarnation, carrier, pb.Hello())
    try:
        header = pb.Header(cut_part=part)
        reply = client.call(Method.PART, header=header, timeout_s=timeout_s)
    finally:
        client.close()
    return int(reply.header.cut.number)


def report_here(coordination: Coordination, part: pb.CutPart) -> int:
    """`report_part` on the first pserver itself."""
    caller = coordination.part(part.number, part.endpoint, part.record, part.problem)
    caller.future.result()
    return caller.number


def outcome_of(part: pb.CutPart, report: Callable[[], int]) -> tuple[PartOutcome, str]:
    """The end of the cut of a part, from `report()` or from its error, and why it was given up."""
    try:
        complete = report()
    except PsrtError as error:
        if error.code is ErrorCode.CUT_GIVEN_UP:
            return PartOutcome.GIVEN_UP, error.message
        log.warning("it is unknown whether cut %d is complete: %s", part.number, error)
        complete = 0
    if part.problem:  # without this part there is no cut
        return PartOutcome.GIVEN_UP, part.problem
    return (PartOutcome.COMPLETE if complete == part.number else PartOutcome.UNKNOWN), ""


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
