"""Pushes and changed rows over the service: the rows that each trainer of Geo reads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import ErrorCode, JobError, PsrtError, TableError, WireError
from psrt.pserver.serving.updates import apply_now
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_CHANGED, PULL_DENSE, PUSH_DENSE, PUSH_ROWS
from psrt.rpc.wire.frames import Message
from tests.support.inproc import Fault
from tests.support.pserver import CALL_TIMEOUT_S, InprocPserver, inproc_pserver

WIDTH = 2
RULE: dict[str, Any] = {
    "initializer": specs.Constant(1.0),
    "optimizer": specs.Add(),
    "learning_rate": specs.ConstantRate(1.0),
    "seed": 3,
}
DENSE = specs.DenseTableSpec("w", "w", (4,), 0, 4, **RULE)
SPARSE = specs.SparseTableSpec("emb", WIDTH, **RULE, padding_id=0)


@pytest.fixture
def geo() -> Iterator[InprocPserver]:
    with inproc_pserver(trainers=3, mode=specs.Geo()) as pserver:
        yield pserver


def push(
    client: Client, ids: list[int], change: float, steps: int = 1, key: pb.PushKey | None = None
) -> Message:
    rows = np.full((len(ids), WIDTH), change, np.float32)
    header = pb.Header(push_key=key or client.next_push_key(), step=steps)
    header.parts.add(kind=PUSH_ROWS, table="emb")
    tensors: list[np.ndarray] = [np.array(ids, np.int64), rows]
    return client.call(Method.PUSH, header=header, tensors=tensors, timeout_s=CALL_TIMEOUT_S)


def pull_changed(client: Client, position: int, table: str = "emb") -> tuple[dict[int, float], int]:
    """The changed rows, by their first weight, and the position to ask from next."""
    header = pb.Header()
    header.parts.add(kind=PULL_CHANGED, table=table, position=position)
    reply = client.call(Method.PULL, header=header, timeout_s=CALL_TIMEOUT_S)
    ids, rows = reply.tensors
    assert rows.shape == (len(ids), WIDTH)
    return dict(zip(ids.tolist(), rows[:, 0].tolist(), strict=True)), reply.header.parts[0].position


# --- what changed ----------------------------------------------------------------------------


def test_a_trainer_reads_the_rows_that_others_pushed_since_it_asked_last(
    geo: InprocPserver,
) -> None:
    one, two, three = (geo.join(trainer, SPARSE) for trainer in range(3))
    nothing, begin = pull_changed(one, 0)
    push(one, [5, 6], 0.5)
    push(two, [6, -7], 2.0)
    push(three, [-7], 4.0)

    changed, position = pull_changed(one, begin)
    afterwards, _ = pull_changed(one, position)

    assert nothing == {}
    assert changed == {6: 3.5, -7: 7.0}
    assert afterwards == {}


def test_position_0_reads_every_row_also_when_the_log_is_empty(geo: InprocPserver) -> None:
    one, two = geo.join(0, SPARSE), geo.join(1, SPARSE)
    push(one, [5, 6], 0.5)
    push(two, [6, 0], 2.0)  # 0 is the padding id

    assert pull_changed(one, 0)[0] == {5: 1.5, 6: 3.5}
    assert pull_changed(two, 0)[0] == {5: 1.5, 6: 3.5}


def test_the_padding_id_is_never_a_changed_row(geo: InprocPserver) -> None:
    one, two = geo.join(0, SPARSE), geo.join(1, SPARSE)
    _, begin = pull_changed(one, 0)

    push(two, [0, 3], 2.0)

    assert pull_changed(one, begin)[0] == {3: 3.0}


@pytest.mark.parametrize("fault", [Fault.RESET_AFTER, Fault.DUPLICATE])
def test_an_answer_that_was_lost_is_given_again(geo: InprocPserver, fault: Fault) -> None:
    one, two = geo.join(0, SPARSE), geo.join(1, SPARSE)
    _, begin = pull_changed(one, 0)
    push(two, [3], 2.0)
    geo.server.faults.script(fault, Method.PULL)

    assert pull_changed(one, begin)[0] == {3: 3.0}


def test_one_push_with_its_pulls_is_a_whole_exchange_of_geo(geo: InprocPserver) -> None:
    one, two = geo.join(0, SPARSE, DENSE), geo.join(1, SPARSE)
    _, begin = pull_changed(one, 0)
    push(two, [3], 2.0)
    header = pb.Header(push_key=one.next_push_key(), step=10)
    for kind, table in ((PUSH_DENSE, "w"), (PUSH_ROWS, "emb"), (PULL_DENSE, "w")):
        header.parts.add(kind=kind, table=table)
    header.parts.add(kind=PULL_CHANGED, table="emb", position=begin)
    ones = np.ones((1, WIDTH), np.float32)
    tensors: list[np.ndarray] = [np.arange(4, dtype=np.float32), np.array([9]), ones]

    reply = one.call(Method.PUSH, header=header, tensors=tensors, timeout_s=CALL_TIMEOUT_S)

    np.testing.assert_array_equal(reply.tensors[0], [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(reply.tensors[1], [3])
    np.testing.assert_array_equal(reply.tensors[2], [[3.0, 3.0]])
    assert [part.kind for part in reply.header.parts] == [PULL_DENSE, PULL_CHANGED]
    assert reply.header.step == 11


def test_trainers_that_push_and_pull_side_by_side_end_with_the_same_rows(
    geo: InprocPserver,
) -> None:
    clients = [geo.join(trainer, SPARSE) for trainer in range(3)]
    start = threading.Barrier(3)

    def train(trainer: int) -> dict[int, float]:
        client, rows = clients[trainer], dict[int, float]()
        draw = np.random.default_rng(trainer)
        changed, position = pull_changed(client, 0)
        start.wait(10.0)
        for _ in range(40):
            ids = (1 + draw.choice(50, 8, replace=False)).tolist()
            push(client, ids, 1.0)
            rows |= {row_id: rows.get(row_id, 1.0) + 1.0 for row_id in ids}
            changed, position = pull_changed(client, position)
            rows |= changed
        start.wait(10.0)
        return rows | pull_changed(client, position)[0]

    with ThreadPoolExecutor(3) as pool:
        replicas = list(pool.map(train, range(3)))
    truth, _ = pull_changed(clients[0], 0)

    assert sum(truth.values()) == len(truth) + 3 * 40 * 8
    assert replicas == [truth, truth, truth]


# --- refusals and memory ---------------------------------------------------------------------


def test_in_another_mode_changed_rows_are_refused_by_name() -> None:
    with inproc_pserver(mode=specs.Async()) as pserver:
        client = pserver.join(0, SPARSE)

        with pytest.raises(WireError, match="PULL_CHANGED needs mode Geo; table 'emb'"):
            pull_changed(client, 0)


def test_a_position_beyond_the_log_is_refused(geo: InprocPserver) -> None:
    client = geo.join(0, SPARSE)

    with pytest.raises(WireError, match="from position 9 on, but its log ends at 1"):
        pull_changed(client, 9)


def test_changes_of_a_dense_table_are_refused(geo: InprocPserver) -> None:
    client = geo.join(0, DENSE)

    with pytest.raises(PsrtError, match="'w' is dense"):
        pull_changed(client, 0, "w")


def test_a_process_that_was_replaced_can_acknowledge_nothing(geo: InprocPserver) -> None:
    former = geo.join(0, SPARSE)
    geo.join(0, SPARSE, incarnation=2000)

    with pytest.raises(JobError, match="another process has joined as trainer 0"):
        pull_changed(former, 0)


def test_the_completion_of_a_trainer_frees_what_only_it_had_not_read(geo: InprocPserver) -> None:
    one, two = geo.join(0, SPARSE), geo.join(1, SPARSE)
    pull_changed(one, 0)
    push(two, [3, 4], 2.0)
    logged = [geo.service.status()["tables"][0]["logged_ids"]]

    one.call(Method.COMPLETE, timeout_s=CALL_TIMEOUT_S)
    logged.append(geo.service.status()["tables"][0]["logged_ids"])

    assert logged == [2, 0]


# --- pushes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [specs.Async(), specs.Ssp(), specs.HalfAsync(), specs.Geo()])
def test_the_answer_to_a_push_tells_the_steps_of_all_trainers(
    mode: specs.CommunicationMode,
) -> None:
    with inproc_pserver(trainers=2, mode=mode) as pserver:
        one, two = pserver.join(0, SPARSE), pserver.join(1, SPARSE)

        replies = [push(one, [3], 1.0, steps=4), push(two, [3], 1.0, steps=2)]
        pserver.server.faults.script(Fault.RESET_AFTER, Method.PUSH)
        replies.append(push(one, [3], 1.0, steps=1))

    assert [reply.header.step for reply in replies] == [4, 6, 7]


def test_a_repeated_push_is_answered_only_when_the_first_was_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    applying, gate = threading.Event(), threading.Event()

    def slowly(*args: Any) -> None:
        applying.set()
        assert gate.wait(CALL_TIMEOUT_S)
        apply_now(*args)

    monkeypatch.setattr("psrt.pserver.serving.effect_runner.apply_now", slowly)
    with inproc_pserver(mode=specs.HalfAsync()) as pserver, ThreadPoolExecutor(2) as pool:
        client = pserver.join(0, DENSE)
        key = client.next_push_key()
        first: Future[np.ndarray] = pool.submit(push_dense, client, key)
        assert applying.wait(CALL_TIMEOUT_S)
        again = pool.submit(push_dense, client, key)

        answered_early = first.done() or again.done()
        gate.set()

        assert not answered_early
        for answer in (first, again):
            np.testing.assert_array_equal(answer.result(60.0), np.full(4, 2.0))


def push_dense(client: Client, key: pb.PushKey) -> np.ndarray:
    header = pb.Header(push_key=key, step=1)
    header.parts.add(kind=PUSH_DENSE, table="w")
    header.parts.add(kind=PULL_DENSE, table="w")
    tensors = [np.ones(4, np.float32)]
    reply = client.call(Method.PUSH, header=header, tensors=tensors, timeout_s=CALL_TIMEOUT_S)
    return reply.tensors[0]


def test_a_push_that_cannot_be_applied_is_an_error_of_its_trainer_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*args: object) -> None:
        raise MemoryError("no more rows")

    with inproc_pserver(trainers=2, mode=specs.Async()) as pserver:
        one, two = pserver.join(0, SPARSE), pserver.join(1, SPARSE)
        key = one.next_push_key()
        with monkeypatch.context() as patch:
            patch.setattr("psrt.pserver.serving.effect_runner.apply_now", broken)
            with pytest.raises(TableError, match="push of trainer 0 could not be applied") as full:
                push(one, [3], 1.0, key=key)

        assert full.value.code is ErrorCode.TABLE_FULL
        with pytest.raises(TableError, match="could not be applied to 'emb': there is no memory"):
            push(one, [3], 1.0, key=key)
        assert push(two, [3], 1.0, steps=1).header.step == 2
