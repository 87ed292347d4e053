"""Facts of STATUS for those who look from outside: waits, shards, hot ids, cuts, errors."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import DeadlineError, TableError
from psrt.pserver.checkpoints import Settings
from psrt.pserver.serving import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_ROWS, PUSH_ROWS
from psrt.storage.local_directory import LocalDirectory
from tests.support.carriers import eventually
from tests.support.clock import ManualClock
from tests.support.inproc import InprocServer
from tests.support.pserver import AT_ONCE, CALL_TIMEOUT_S, TABLE, exchange, inproc_pserver, register

ROWS = specs.SparseTableSpec(
    "emb",
    2,
    initializer=specs.Uniform(-0.1, 0.1),
    optimizer=specs.Sgd(),
    learning_rate=specs.ConstantRate(0.5),
    seed=3,
)
IDS = np.array([5, 9, 2**62], np.int64)


def facts_of(service: PserverService) -> dict[str, Any]:
    """STATUS as a caller reads it."""
    return dict(json.loads(json.dumps(service.status())))


def call(client: Client, method: Method, kind: int, *tensors: np.ndarray, **fields: Any) -> None:
    header = pb.Header(**fields)
    header.parts.add(kind=kind, table="emb")
    if method == Method.PUSH:
        header.push_key.CopyFrom(client.next_push_key())
    client.call(method, header=header, tensors=tensors, timeout_s=CALL_TIMEOUT_S)


def test_a_wait_in_a_round_has_its_time_and_ends_as_a_counted_error() -> None:
    clock = ManualClock()
    with inproc_pserver(trainers=2, clock=clock) as pserver, ThreadPoolExecutor(1) as pool:
        client = pserver.join(0, TABLE)
        waits = pool.submit(exchange, client)
        eventually(lambda: facts_of(pserver.service)["waiting"] == [0], "the push")
        clock.advance(7.5)
        during = facts_of(pserver.service)
        clock.advance(20.0)
        pserver.service.expire()
        with pytest.raises(DeadlineError):
            waits.result(60.0)
        after = facts_of(pserver.service)

    assert during["waiting_s"] == {"0": 7.5}
    assert during["errors"] == []
    (error,) = after["errors"]
    assert (error["code"], error["count"], error["trainer"]) == ("DEADLINE", 1, 0)
    assert "trainer 1" in error["message"]
    assert "Start the missing trainer" in error["hint"]
    assert after["waiting_s"] == {}


def test_shards_staleness_and_hot_ids_are_those_of_the_calls() -> None:
    with inproc_pserver(mode=specs.Async(), trainers=2, stripes=2) as pserver:
        client = pserver.join(0, TABLE, ROWS)
        ones = np.ones((3, 2), np.float32)
        for _ in range(2):
            call(client, Method.PUSH, PUSH_ROWS, IDS, ones, step=1)
        many = np.full(61 * 8, 5, np.int64)
        call(client, Method.PULL, PULL_ROWS, many)
        with pytest.raises(TableError):
            call(client, Method.PULL, PULL_ROWS, IDS.reshape(3, 1))
        facts = facts_of(pserver.service)

    block, rows = facts["tables"]
    assert (block["parameter"], block["offset"], block["size"]) == ("w", 0, 4)
    assert (rows["shards"], rows["virtual_shards"]) == ([0, 1024], 1024)
    assert [stripe[:2] for stripe in rows["stripes"]] == [[0, 512], [512, 1024]]
    assert sum(stripe[2] for stripe in rows["stripes"]) == 3
    assert rows["hot_ids"][0] == [5, 1.0]
    assert facts["staleness"] == {"0": [2, 1, 1]}  # versions 0 and 1 against version 0
    assert [error["code"] for error in facts["errors"]] == ["TABLE_SHAPE"]


def test_a_pserver_names_the_others_of_the_plan_and_its_cuts(tmp_path: Path) -> None:
    service = PserverService(
        stripes=1, wait_timeout_s=30.0, clock=ManualClock(), cuts=Settings(LocalDirectory(tmp_path))
    )
    try:
        hello = pb.Hello(job_id="j", plan_hash="p", trainers=1, mode=specs.to_json(specs.Async()))
        trainer = Client("inproc", 0, 7, InprocServer(service.handle), hello, retry=AT_ONCE)
        incarnation = trainer.connect(CALL_TIMEOUT_S).incarnation
        mine = pb.PserverProcess(endpoint="a:6170", incarnation=incarnation)
        found = pb.Header(register=pb.Register(pservers=[mine]))
        trainer.call(Method.REGISTER, header=found, timeout_s=CALL_TIMEOUT_S)
        register(trainer, ROWS)
        asked = service._cuts.coordination
        assert asked is not None
        caller = asked.request()
        during = facts_of(service)
        cut = pb.Header(cut=pb.Cut(number=1))
        trainer.call(Method.CUT, header=cut, timeout_s=CALL_TIMEOUT_S)
        caller.future.result(CALL_TIMEOUT_S)
        eventually(lambda: facts_of(service)["cuts"]["newest"] is not None, "the end of the cut")
        after = facts_of(service)["cuts"]
    finally:
        service.stop()

    assert during["pservers"] == {"a:6170": during["incarnation"]}
    assert (during["cuts"]["proposed"], during["cuts"]["newest"]) == (1, None)
    assert (after["complete"], after["proposed"], after["writing"]) == (1, 0, None)
    assert after["newest"]["number"] == 1
    assert after["newest"]["bytes"] > 0
    assert after["ends"] == {"complete": 1, "given_up": 0, "unknown": 0}


def test_a_pserver_without_a_directory_has_no_facts_of_cuts() -> None:
    with inproc_pserver() as pserver:
        pserver.join(0, TABLE)

        assert facts_of(pserver.service)["cuts"] is None
