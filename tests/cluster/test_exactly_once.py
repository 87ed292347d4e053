"""A push is applied once, whatever happens to its acknowledgement, on every carrier.

A real pserver service stands behind each carrier; the line breaks after a push was carried out, and
the client sends it again. SGD at rate 0.5 from constant values makes every expected number exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_DENSE, PULL_ROWS, PUSH_DENSE, PUSH_ROWS
from tests.support.carriers import CARRIERS, Station, eventually, station
from tests.support.pserver import CALL_TIMEOUT_S, register

RATE = 0.5
RULE: dict[str, Any] = {
    "optimizer": specs.Sgd(),
    "learning_rate": specs.ConstantRate(RATE),
    "seed": 1,
}
DENSE = specs.DenseTableSpec("w", "w", (4,), 0, 4, specs.Constant(1.0), **RULE)
ROWS = specs.SparseTableSpec("emb", 2, specs.Constant(8.0), **RULE)
IDS = np.array([5, -9, 2**62], np.int64)
SOCKETS = [carrier for carrier in CARRIERS if carrier != "inproc"]


class Cluster:
    """One pserver that trainers reach through a `Station`."""

    def __init__(self, service: PserverService, place: Station, hello: pb.Hello) -> None:
        self.service, self.place, self._hello = service, place, hello

    def trainer(self, trainer: int) -> Client:
        client = self.place.client(trainer=trainer, hello=self._hello)
        client.connect(CALL_TIMEOUT_S)
        register(client, DENSE, ROWS)
        return client

    def count(self, counter: str) -> float:
        return float(self.service.status()["counters"][counter])

    def wait_for_push(self, trainer: int) -> None:
        what = f"the push of trainer {trainer} to wait in the round"
        eventually(lambda: self.service.status()["waiting"] == [trainer], what)


@contextmanager
def cluster(carrier: str, mode: specs.CommunicationMode, trainers: int = 1) -> Iterator[Cluster]:
    service = PserverService(stripes=2, wait_timeout_s=CALL_TIMEOUT_S)
    service.start()
    hello = pb.Hello(job_id="job", plan_hash="plan", trainers=trainers, mode=specs.to_json(mode))
    try:
        with station(carrier, service.handle, greets=True) as place:
            yield Cluster(service, place, hello)
    finally:
        service.stop()


def push(client: Client, method: Method, gradient: float) -> tuple[np.ndarray, np.ndarray]:
    """Push `gradient` to all of `w` and to the rows `IDS`; what the same call pulled of both."""
    header = pb.Header(push_key=client.next_push_key(), step=1)
    header.parts.add(kind=PUSH_DENSE, table="w")
    header.parts.add(kind=PUSH_ROWS, table="emb")
    header.parts.add(kind=PULL_DENSE, table="w")
    header.parts.add(kind=PULL_ROWS, table="emb")
    dense, rows = np.full(4, gradient, np.float32), np.full((3, 2), gradient, np.float32)
    tensors = [dense, IDS, rows, IDS]
    reply = client.call(method, header=header, tensors=tensors, timeout_s=CALL_TIMEOUT_S)
    return reply.tensors[0].copy(), reply.tensors[1].copy()


def assert_updated_by(pulled: tuple[np.ndarray, np.ndarray], gradient: float) -> None:
    """Both tables moved from their initial values by `RATE` times the summed `gradient`."""
    np.testing.assert_array_equal(pulled[0], np.full(4, 1.0 - RATE * gradient, np.float32))
    np.testing.assert_array_equal(pulled[1], np.full((3, 2), 8.0 - RATE * gradient, np.float32))


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_asynchronous_push_whose_reply_is_lost_is_applied_once(carrier: str) -> None:
    with cluster(carrier, specs.Async()) as job:
        client = job.trainer(0)
        job.place.lose_next_reply(Method.PUSH)

        first = push(client, Method.PUSH, 3.0)
        second = push(client, Method.PUSH, 4.0)

        assert job.count("pserver_pushes_repeated") == 1
        assert job.count("pserver_pushes") == 2
        assert job.service.status()["global_step"] == 2
    assert_updated_by(first, 3.0)
    assert_updated_by(second, 7.0)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_exchange_whose_reply_is_lost_is_applied_once_and_answered(carrier: str) -> None:
    with cluster(carrier, specs.Sync()) as job:
        client = job.trainer(0)
        job.place.lose_next_reply(Method.EXCHANGE)

        first = push(client, Method.EXCHANGE, 3.0)
        second = push(client, Method.EXCHANGE, 4.0)

        assert job.count("pserver_pushes_repeated") == 1
        assert job.count("pserver_rounds") == 2
    assert_updated_by(first, 3.0)
    assert_updated_by(second, 7.0)


@pytest.mark.parametrize("lost", ["first", "second"])
@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_lost_reply_of_either_of_two_trainers_leaves_the_round_as_it_was(
    carrier: str, lost: str
) -> None:
    with cluster(carrier, specs.Sync(), trainers=2) as job, ThreadPoolExecutor(2) as threads:
        trainers = [job.trainer(0), job.trainer(1)]
        if lost == "first":
            job.place.lose_next_reply(Method.EXCHANGE)
        early = threads.submit(push, trainers[0], Method.EXCHANGE, 2.0)
        job.wait_for_push(0)
        if lost == "second":
            job.place.lose_next_reply(Method.EXCHANGE)
        late = threads.submit(push, trainers[1], Method.EXCHANGE, 6.0)
        first_round = results(early, late)

        second_round = results(
            *(threads.submit(push, trainer, Method.EXCHANGE, 1.0) for trainer in trainers)
        )

        assert job.count("pserver_pushes_repeated") >= 1
        assert job.count("pserver_rounds") == 2
    for pulled in first_round:
        assert_updated_by(pulled, (2.0 + 6.0) / 2)
    for pulled in second_round:
        assert_updated_by(pulled, (2.0 + 6.0) / 2 + 1.0)


@pytest.mark.parametrize("carrier", SOCKETS)
def test_a_trainer_that_loses_its_connection_while_it_waits_still_counts_once(carrier: str) -> None:
    with cluster(carrier, specs.Sync(), trainers=2) as job, ThreadPoolExecutor(2) as threads:
        trainers = [job.trainer(0), job.trainer(1)]
        early = threads.submit(push, trainers[0], Method.EXCHANGE, 2.0)
        job.wait_for_push(0)
        calls = job.count("pserver_calls")

        job.place.cut()
        eventually(lambda: job.count("pserver_calls") > calls + 1, "HELLO and the push again")
        late = threads.submit(push, trainers[1], Method.EXCHANGE, 6.0)

        pulled = results(early, late)
        assert job.count("pserver_rounds") == 1
    for values in pulled:
        assert_updated_by(values, (2.0 + 6.0) / 2)


@pytest.mark.parametrize(
    ("method", "mode"), [(Method.PUSH, specs.Async()), (Method.EXCHANGE, specs.Sync())]
)
def test_a_push_that_arrives_twice_is_applied_once(
    method: Method, mode: specs.CommunicationMode
) -> None:
    with cluster("inproc", mode) as job:
        client = job.trainer(0)
        job.place.duplicate_next(method)

        first = push(client, method, 3.0)
        second = push(client, method, 4.0)

        assert job.count("pserver_pushes_repeated") == 1
    assert_updated_by(first, 3.0)
    assert_updated_by(second, 7.0)


def test_a_push_that_arrives_twice_in_an_open_round_is_one_push() -> None:
    with cluster("inproc", specs.Sync(), trainers=2) as job, ThreadPoolExecutor(2) as threads:
        trainers = [job.trainer(0), job.trainer(1)]
        job.place.duplicate_next(Method.EXCHANGE)
        early = threads.submit(push, trainers[0], Method.EXCHANGE, 2.0)
        job.wait_for_push(0)
        late = threads.submit(push, trainers[1], Method.EXCHANGE, 6.0)

        pulled = results(early, late)
        assert job.count("pserver_rounds") == 1
    for values in pulled:
        assert_updated_by(values, (2.0 + 6.0) / 2)


def results(*calls: Future[tuple[np.ndarray, np.ndarray]]) -> list[tuple[np.ndarray, np.ndarray]]:
    return [call.result(2 * CALL_TIMEOUT_S) for call in calls]
