"""Ends of cuts: a pserver that ends, parts that come late, parts that cannot be written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import pytest

from psrt.coordinator.part_chain import PartOutcome
from psrt.core import failpoints
from psrt.core.errors import ErrorCode, JobError, UnavailableError
from psrt.core.specs import Async, to_json
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import (
    Coordination,
    Cutting,
    Settings,
    complete_cuts,
    files_by_cut,
    find_cut,
)
from psrt.pserver.eviction import Upkeep
from psrt.pserver.serving.cuts.cut_calls import CutCalls
from psrt.pserver.serving.cuts.part_reports import outcome_of
from psrt.pserver.serving.service import PserverService
from psrt.pserver.tables import Meters, TableRegistry
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Connection
from psrt.rpc.methods import Method
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire import Message
from psrt.storage.local_directory import LocalDirectory, LocalWriter
from tests.support.clock import ManualClock
from tests.support.cuts import ENDPOINTS, written_part
from tests.support.inproc import InprocServer
from tests.support.pserver import AT_ONCE

WAIT_S = 30.0


class HeldDirectory(LocalDirectory):
    """Does not give a manifest its name before `free`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked, self.free = threading.Event(), threading.Event()

    @contextmanager
    def write(self, name: str) -> Iterator[LocalWriter]:
        with super().write(name) as out:
            yield out
            if name.endswith("manifest.json"):
                self.asked.set()
                assert self.free.wait(WAIT_S)


@contextmanager
def coordination(directory: LocalDirectory) -> Iterator[Coordination]:
    crashes = CrashReport()
    made = Coordination(Settings(directory), ENDPOINTS, ManualClock(), lambda: 1, crashes)
    try:
        yield made
    finally:
        made.stop()
    assert crashes.error is None


@contextmanager
def running(target: Callable[[], object]) -> Iterator[None]:
    thread = threading.Thread(target=target)
    thread.start()
    try:
        yield
    finally:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def test_a_manifest_under_way_is_of_a_whole_cut_though_its_pserver_ends(tmp_path: Path) -> None:
    directory = HeldDirectory(tmp_path)
    with coordination(directory) as cuts:
        caller = cuts.request()
        records = [written_part(directory, 1, index) for index in range(2)]
        cuts.part(1, ENDPOINTS[0], records[0], "")
        with running(lambda: cuts.part(1, ENDPOINTS[1], records[1], "")):
            assert directory.asked.wait(WAIT_S)
            cuts.stop()
            directory.free.set()
        caller.future.result(WAIT_S)

    assert complete_cuts(directory) == [1]
    assert len(list(find_cut(directory, "latest").verify())) == 4


def test_a_pserver_that_ends_waits_for_the_other_parts_of_a_cut(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    with coordination(directory) as cuts:
        cuts.request()
        cuts.part(1, ENDPOINTS[0], written_part(directory, 1, 0), "")
        finished: list[bool] = []
        with running(lambda: finished.append(cuts.finish(WAIT_S))):
            cuts.part(1, ENDPOINTS[1], written_part(directory, 1, 1), "")

    assert finished == [True]
    assert complete_cuts(directory) == [1]


def test_a_part_that_comes_after_its_cut_was_given_up_is_not_wanted(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    with coordination(directory) as cuts:
        cuts.request()
        cuts.part(1, ENDPOINTS[0], "", "the disk is full")

        late = cuts.part(1, ENDPOINTS[1], written_part(directory, 1, 1), "")

    with pytest.raises(JobError, match="given up"):
        late.future.result(WAIT_S)


def test_a_pserver_that_was_started_again_is_told_which_cut_it_has_no_part_of(
    tmp_path: Path,
) -> None:
    directory = LocalDirectory(tmp_path)
    with coordination(directory) as cuts:
        caller = cuts.request()
        told = [cuts.part(0, ENDPOINTS[1], "", "the pserver was started again") for _ in range(2)]

    assert [each.future.done() and each.number for each in told] == [1, 1]
    with pytest.raises(JobError, match="started again"):
        caller.future.result(WAIT_S)


def test_a_complete_cut_deletes_what_is_left_of_older_ones(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    written_part(directory, 1, 1)
    with coordination(directory) as cuts:
        cuts.request()
        for index, endpoint in enumerate(ENDPOINTS):
            cuts.part(2, endpoint, written_part(directory, 2, index), "")

    assert list(files_by_cut(directory)) == [2]


# --- the part of a pserver that is not the first --------------------------------------------------


class RefusesParts:
    """A connection to a first pserver that has given up every cut."""

    where = "first"

    def __init__(self, reports: Queue[pb.CutPart] | None = None) -> None:
        self._reports = Queue() if reports is None else reports

    def call(self, message: Message, timeout_s: float) -> Message:
        reply = Message(type(message.header)(request_id=message.header.request_id))
        if message.header.method == Method.PART:
            self._reports.put(message.header.cut_part)
            reply.header.error.code = ErrorCode.CUT_GIVEN_UP
            reply.header.error.message = "cut 1 was given up."
        else:
            reply.header.hello_reply.incarnation = 1
        return reply

    def abort(self) -> None: ...

    def close(self) -> None: ...


def cutting_at(
    directory: LocalDirectory, index: int, reports: Queue[pb.CutPart] | None = None
) -> CutCalls:
    """The cuts of pserver `index`, without tables; `reports` gets those to the first pserver."""
    tables, crashes, clock = TableRegistry(1), CrashReport(), ManualClock()
    upkeep = Upkeep(tables.all_sparse, Meters(), lambda: 0, lambda: 0)

    def connect(endpoint: str) -> Connection:
        return RefusesParts(reports)

    calls = CutCalls(Settings(directory), None, 7 + index, tables, upkeep, clock, crashes, connect)
    calls.joined([(e, 7 + i) for i, e in enumerate(ENDPOINTS)], lambda: 1)
    return calls


FACTS = {"participants": []}


def test_a_pserver_that_gives_up_a_cut_reports_that_at_once(tmp_path: Path) -> None:
    reports: Queue[pb.CutPart] = Queue()

    cutting_at(LocalDirectory(tmp_path), 1, reports).no_part(3, "a sweep did not end")

    report = reports.get(timeout=WAIT_S)
    assert (report.number, report.endpoint, report.record) == (3, ENDPOINTS[1], "")
    assert report.problem == "a sweep did not end"


def test_a_cut_whose_tables_cannot_be_frozen_ends_at_once_and_the_next_may_begin(
    tmp_path: Path,
) -> None:
    service = PserverService(
        stripes=1,
        wait_timeout_s=WAIT_S,
        clock=ManualClock(),
        cuts=Settings(LocalDirectory(tmp_path)),
    )
    try:
        trainer = only_trainer_of(service)
        asking = service.handle(call_of(Method.CHECKPOINT), Peer("inproc", "test"))
        assert isinstance(asking, Later)
        with service._upkeep.put_off(), pytest.raises(JobError, match="given up"):
            trainer.call(Method.CUT, header=pb.Header(cut=pb.Cut(number=1)), timeout_s=WAIT_S)
        with pytest.raises(JobError, match="a sweep or shrink did not end"):
            asking.future.result(WAIT_S)

        again = service.handle(call_of(Method.CHECKPOINT), Peer("inproc", "test"))
        assert isinstance(again, Later)
        trainer.call(Method.CUT, header=pb.Header(cut=pb.Cut(number=2)), timeout_s=WAIT_S)
        again.future.result(WAIT_S)
    finally:
        service.stop()

    assert complete_cuts(LocalDirectory(tmp_path)) == [2]


def test_a_part_under_way_is_written_at_once_if_somebody_waits_for_the_cut(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    settings = Settings(directory, timeout_s=1e9, bytes_per_s=1e-3)
    service = PserverService(stripes=1, wait_timeout_s=WAIT_S, clock=ManualClock(), cuts=settings)
    try:
        trainer = only_trainer_of(service)
        asking = service.handle(call_of(Method.CHECKPOINT), Peer("inproc", "test"))
        assert isinstance(asking, Later)
        trainer.call(Method.CUT, header=pb.Header(cut=pb.Cut(number=1)), timeout_s=WAIT_S)
        assert not asking.future.done()

        hurry = Message(pb.Header(method=Method.CHECKPOINT, cut=pb.Cut(hurry=True)))
        joined = service.handle(hurry, Peer("inproc", "test"))

        assert isinstance(joined, Later)
        joined.future.result(WAIT_S)
        asking.future.result(WAIT_S)
    finally:
        service.stop()

    assert complete_cuts(directory) == [1]


def only_trainer_of(service: PserverService) -> Client:
    """The one trainer of a job that has this pserver alone."""
    hello = pb.Hello(job_id="j", plan_hash="p", trainers=1, mode=to_json(Async()))
    trainer = Client("inproc", 0, 7, InprocServer(service.handle), hello, retry=AT_ONCE)
    found = trainer.connect(WAIT_S)
    mine = pb.PserverProcess(endpoint="a:6170", incarnation=found.incarnation)
    register = pb.Header(register=pb.Register(pservers=[mine]))
    trainer.call(Method.REGISTER, header=register, timeout_s=WAIT_S)
    return trainer


def call_of(method: Method) -> Message:
    return Message(pb.Header(method=method))


def test_a_pserver_deletes_its_part_of_a_cut_that_was_given_up(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    calls = cutting_at(directory, 1)
    assert isinstance(calls._cutting, Cutting)

    calls._cutting.freeze(1, FACTS)
    calls.finish(WAIT_S)

    assert files_by_cut(directory) == {}


@pytest.mark.parametrize("point", ["cut.before_part", "cut.after_part"])
def test_a_part_that_cannot_be_written_leaves_no_files(tmp_path: Path, point: str) -> None:
    directory, reported = LocalDirectory(tmp_path), []

    def report(*facts: object) -> PartOutcome:
        reported.append(facts)
        return PartOutcome.GIVEN_UP

    tables, crashes = TableRegistry(1), CrashReport()
    upkeep = Upkeep(tables.all_sparse, Meters(), lambda: 0, lambda: 0)
    cutting = Cutting(Settings(directory), tables, upkeep, crashes, report)
    failpoints.arm(f"{point}=fail")
    try:
        cutting.freeze(1, FACTS)
        assert cutting.wait(WAIT_S)
    finally:
        failpoints.arm("")

    ((number, record, problem),) = reported
    assert (number, record) == (1, "")
    assert point in problem
    assert files_by_cut(directory) == {}


# --- reports that come after the first pserver has ended ------------------------------------------


def late_outcome(directory: LocalDirectory, number: int) -> PartOutcome:
    """The end of a part of cut `number` whose coordinator answers no more."""

    def unanswered() -> int:
        raise UnavailableError("no pserver answers.")

    part = pb.CutPart(number=number, endpoint=ENDPOINTS[1])
    return outcome_of(part, unanswered, directory)[0]


def test_a_part_is_not_wanted_whose_coordinator_has_ended_without_it(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    with coordination(directory) as cuts:
        cuts.request()

    assert late_outcome(directory, 1) is PartOutcome.GIVEN_UP


def test_a_part_is_kept_whose_coordinator_has_ended_with_a_manifest(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    with coordination(directory) as cuts:
        cuts.request()
        for index, endpoint in enumerate(ENDPOINTS):
            cuts.part(1, endpoint, written_part(directory, 1, index), "")

    assert late_outcome(directory, 1) is PartOutcome.COMPLETE


def test_a_part_is_kept_while_its_coordinator_may_still_write_a_manifest(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    with coordination(directory) as cuts:
        cuts.request()

        assert late_outcome(directory, 1) is PartOutcome.UNKNOWN
