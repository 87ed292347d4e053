"""Requests of a pserver about a cut, to the first pserver of the job: for one, and its part."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError

from psrt.coordinator.part_chain import PartOutcome
from psrt.core.clock import Clock
from psrt.core.errors import ConfigError, ErrorCode, JobError, PsrtError
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import (
    Coordination,
    CutHistory,
    RecoveredPart,
    Settings,
    WaitingCaller,
    complete_cuts,
    term_file,
)
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import Method
from psrt.rpc.wire import Message
from psrt.storage.directory import Directory

log = logging.getLogger("psrt.pserver")

POLL_S = 0.1
"""Seconds between two checks for an end of a wait."""

REPORT_S = 30.0
"""Time limit of a report to the first pserver, beyond that of its cut, which it waits for."""

RESTARTED = "the pserver was started again"

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


class PartReports:
    """Reports of this pserver's parts to the first pserver of the job."""

    def __init__(self, carrier: Carrier, incarnation: int) -> None:
        self._carrier, self._incarnation = carrier, incarnation
        self._lock = threading.Lock()
        self._clients: set[Client] = set()
        self._is_hurried = False

    def send(self, first: str, part: pb.CutPart, timeout_s: float) -> int:
        """Send a part; returns the number of the cut once it is complete, within `timeout_s`.

        Raises the error of a cut that was given up.
        """
        client = Client(first, 0, self._incarnation, self._carrier, pb.Hello())
        with self._lock:
            self._clients.add(client)
            if self._is_hurried:
                client.hurry()
        try:
            header = pb.Header(cut_part=part)
            reply = client.call(Method.PART, header=header, timeout_s=timeout_s + REPORT_S)
        finally:
            with self._lock:
                self._clients.remove(client)
            client.close()
        return int(reply.header.cut.number)

    def restarted(self, first: str, endpoint: str) -> int:
        """Report that a pserver has no part of the cut under way; returns the number of that cut,
        or of the newest one, 0 = unknown."""
        part = pb.CutPart(endpoint=endpoint, problem=RESTARTED)
        try:
            return self.send(first, part, 0.0)
        except PsrtError as error:
            log.info("the first pserver was not told of the start: %s", error)
            return 0

    def hurry(self) -> None:
        """Retry reports only shortly from now on: the job ends, and its first pserver may have."""
        with self._lock:
            self._is_hurried = True
            for client in self._clients:
                client.hurry()


def report_here(coordination: Coordination, part: pb.CutPart) -> int:
    """`PartReports.send` on the first pserver itself."""
    caller = coordination.part(part.number, part.endpoint, part.record, part.problem)
    caller.future.result()
    return caller.number


def outcome_of(
    part: pb.CutPart, report: Callable[[], int], directory: Directory
) -> tuple[PartOutcome, str]:
    """The end of the cut of a part, from `report()`, its error, or what `directory` records.

    A cut that was given up has the reason, too.
    """
    try:
        complete = report()
    except PsrtError as error:
        if error.code is ErrorCode.CUT_GIVEN_UP or part.problem:
            return PartOutcome.GIVEN_UP, part.problem or error.message
        return _recorded_outcome(part.number, error, directory)
    if part.problem:  # without this part there is no cut
        return PartOutcome.GIVEN_UP, part.problem
    return (PartOutcome.COMPLETE if complete == part.number else PartOutcome.UNKNOWN), ""


def _recorded_outcome(
    number: int, error: PsrtError, directory: Directory
) -> tuple[PartOutcome, str]:
    """The end of a cut whose coordinator did not answer."""
    try:
        if term_file.has_decided(directory, number):
            if number in complete_cuts(directory):
                return PartOutcome.COMPLETE, ""
            return PartOutcome.GIVEN_UP, "the first pserver had ended without it."
    except PsrtError as unreadable:
        error = unreadable
    log.warning("it is unknown whether cut %d is complete: %s", number, error)
    return PartOutcome.UNKNOWN, ""


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
