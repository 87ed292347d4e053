"""The end of a process that has copies alone, when the job has ended elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from psrt.core.errors import ErrorCode, JobError, PsrtError, UnavailableError
from psrt.core.specs import Async, to_json
from psrt.core.threads import CrashReport
from psrt.pserver.replicas import PartHost, part_host
from psrt.pserver.replicas.ticks import pieces_of
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Peer, begin
from psrt.rpc.wire import PROTOCOL, Message

ENDPOINTS = ["a:1", "b:1"]
WAIT_S = 30.0


class ToFormerBackup:
    """A connection from the backup to the other process: HELLO is answered, ticks are `FENCED`.

    Ticks wait for `may_answer`.
    """

    def __init__(self, serving: PserverService, may_answer: threading.Event) -> None:
        self._serving, self._may_answer = serving, may_answer

    def call(self, message: Message, timeout_s: float) -> Message:
        if message.header.method == Method.REPLICATE:
            assert self._may_answer.wait(WAIT_S)
            raise UnavailableError("trainers have deposed this pserver", code=ErrorCode.FENCED)
        reply = begin(self._serving.handle, message, Peer("inproc", "backup"))
        assert isinstance(reply, Message)
        return reply

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Pair:
    """A service that serves part 0 of a job with one trainer, and the process of its backup."""

    def __init__(self) -> None:
        self.ends: list[PsrtError | None] = []
        self.is_fenced, self.has_ended = threading.Event(), threading.Event()
        make = partial(PserverService, stripes=1, wait_timeout_s=WAIT_S)
        self.serving = make()
        self.backup = PartHost(
            *(make, self._ended, 0.01, CrashReport()),
            carrier=lambda endpoint: ToFormerBackup(self.serving, self.is_fenced),
        )
        self._source = self.serving.source()
        self._join(self.serving)
        self._call(self.serving, pb.Header(method=Method.ATTEND))

    def train_with_both(self) -> None:
        """Let the trainer join the process of the backup, too, which is the home of part 1."""
        register = pb.Register()
        for endpoint, process in zip(ENDPOINTS, (self.serving, self.backup), strict=True):
            incarnation = self._join(process).header.hello_reply.incarnation
            register.pservers.add(endpoint=endpoint, incarnation=incarnation)
        self._call(self.backup, pb.Header(method=Method.REGISTER, register=register))

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

    def _join(self, process: PserverService | PartHost) -> Message:
        hello = pb.Hello(job_id="j", plan_hash="p", trainers=1, mode=to_json(Async()))
        hello.durability = "replica"
        return self._call(process, pb.Header(method=Method.HELLO, hello=hello))

    def _call(self, process: PserverService | PartHost, header: pb.Header) -> Message:
        header.protocol, header.push_key.incarnation = PROTOCOL, 7
        reply = process.handle(Message(header), Peer("inproc", "test"))
        assert isinstance(reply, Message)
        return reply

    def _ended(self, error: PsrtError | None) -> None:
        self.ends.append(error)
        self.has_ended.set()

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


def test_it_ends_too_if_its_own_part_is_deposed_after_it_was_told_of_the_error(pair: Pair) -> None:
    """It stood still meanwhile, and learns of both when it goes on."""
    pair.train_with_both()
    pair.fail(JobError("all trainers left", code=ErrorCode.TRAINER_LOST))
    pair.replicate()
    assert pair.ends == []  # it serves part 1

    pair.is_fenced.set()

    assert pair.has_ended.wait(WAIT_S)
    (error,) = pair.ends
    assert error is not None
    assert error.code is ErrorCode.TRAINER_LOST


def test_it_stays_if_the_other_pserver_is_stopped(pair: Pair) -> None:
    """Trainers go on with this one."""
    pair.fail(UnavailableError("the pserver is shutting down", code=ErrorCode.STOPPING))
    pair.replicate()

    assert pair.ends == []


def test_one_that_is_sent_no_copy_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its part is served elsewhere, or was to be, and that process has ended without a word."""
    monkeypatch.setattr(part_host, "ALONE_S", 0.01)
    pair = Pair()
    pair.train_with_both()

    pair.is_fenced.set()

    assert pair.has_ended.wait(WAIT_S)
    (error,) = pair.ends
    assert isinstance(error, JobError)
    assert "no longer serves part 1" in error.message
    pair.close()


def test_one_that_is_sent_a_copy_stays(pair: Pair) -> None:
    pair.train_with_both()
    pair.replicate()

    pair.backup._end_alone()

    assert pair.ends == []
