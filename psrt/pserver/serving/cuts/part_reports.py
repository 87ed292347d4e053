"""Reports of the parts of a pserver to the first one of its job, and the end of their cut."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial

from psrt.coordinator.part_chain import PartOutcome
from psrt.core.errors import ErrorCode, PsrtError
from psrt.pserver.checkpoints import Coordination, Settings, complete_cuts, term_file
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import Method
from psrt.storage.directory import Directory

log = logging.getLogger("psrt.pserver")

REPORT_S = 30.0
"""Time limit of a report to the first pserver, beyond that of its cut, which it waits for."""

RESTARTED = "the pserver was started again"


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
            log.info("the start was not reported to the first pserver: %s", error)
            return 0

    def report(
        self, part: pb.CutPart, first: str, here: Coordination | None, settings: Settings
    ) -> tuple[PartOutcome, str]:
        """Report a part to the `first` pserver, whose coordinator may be `here`.

        Returns the end of its cut, and the reason of one that was given up.
        """
        ask = partial(self.send, first, part, settings.timeout_s)
        if here is not None:
            ask = partial(report_here, here, part)
        return outcome_of(part, ask, settings.directory)

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
