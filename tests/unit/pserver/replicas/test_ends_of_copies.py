"""The end of a process that has copies alone, when the job has ended elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from psrt.core.errors import ErrorCode, JobError, PsrtError, UnavailableError
from psrt.core.specs import Async, to_json
from psrt.core.threads import CrashReport
from psrt.pserver.replicas import PartHost
from psrt.pserver.replicas.ticks import pieces_of
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Peer
from psrt.rpc.wire import PROTOCOL, Message

ENDPOINTS = ["a:1", "b:1"]
WAIT_S = 30.0


class Pair:
    """A service that serves part 0 of a job with one trainer, and the process of its backup."""

    def __init__(self) -> None:
        self.ends: list[PsrtError | None] = []
        make = partial(PserverService, stripes=1, wait_timeout_s=WAIT_S)
        self.serving = make()
        self.backup = PartHost(make, self.ends.append, 3600.0, CrashReport())
        self._source = self.serving.source()
        hello = pb.Hello(job_id="j", plan_hash="p", trainers=1, mode=to_json(Async()))
        hello.durability = "replica"
        self._call(self.serving, pb.Header(method=Method.HELLO, hello=hello))
        self._call(self.serving, pb.Header(method=Method.ATTEND))

    def fail(self, error: PsrtError) -> None:
        self.serving._runner.decide(lambda state, now: state.abort(error))

    def replicate(self) -> None:
        """Send a whole tick of part 0."""
        cut = self._source.take(is_full=True)
        assert cut is not None
        for number, piece in enumerate(pieces_of(cut)):
            replica = pb.Replica(tick=cut.number, piece=number, last=piece.is_last, whole=True)
            replica.incarnation, replica.facts = self._source.incarnation, piece.facts
            replica.endpoints.extend(ENDPOINTS)
            self._call(self.backup, pb.Header(method=Method.REPLICATE, replica=replica))
        self._source.confirm(cut)

    def _call(self, process: PserverService | PartHost, header: pb.Header) -> None:
        header.protocol, header.push_key.incarnation = PROTOCOL, 7
        process.handle(Message(header), Peer("inproc", "test"))

    def close(self) -> None:
        self.backup.stop()
        self.serving.stop()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def test_it_ends_with_the_error_of_its_job(pair: Pair) -> None:
    """It serves nothing: its own part is served elsewhere, or never was."""
    pair.replicate()
    assert pair.ends == []

    pair.fail(JobError("all trainers left", code=ErrorCode.TRAINER_LOST))
    pair.replicate()

    (error,) = pair.ends
    assert error is not None
    assert error.code is ErrorCode.TRAINER_LOST


def test_it_stays_if_the_other_pserver_is_stopped(pair: Pair) -> None:
    """Trainers go on with this one."""
    pair.fail(UnavailableError("the pserver is shutting down", code=ErrorCode.STOPPING))
    pair.replicate()

    assert pair.ends == []
