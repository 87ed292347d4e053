"""A pserver is deposed for its own failures, not for those of the one before it."""

from __future__ import annotations

import pytest

from psrt.communicator.requests.failover import PartFailover
from psrt.core.errors import ErrorCode, UnavailableError
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.pairs import Pair
from psrt.rpc.recovering import Recovering
from tests.support.clock import ManualClock
from tests.support.inproc import InprocServer

FENCED = UnavailableError("part 0 is not served here", code=ErrorCode.FENCED)


def test_a_late_refusal_of_the_former_pserver_deposes_nobody() -> None:
    """Another thread has found it deposed, and moved the client, when this one comes to it."""
    nobody = InprocServer(lambda message, peer: None)
    client = Client("a:1", 0, 7, nobody, pb.Hello())
    failover = PartFailover(client, Pair(0, "a:1", "b:1"))
    client.route.failover = failover
    failover._move(1)

    assert failover.failed(FENCED, epoch=0)

    assert not failover.is_deposed
    assert client.route.place.endpoint == "b:1"


def test_a_call_that_waits_for_another_thread_deposes_nobody() -> None:
    """That thread sends pushes again, and waits for trainers which have not come back yet."""
    nobody = InprocServer(lambda message, peer: None)
    client, clock = Client("a:1", 0, 7, nobody, pb.Hello()), ManualClock()
    failover = PartFailover(client, Pair(0, "a:1", "b:1"), clock)
    client.route.failover = failover
    failover.begin()
    recovering = Recovering(client.route, is_durable=True)
    recovering._lock.acquire()

    for _ in range(3):
        clock.advance(0.25)
        with pytest.raises(UnavailableError) as waited:
            recovering.run(0.001)
        assert not failover.failed(waited.value, epoch=0)

    assert not failover.is_deposed
