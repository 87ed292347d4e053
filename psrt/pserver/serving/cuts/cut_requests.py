"""Requests of a pserver to the first one of its job, and waits for a cut."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError

from psrt.core.clock import Clock
from psrt.core.errors import ConfigError, ErrorCode, JobError
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import (
    Coordination,
    CutHistory,
    RecoveredPart,
    Settings,
    WaitingCaller,
)
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


def coordinator(
    settings: Settings,
    endpoints: Sequence[str],
    clock: Clock,
    steps: Callable[[], int],
    crashes: CrashReport,
    history: CutHistory,
    recovered: RecoveredPart | None,
) -> Coordination:
    """The coordinator of a job's cuts, which goes on for a killed one if this pserver recovered."""
    term = None if recovered is None else recovered.term
    made = Coordination(settings, endpoints, clock, steps, crashes, term, history)
    if recovered is not None:  # a local cut may be behind one without files
        made.seen(recovered.state["cut"])
    return made


def ask_first(
    endpoint: str, carrier: Carrier, method: Method, header: pb.Header, timeout_s: float
) -> pb.Cut:
    """Call a pserver of the job, mostly the first one; returns the cut in its reply."""
    client = Client(endpoint, 0, 1, carrier, pb.Hello())
    client.hurry()  # one that has ended does not come back
    try:
        reply = client.call(method, header=header, timeout_s=max(timeout_s, _LEAST_S))
    finally:
        client.close()
    return reply.header.cut


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


def not_first(header: pb.Header) -> ConfigError:
    """The error of a call for the coordinator that came to another pserver."""
    return ConfigError(
        f"{Method(header.method).name} needs the first pserver of a job that writes cuts; this one "
        "does not coordinate any.",
        hint="Start pservers with --checkpoint-dir, and ask the first one of the plan.",
    )


def no_cut(why: str) -> JobError:
    """The error of a cut that cannot be made."""
    return JobError(
        f"no cut was made: {why}. Earlier cuts are complete.",
        code=ErrorCode.CUT_GIVEN_UP,
        hint="See the logs of the trainers; a cut needs all that have not completed.",
    )
