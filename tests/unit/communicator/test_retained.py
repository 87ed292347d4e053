"""Pushes that are kept until a cut has them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from psrt.communicator.requests.known_ids import IdList
from psrt.communicator.requests.requests import Request, RowsGradient, Sink
from psrt.communicator.requests.retained import RetainedPushes
from psrt.communicator.requests.router import Router
from psrt.core.specs import Constant, ConstantRate, Sgd, SparseTableSpec
from psrt.core.tensors import SelectedRows
from psrt.kernels.precision import narrow
from psrt.partition.plan import PartitionPlan
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from tests.support.inproc import InprocServer

IDS = np.arange(4, dtype=np.int64)
TABLE = SparseTableSpec("emb", 3, Constant(0.0), Sgd(), ConstantRate(0.1), seed=1)
TWO_PSERVERS = PartitionPlan(("ps0:6170", "ps1:6170"), (), (TABLE,))


@pytest.fixture
def kept() -> RetainedPushes:
    line = InprocServer(lambda request, peer: None)
    clients = [Client(f"ps{n}:6170", 0, 5, line, pb.Hello()) for n in range(2)]
    return RetainedPushes(clients, limit_bytes=1 << 20)


def request(endpoint: int = 0, round: int = 0, bucket: int = 0, number: int = 0) -> Request:
    """A push of a block and of four rows, and pulls of both."""
    made = Request(endpoint, bucket)
    made.header.round = round
    made.push_block("w", 3, narrow(np.full(5, 2.0, np.float32), "float32"))
    rows = narrow(np.ones((4, 2), np.float32), "float32")
    made.push_rows("emb", 1, RowsGradient(IDS, rows, number=number))
    made.pull_block("w", np.zeros(5, np.float32))
    sink = Sink("emb", np.zeros((4, 2), np.float32), known=IdList(number, []))
    made.pull_rows(sink, IDS)
    return made


def test_a_kept_push_has_its_key_and_its_ids_and_no_pulls(kept: RetainedPushes) -> None:
    pushed = request(number=77)  # the pserver remembers the ids: they are not sent
    kept.add(Method.PUSH, [pushed])

    (push,), _ = kept.of(0)
    assert push.header.push_key.sequence == pushed.header.push_key.sequence == 1
    assert [(part.table, part.keys) for part in push.header.parts] == [("w", 0), ("emb", 0)]
    assert pushed.header.parts[1].keys == 77
    values, ids, rows = push.tensors
    assert values.tolist() == [2.0] * 5
    assert ids.tolist() == IDS.tolist()
    assert rows.tolist() == [[1.0, 1.0]] * 4


def test_arrays_that_may_change_are_copied_and_copies_that_do_not_are_kept_as_they_are(
    kept: RetainedPushes,
) -> None:
    changes = np.full(5, 2.0, np.float32)
    stays = kept.copies.copy(np.full(8, 3.0, np.float32))
    pushed = Request(0)
    pushed.push_block("w", 3, narrow(changes, "float32"))
    pushed.push_block("v", 3, narrow(stays[2:6], "float32"))

    kept.add(Method.PUSH, [pushed])
    changes[:] = 99

    (push,), _ = kept.of(0)
    assert [each.tolist() for each in push.tensors] == [[2.0] * 5, [3.0] * 4]
    assert [np.shares_memory(push.tensors[1], stays), kept.size_bytes > 36] == [True, True]


def test_rows_that_a_router_made_for_several_pservers_are_kept_as_they_are(
    kept: RetainedPushes,
) -> None:
    router = Router(TWO_PSERVERS, copies=kept.copies)
    requests = router.requests()
    gradient = SelectedRows(np.arange(200), np.ones((200, 3), np.float32), unique=True)

    router.push(requests, {"emb": gradient}, {})
    kept.add(Method.PUSH, requests)

    for endpoint, pushed in enumerate(requests):
        (push,), _ = kept.of(endpoint)
        assert [len(each) for each in push.tensors] == [len(each) for each in pushed.tensors]
        assert all(map(np.shares_memory, push.tensors, pushed.tensors))
    assert kept.size_bytes > 200 * (8 + 12)


def test_kept_pushes_are_counted_until_they_are_durable(kept: RetainedPushes) -> None:
    kept.add(Method.PUSH, [request(), request(endpoint=1), request(round=1)])
    assert kept.count == 3

    kept.durable(0, 1)

    assert kept.count == 2


def test_a_kept_push_does_not_change_with_the_gradient(kept: RetainedPushes) -> None:
    gradient = np.ones(3, np.float32)
    pushed = Request(0)
    pushed.push_block("w", 0, narrow(gradient, "float32"))
    kept.add(Method.PUSH, [pushed])

    gradient[:] = 9.0

    assert kept.of(0)[0][0].tensors[0].tolist() == [1.0] * 3


def test_pushes_are_sent_again_by_round_and_bucket(kept: RetainedPushes) -> None:
    kept.add(Method.EXCHANGE, [request(round=1, bucket=1), request(round=1, bucket=0)])
    kept.add(Method.EXCHANGE, [request(round=0, bucket=2), request(endpoint=1)])

    assert [push.order[:2] for push in kept.of(0)[0]] == [(0, 2), (1, 0), (1, 1)]
    assert len(kept.of(1)[0]) == 1


def test_a_request_of_pulls_alone_keeps_the_bucket_that_it_takes_part_in(
    kept: RetainedPushes,
) -> None:
    pulled = Request(0, bucket=3)
    pulled.pull_block("w", np.zeros(5, np.float32))
    pulled.pull_block("b", np.zeros(5, np.float32))

    kept.add(Method.EXCHANGE, [pulled])

    assert [part.table for part in kept.of(0)[0][0].header.parts] == ["w"]


def test_a_complete_cut_drops_what_it_has_and_no_more(kept: RetainedPushes) -> None:
    kept.add(Method.PUSH, [request(0), request(1)])
    kept.takes_part(4)
    kept.add(Method.PUSH, [request(0)])
    kept.takes_part(5)
    kept.add(Method.PUSH, [request(0)])

    kept.completed(4)
    assert [push.header.push_key.sequence for push in kept.of(0)[0]] == [2, 3]
    assert kept.of(1)[0] == []

    kept.completed(9)  # this trainer took no part in 6 to 9
    assert [push.header.push_key.sequence for push in kept.of(0)[0]] == [3]


def test_a_cut_has_all_pushes_of_a_trainer_that_has_trained(kept: RetainedPushes) -> None:
    kept.newest_before = 2
    kept.add(Method.PUSH, [request(0)])
    kept.has_trained = True

    kept.completed(2)  # proposed before this trainer joined
    assert len(kept.of(0)[0]) == 1

    kept.completed(3)
    assert kept.of(0)[0] == kept.of(1)[0] == []
    assert kept.is_recorded
    assert kept.size_bytes == 0


def test_beyond_the_limit_a_push_waits_only_for_a_cut_under_way(kept: RetainedPushes) -> None:
    kept.limit_bytes = 1
    kept.add(Method.PUSH, [request()])
    assert kept.wait_for_room(0.0)

    kept.takes_part(1)
    assert not kept.wait_for_room(0.0)

    kept.cut_failed()
    assert kept.wait_for_room(0.0)


def test_pushes_that_one_pserver_has_on_disk_are_dropped(kept: RetainedPushes) -> None:
    for _ in range(3):
        kept.add(Method.PUSH, [request(), request(endpoint=1)])
    size = kept.size_bytes

    kept.durable(0, 2)

    assert [push.header.push_key.sequence for push in kept.of(0)[0]] == [3]
    assert [push.header.push_key.sequence for push in kept.of(1)[0]] == [1, 2, 3]
    assert kept.size_bytes == size * 4 // 6
    kept.durable(0, 1)  # a reply that was under way for longer
    assert [kept.newest_of(endpoint) for endpoint in (0, 1)] == [3, 3]
    kept.durable(0, 3)
    assert kept.newest_of(0) == 0


def test_beyond_the_limit_a_push_waits_for_local_cuts() -> None:
    line = InprocServer(lambda request, peer: None)
    kept = RetainedPushes([Client("ps0:6170", 0, 5, line, pb.Hello())], 100, waits_for_deltas=True)
    assert kept.wait_for_room(0.0)
    kept.add(Method.PUSH, [request()])
    assert not kept.wait_for_room(0.0)

    waiting = threading.Thread(target=lambda: found.append(kept.wait_for_room(60.0)))
    found: list[bool] = []
    waiting.start()
    kept.durable(0, 1)
    waiting.join(60.0)

    assert found == [True]
