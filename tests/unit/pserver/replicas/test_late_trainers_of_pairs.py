"""A trainer that joins its resumed job late, after a backup has taken over a part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from psrt.core.errors import UnavailableError
from psrt.core.specs import Async, to_json
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import SavedCut, Settings, find_cut
from psrt.pserver.replicas import PartHost
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.pairs import pair_of
from psrt.rpc.retry import RetryPolicy
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire import Message
from psrt.storage.local_directory import LocalDirectory
from tests.support.carriers import eventually
from tests.support.inproc import InprocConnection, InprocServer
from tests.unit.pserver.test_resizes import TakingPart

ENDPOINTS = ["a:1", "b:1"]
WAIT_S = 30.0
AT_ONCE = RetryPolicy(initial_s=0.001, max_s=0.01, budget_s=0.1)


class Pair:
    """Two pservers with backups of a job with two trainers, in one directory of cuts."""

    def __init__(self, path: Path) -> None:
        self.directory = LocalDirectory(path)
        self.hosts: dict[str, PartHost] = {}
        self.servers: dict[str, InprocServer] = {}
        self.joined: dict[int, list[Client]] = {}
        self._pushes = 0

    def start(self, *endpoints: str, resumed: SavedCut | None = None) -> None:
        """Start processes, in the place of former ones; a cut is what their flags name."""
        for endpoint in endpoints:
            make = partial(PserverService, stripes=1, wait_timeout_s=WAIT_S, carrier=self.dial)
            host = PartHost(
                *(make, lambda error: None, 0.01, CrashReport(), Settings(self.directory)),
                carrier=self.dial,
                resumed=resumed,
            )
            self.hosts[endpoint], self.servers[endpoint] = host, InprocServer(host.handle)
            host.start()

    def kill(self, *endpoints: str) -> None:
        for endpoint in endpoints:
            self.servers.pop(endpoint).stop()
            self.hosts.pop(endpoint).stop()

    def dial(self, endpoint: str) -> InprocConnection:
        if endpoint not in self.servers:
            raise UnavailableError(f"Cannot connect to {endpoint}: connection refused.")
        return self.servers[endpoint](endpoint)

    def join(self, trainer: int, epochs: Sequence[int] = (0, 0)) -> list[pb.Cut]:
        """Let a trainer join both parts, each in its epoch, and push to them; returns where they
        let it begin."""
        clients = self.clients(trainer, epochs)
        found = [(each.endpoint, each.connect(WAIT_S).incarnation) for each in clients]
        pservers = [pb.PserverProcess(endpoint=e, incarnation=i) for e, i in found]
        header = pb.Header(register=pb.Register(pservers=pservers))
        for each in clients:
            each.attend(WAIT_S)
        replies = [each.call(Method.REGISTER, header=header, timeout_s=WAIT_S) for each in clients]
        for each in clients:
            each.call(Method.RESENT, header=pb.Header(), timeout_s=WAIT_S)
            for _ in range(1 + self._pushes):  # it is one process, whose pushes have new keys
                push = pb.Header(push_key=each.next_push_key(), step=1)
            each.call(Method.PUSH, header=push, timeout_s=WAIT_S)
        self.joined[trainer], self._pushes = clients, self._pushes + 1
        return [reply.header.cut for reply in replies]

    def clients(self, trainer: int, epochs: Sequence[int] = (0, 0)) -> list[Client]:
        hello = pb.Hello(job_id="j", plan_hash="p", trainers=2, mode=to_json(Async()))
        hello.durability = "replica"
        made = [
            Client(endpoint, trainer, 7 + trainer, self.dial, hello, retry=AT_ONCE)
            for endpoint in ENDPOINTS
        ]
        for part, (client, epoch) in enumerate(zip(made, epochs, strict=True)):
            if epoch:
                client.move(pair_of(ENDPOINTS, part).serving(epoch))
        return made

    def await_copy(self, endpoint: str, part: int) -> None:
        def has_copy() -> bool:
            facts = self.hosts[endpoint].describe()
            return any(each["part"] == part and each["role"] == "copy" for each in facts)

        eventually(has_copy, f"a copy of part {part}", WAIT_S)

    def depose(self, part: int, epoch: int, trainer: int) -> None:
        """Let the only trainer that has joined depose the pserver of a part."""
        where = pair_of(ENDPOINTS, part).backup(epoch)
        backup = Client(where, trainer, 7 + trainer, self.dial, pb.Hello(), retry=AT_ONCE)
        header = pb.Header(replica=pb.Replica(part=part, epoch=epoch))
        reply = backup.call(Method.DEPOSE, header=header, timeout_s=WAIT_S)
        assert reply.header.replica.serves

    def make_cut(self, number: int, *trainers: int) -> SavedCut:
        """A cut in which these trainers take part, each "at" its number."""
        asked = self.hosts["a:1"].handle(
            Message(pb.Header(method=Method.CHECKPOINT)), Peer("inproc", "test")
        )
        assert isinstance(asked, Later)
        clients = [each for trainer in trainers for each in self.joined[trainer]]
        calls = [TakingPart(each, number, 0, f"at {each.trainer}") for each in clients]
        for call in calls:
            call.join(WAIT_S)
            assert call.error is None
        asked.future.result(WAIT_S)
        asked.finish()
        return find_cut(self.directory, str(number))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep on a busy host gives up no cut."""
    monkeypatch.setattr("psrt.pserver.checkpoints.cutting.SWEEP_S", WAIT_S)


@pytest.fixture
def resumed(tmp_path: Path) -> Iterator[Pair]:
    """A job that has resumed cut 1, with trainer 0; trainer 1 has not joined it."""
    pair = Pair(tmp_path)
    pair.start(*ENDPOINTS)
    for trainer in range(2):
        pair.join(trainer)
    cut = pair.make_cut(1, 0, 1)
    pair.kill(*ENDPOINTS)
    pair.start(*ENDPOINTS, resumed=cut)
    pair.join(0)
    pair.await_copy("b:1", 0)
    pair.await_copy("a:1", 1)
    yield pair
    pair.kill(*pair.hosts)


def test_it_begins_where_the_resumed_cut_has_left_it(resumed: Pair) -> None:
    """Its home is started again, and then the other pserver, which takes the part back."""
    resumed.kill("a:1")
    resumed.depose(part=0, epoch=0, trainer=0)
    resumed.start("a:1", resumed=find_cut(resumed.directory, "latest"))
    resumed.join(0, epochs=(1, 0))
    resumed.await_copy("a:1", 0)
    resumed.await_copy("a:1", 1)
    resumed.kill("b:1")
    for part, epoch in ((0, 1), (1, 0)):
        resumed.depose(part, epoch, trainer=0)

    begins = resumed.join(1, epochs=(2, 1))

    assert [(cut.number, cut.position) for cut in begins] == [(1, "at 1")] * 2


def test_a_cut_has_its_position(resumed: Pair) -> None:
    resumed.kill("b:1")
    resumed.depose(part=1, epoch=0, trainer=0)
    resumed.join(0, epochs=(0, 1))

    cut = resumed.make_cut(2, 0)

    assert cut.positions == ("at 0", "at 1")
