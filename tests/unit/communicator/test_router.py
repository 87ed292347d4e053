"""Parts per pserver and back: placement, views, order of rows, versions, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.communicator.requests.requests import Request
from psrt.communicator.requests.router import Router
from psrt.core import specs
from psrt.core.errors import TableError, WireError
from psrt.core.tensors import SelectedRows
from psrt.partition.plan import PartitionPlan, PlacedBlock
from psrt.rpc import pb
from psrt.rpc.wire import PULL_DENSE, PULL_ROWS, PUSH_DENSE, PUSH_ROWS
from psrt.rpc.wire.frames import Message

RULE = {
    "initializer": specs.Constant(0.0),
    "optimizer": specs.Sgd(),
    "learning_rate": specs.ConstantRate(0.1),
    "seed": 1,
}


def block(name: str, offset: int, size: int) -> specs.DenseTableSpec:
    return specs.DenseTableSpec(name, name.split(".")[0], (5, 2), offset, size, **RULE)


def plan_of(pservers: int) -> PartitionPlan:
    """`w` (5, 2) in two blocks, the first on the last pserver; table `emb` of width 3."""
    endpoints = tuple(f"ps{i}:6170" for i in range(pservers))
    blocks = (
        PlacedBlock(endpoints[-1], block("w.block0", 0, 6)),
        PlacedBlock(endpoints[0], block("w.block1", 6, 4)),
    )
    return PartitionPlan(endpoints, blocks, (specs.SparseTableSpec("emb", 3, **RULE),))


def parts(request: Request) -> list[tuple[int, str]]:
    return [(part.kind, part.table) for part in request.header.parts]


def reply_to(request: Request, *tensors: np.ndarray, version: int = 0) -> Message:
    pulls = [p for p in request.header.parts if p.kind in (PULL_DENSE, PULL_ROWS)]
    answered = [pb.Part(kind=p.kind, table=p.table, version=version) for p in pulls]
    return Message(pb.Header(reply=True, parts=answered), list(tensors))


def virtual_shard(row_id: int) -> int:
    """SplitMix64's finalizer in whole numbers, its upper half scaled to 1024."""
    x = row_id % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return (((x ^ (x >> 31)) >> 32) * 1024) >> 32


def owner_of(ids: np.ndarray, pservers: int) -> np.ndarray:
    shards = [virtual_shard(row_id) for row_id in ids.tolist()]
    bounds = [e * specs.VIRTUAL_SHARDS // pservers for e in range(1, pservers)]
    return np.searchsorted(bounds, shards, side="right")


def test_dense_gradients_go_out_as_views_of_the_gradient() -> None:
    router, gradient = Router(plan_of(2)), np.arange(10, dtype=np.float32).reshape(5, 2)
    requests = router.requests()

    router.push(requests, {"w": gradient}, {})

    assert parts(requests[0]) == [(PUSH_DENSE, "w.block1")]
    assert parts(requests[1]) == [(PUSH_DENSE, "w.block0")]
    assert requests[0].tensors[0].tolist() == [6, 7, 8, 9]
    assert requests[1].tensors[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert all(np.shares_memory(request.tensors[0], gradient) for request in requests)


def test_dense_replies_land_in_the_whole_parameter() -> None:
    router, whole = Router(plan_of(2)), np.zeros((5, 2), np.float32)
    requests = router.requests()

    router.pull_dense(requests, {"w": whole})
    requests[0].receive(reply_to(requests[0], np.array([6, 7, 8, 9], np.float32)))
    requests[1].receive(reply_to(requests[1], np.arange(6, dtype=np.float32)))

    assert whole.reshape(-1).tolist() == list(range(10))


@pytest.mark.parametrize("pservers", [1, 2, 5])
def test_gradient_rows_go_to_the_owner_of_their_id(pservers: int) -> None:
    ids = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 300)
    values = np.random.default_rng(2).random((300, 3), np.float32)
    router = Router(plan_of(pservers))
    requests = router.requests()

    router.push(requests, {"emb": SelectedRows(ids, values, unique=True)}, {})

    owners = owner_of(ids, pservers)
    for endpoint, request in enumerate(requests):
        sent_ids, sent_values = request.tensors
        assert parts(request) == [(PUSH_ROWS, "emb")]
        np.testing.assert_array_equal(sent_ids, ids[owners == endpoint])
        np.testing.assert_array_equal(sent_values, values[owners == endpoint])


@pytest.mark.parametrize("pservers", [1, 2, 5])
def test_rows_come_back_in_the_order_asked(pservers: int) -> None:
    ids = np.random.default_rng(3).permutation(200).astype(np.int64)
    router = Router(plan_of(pservers))
    requests = router.requests()

    rows = router.pull_rows(requests, {"emb": ids})
    for request in requests:
        (asked,) = request.tensors
        request.receive(reply_to(request, np.repeat(asked[:, None], 3, 1).astype(np.float32)))

    np.testing.assert_array_equal(rows["emb"], np.repeat(ids[:, None], 3, 1))


def test_repeated_ids_are_summed_before_they_are_sent() -> None:
    router = Router(plan_of(1))
    requests = router.requests()
    gradient = SelectedRows(np.array([4, 2, 4]), np.array([[1, 1, 1], [2, 2, 2], [3, 3, 3]], "f4"))

    router.push(requests, {"emb": gradient}, {})

    ids, values = requests[0].tensors
    sent = dict(zip(ids.tolist(), values.tolist(), strict=True))
    assert sent == {4: [4, 4, 4], 2: [2, 2, 2]}


def test_a_pserver_that_owns_none_of_the_ids_gets_no_part() -> None:
    ids = np.array([5], np.int64)
    router = Router(plan_of(2))
    requests = router.requests()

    rows = router.pull_rows(requests, {"emb": ids})

    (owner,) = owner_of(ids, 2)
    assert rows["emb"].shape == (1, 3)
    assert [request.is_empty for request in requests] == [owner != 0, owner != 1]


def test_no_ids_ask_nobody_and_give_no_rows() -> None:
    router = Router(plan_of(2))
    requests = router.requests()

    rows = router.pull_rows(requests, {"emb": np.empty(0, np.int64)})

    assert rows["emb"].shape == (0, 3)
    assert all(request.is_empty for request in requests)


def test_all_tables_of_a_step_travel_in_one_request() -> None:
    router, ids = Router(plan_of(1)), np.array([1, 2], np.int64)
    requests = router.requests()
    gradients = {
        "w": np.zeros((5, 2), np.float32),
        "emb": SelectedRows(ids, np.zeros((2, 3), np.float32), unique=True),
    }

    router.push(requests, gradients, {})
    router.pull_dense(requests, {"w": np.zeros((5, 2), np.float32)})
    router.pull_rows(requests, {"emb": ids})

    assert parts(requests[0]) == [
        (PUSH_DENSE, "w.block0"),
        (PUSH_DENSE, "w.block1"),
        (PUSH_ROWS, "emb"),
        (PULL_DENSE, "w.block0"),
        (PULL_DENSE, "w.block1"),
        (PULL_ROWS, "emb"),
    ]


def test_the_version_that_was_read_comes_back_on_the_next_push() -> None:
    router = Router(plan_of(1))
    asking, pushing = router.requests(), router.requests()
    rows = router.pull_rows(asking, {"emb": np.array([1], np.int64)})

    read = asking[0].receive(reply_to(asking[0], rows["emb"] * 0, version=41))
    gradient = SelectedRows(np.array([1]), np.zeros((1, 3), np.float32), unique=True)
    router.push(pushing, {"emb": gradient}, {(0, table): v for table, v in read.items()})

    assert [part.version for part in pushing[0].header.parts] == [41]


def test_a_gradient_of_an_unknown_parameter_is_refused_by_name() -> None:
    router = Router(plan_of(1))

    with pytest.raises(TableError, match="no dense parameter stranger"):
        router.push(router.requests(), {"stranger": np.zeros(3, np.float32)}, {})


@pytest.mark.parametrize(
    "gradients",
    [
        {"w": np.zeros((4, 2), np.float32)},
        {"emb": SelectedRows(np.array([1]), np.zeros((1, 2), np.float32))},
    ],
)
def test_a_gradient_of_the_wrong_shape_is_refused(gradients: dict[str, np.ndarray]) -> None:
    router = Router(plan_of(1))

    with pytest.raises(TableError, match="has shape"):
        router.push(router.requests(), gradients, {})


def test_a_reply_with_other_tables_than_asked_is_refused() -> None:
    router = Router(plan_of(1))
    requests = router.requests()
    router.pull_rows(requests, {"emb": np.array([1], np.int64)})

    with pytest.raises(WireError, match="where \\['emb'\\] were asked for"):
        requests[0].receive(Message(pb.Header(reply=True)))


def test_a_reply_of_the_wrong_shape_is_refused() -> None:
    router = Router(plan_of(1))
    requests = router.requests()
    router.pull_rows(requests, {"emb": np.array([1], np.int64)})

    with pytest.raises(WireError, match=r"float32 \(2, 3\) for emb where shape \(1, 3\)"):
        requests[0].receive(reply_to(requests[0], np.zeros((2, 3), np.float32)))
