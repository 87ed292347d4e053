"""An idle pserver finds out that its backup was started again, and sends everything anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import LocalCut
from psrt.pserver.decisions import DurablePoint
from psrt.pserver.replicas import replicator
from psrt.pserver.replicas.copy_state import Answer, CopyState, Piece
from psrt.pserver.replicas.replicator import Replicator
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Peer
from psrt.rpc.wire import Message
from tests.support.carriers import eventually
from tests.support.inproc import InprocServer

WAIT_S = 30.0


class IdlePart:
    """A part without tables in which nothing happens."""

    incarnation = 7

    def __init__(self) -> None:
        self.taken = 0

    def take(self, is_full: bool) -> LocalCut[DurablePoint] | None:
        if not is_full:
            return None
        self.taken += 1
        point = DurablePoint({}, frozenset(), 0, 0.0)
        return LocalCut(self.taken, 0, (), (), {"state": {}}, point)

    def confirm(self, cut: LocalCut[DurablePoint]) -> None: ...

    def give_up(self, cut: LocalCut[DurablePoint]) -> None: ...


class Backup:
    """The decisions of a backup, which may be started again."""

    def __init__(self) -> None:
        self.copy = CopyState()

    def handle(self, message: Message, peer: Peer) -> Message:
        if message.header.method == Method.HELLO:
            return Message(pb.Header(hello_reply=pb.HelloReply(incarnation=1, process=1)))
        sent = message.header.replica
        answer = self.copy.offered(
            Piece(sent.epoch, sent.incarnation, sent.tick, sent.piece, sent.last, sent.whole)
        )
        if answer is Answer.APPLY:
            self.copy.applied(sent.tick)
        reply = pb.Replica(whole=answer is Answer.BEGIN_ANEW)
        return Message(pb.Header(replica=reply))


@pytest.fixture
def backup(monkeypatch: pytest.MonkeyPatch) -> Iterator[Backup]:
    monkeypatch.setattr(replicator, "PROBE_S", 0.0)
    monkeypatch.setattr(replicator, "AGAIN_S", 0.001)
    made = Backup()
    line: Any = InprocServer(made.handle)
    sender = Replicator(IdlePart(), ["a:1", "b:1"], 0, 0, 0.001, line, lambda error: None)
    sender.start(CrashReport())
    yield made
    sender.close()


def test_it_sends_everything_to_a_backup_that_was_started_again(backup: Backup) -> None:
    eventually(lambda: backup.copy.is_copy, "a copy", WAIT_S)

    backup.copy = CopyState()

    eventually(lambda: backup.copy.is_copy, "another copy", WAIT_S)
