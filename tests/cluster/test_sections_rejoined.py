"""A trainer that dies in the middle of a step leaves sections in different rounds."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from psrt.communicator.requests.router import Router
from psrt.communicator.sync.sync import SyncCommunicator
from psrt.core import specs
from psrt.core.types import F32
from psrt.graph.program import Parameter
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire.frames import Message
from tests.support.carriers import eventually
from tests.support.cluster import connect, services
from tests.support.inproc import InprocServer

SECTIONS, BLOCK, STEPS, TIMEOUT_S = 8, 4, 3, 30.0
SYNC = specs.Sync("wait")


def plan_of_eight() -> PartitionPlan:
    w = Parameter(
        *("w", (SECTIONS * BLOCK,), specs.Constant(0.0), 1),
        optimizer=specs.Sgd(),
        learning_rate=specs.ConstantRate(1.0),
    )
    return build_plan([w], ["pserver-0:1"], min_block_size=1, max_block_size=BLOCK)


def gradient(value: float) -> dict[str, F32]:
    return {"w": np.full(SECTIONS * BLOCK, value, np.float32)}


def steps(communicator: SyncCommunicator, value: float) -> dict[str, F32]:
    for _ in range(STEPS):
        communicator.finish(gradient(value))
    return communicator.stop(TIMEOUT_S)


def push_sections(
    client: Client, plan: PartitionPlan, wanted: Sequence[int], pool: ThreadPoolExecutor
) -> list[Future[Message]]:
    """Calls of a trainer's first step, about some sections, that wait for their rounds."""
    router = Router(plan)
    requests = router.requests()
    router.push(requests, gradient(1.0), {})
    calls = []
    for request in requests:
        if request.bucket in wanted:
            header, tensors = request.header, request.tensors
            header.step = 1
            header.push_key.CopyFrom(client.next_push_key())
            call = {"header": header, "tensors": tensors, "timeout_s": TIMEOUT_S}
            calls.append(pool.submit(client.call, Method.EXCHANGE, **call))
    return calls


def open_rounds(service: PserverService) -> dict[int, int]:
    return dict(service.status()["rounds"])


@pytest.mark.parametrize("pushed", [range(4), range(7), (0, 2), (0, 1, 2, 4)], ids=str)
def test_a_process_that_takes_its_place_and_the_others_get_through(pushed: Sequence[int]) -> None:
    plan = plan_of_eight()
    hello = pb.Hello(job_id="test", plan_hash=plan.hash(), trainers=2, mode=specs.to_json(SYNC))
    with services(1) as (service,), ThreadPoolExecutor(12) as pool:
        dies = Client("pserver-0:1", 1, 50, InprocServer(service.handle), hello)
        stays, clients = connect([service], plan, SYNC, 2, 0)
        stays.start(TIMEOUT_S)
        dies.connect(TIMEOUT_S)
        waiting = push_sections(dies, plan, pushed, pool)
        stayed = pool.submit(steps, stays, 1.0)
        for call in waiting:
            call.result(TIMEOUT_S)
        eventually(lambda: sum(open_rounds(service).values()) == len(pushed), "the rounds to close")
        dies.close()

        comes, more_clients = connect([service], plan, SYNC, 2, 1)
        comes.start(TIMEOUT_S)
        came = pool.submit(steps, comes, 3.0)
        dense = [stayed.result(TIMEOUT_S), came.result(TIMEOUT_S)]
        for client in (*clients, *more_clients):
            client.close()

        # The process that came has gone through the rounds of these sections one further.
        rounds = {section: STEPS + (section in pushed) for section in range(SECTIONS)}
        assert open_rounds(service) == rounds
    assert dense[1]["w"].shape == (SECTIONS * BLOCK,)
    both, first, alone = -(1 + 3) / 2, -(1 + 1) / 2, -3.0
    for section in range(SECTIONS):
        ahead = section in pushed
        total = first + (STEPS - 1) * both + alone if ahead else STEPS * both
        part = dense[1]["w"][section * BLOCK : (section + 1) * BLOCK]
        np.testing.assert_allclose(part, total, err_msg=f"section {section}")
