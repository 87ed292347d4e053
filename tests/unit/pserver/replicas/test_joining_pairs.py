"""A trainer joins while the home of a part is dead, or was started again without its part."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from psrt.communicator.factory import make
from psrt.core.errors import ErrorCode, JobError, PsrtError
from psrt.core.specs import Async, to_json
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.pairs import pair_of
from tests.support.carriers import eventually
from tests.support.communicators import plan_of
from tests.support.inproc import Fault
from tests.unit.pserver.replicas.test_late_trainers_of_pairs import ENDPOINTS, WAIT_S, Pair

PLACED = dict(zip(plan_of().endpoints, ENDPOINTS, strict=True))
PLAN = replace(
    plan_of(),
    endpoints=tuple(ENDPOINTS),
    blocks=tuple(replace(block, endpoint=PLACED[block.endpoint]) for block in plan_of().blocks),
)


class Newcomer(threading.Thread):
    """Trainer 1, which joins by its communicator; `error` is the end of a vain attempt."""

    def __init__(self, pair: Pair) -> None:
        super().__init__()
        self.error: PsrtError | None = None
        hello = pb.Hello(job_id="j", plan_hash="p", trainers=2, mode=to_json(Async()))
        hello.durability = "replica"
        self._clients = [Client(each, 1, 99, pair.dial, hello) for each in ENDPOINTS]
        self._communicator = make(
            Async(), PLAN, self._clients, call_timeout_s=WAIT_S, retained_bytes=1 << 20
        )
        self.start()

    def run(self) -> None:
        try:
            self._communicator.start(WAIT_S)
        except PsrtError as error:
            self.error = error

    def has_joined(self) -> None:
        """Assert that it trains now."""
        self.join(WAIT_S)
        assert not self.is_alive()
        self.close()
        assert self.error is None

    def close(self) -> None:
        self._communicator.close()
        for client in self._clients:
            client.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    made.start(*ENDPOINTS)
    yield made
    made.kill(*made.hosts)


def is_served(pair: Pair, part: int) -> bool:
    """Let trainer 0 depose the home of a part; True once its backup serves it."""
    backup = Client(pair_of(ENDPOINTS, part).backup(0), 0, 7, pair.dial, pb.Hello())
    header = pb.Header(replica=pb.Replica(part=part))
    return backup.call(Method.DEPOSE, header=header, timeout_s=WAIT_S).header.replica.epoch > 0


def with_copies(pair: Pair) -> None:
    pair.join(0)
    pair.await_copy("b:1", 0)
    pair.await_copy("a:1", 1)
    pair.kill("a:1")


@pytest.mark.parametrize("is_started_again", [True, False])
def test_it_waits_until_the_backup_serves(pair: Pair, is_started_again: bool) -> None:
    """The backup waits for it, too: it has greeted the other pserver of the job."""
    with_copies(pair)
    if is_started_again:
        pair.start("a:1")
    newcomer = Newcomer(pair)
    members = pair.hosts["b:1"].own.members
    eventually(lambda: members()[1].has_called, "the newcomer's first calls", WAIT_S)

    eventually(lambda: is_served(pair, 0), "a deposal by all", WAIT_S)

    pair.join(0, epochs=(1, 0))
    newcomer.has_joined()
    _, service = pair.hosts["b:1"].served()[0]
    assert service.members()[1].incarnation == 99


def test_it_goes_to_the_backup_of_a_home_that_nobody_starts_again(pair: Pair) -> None:
    with_copies(pair)
    assert is_served(pair, 0)
    pair.join(0, epochs=(1, 0))

    Newcomer(pair).has_joined()


@pytest.mark.parametrize("has_sent_its_own", [False, True])
def test_it_is_refused_by_name_if_there_is_no_copy(pair: Pair, has_sent_its_own: bool) -> None:
    """Nor is there one if the pserver that was started again has sent its own, empty part."""
    pair.servers["b:1"].faults.script(Fault.RESET_BEFORE, Method.REPLICATE, times=1 << 30)
    pair.join(0)
    pair.kill("a:1")
    pair.start("a:1")

    newcomer = Newcomer(pair)

    newcomer.join(WAIT_S)
    newcomer.close()
    if has_sent_its_own:
        pair.servers["b:1"].faults.end()
        pair.await_copy("b:1", 0)
        newcomer = Newcomer(pair)
        newcomer.join(WAIT_S)
        newcomer.close()
    assert isinstance(newcomer.error, JobError)
    assert newcomer.error.code is ErrorCode.CHILD_FAILED
    assert "started again" in newcomer.error.message
