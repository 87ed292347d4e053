"""Large dense parameters in real processes: many calls at a time, and every number right."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from psrt.communicator.factory import make
from psrt.core import specs
from psrt.core.specs import CommunicationMode
from psrt.core.types import F32
from psrt.graph.program import Parameter
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from tests.support.pserver import CALL_TIMEOUT_S, daemon, onlooker, status

STEPS, SIZE, MOST = 6, 300_000, 32_768
RATE = specs.ConstantRate(0.5)
SECTIONS = 9  # of 30,000 or 60,000 numbers, which lie in memory that both ends share


def plan_for(endpoint: str, mode: CommunicationMode) -> PartitionPlan:
    """`w` in ten blocks, and `b`, of one number."""
    w, b = (
        Parameter(name, shape, specs.Constant(8.0), 1, optimizer=specs.Sgd(), learning_rate=RATE)
        for name, shape in (("w", (SIZE,)), ("b", (1,)))
    )
    return build_plan([w, b], [endpoint], max_block_size=MOST, mode=mode)


def gradient_of(trainer: int, step: int) -> dict[str, F32]:
    """Whole numbers, so that sums are exact in any order."""
    values = (np.arange(SIZE) + 3 * trainer + step) % 7
    return {"w": values.astype(np.float32), "b": np.full(1, step, np.float32)}


def trainer(
    endpoint: str, mode: CommunicationMode, carrier: Carrier, number: int, both_trained: Barrier
) -> dict[str, F32]:
    """The parameters when both trainers have trained."""
    plan = plan_for(endpoint, mode)
    hello = pb.Hello(job_id="job", plan_hash=plan.hash(), trainers=2, mode=specs.to_json(mode))
    client = Client(endpoint, number, 7 + number, carrier, hello)
    communicator = make(mode, plan, [client], call_timeout_s=CALL_TIMEOUT_S)
    try:
        communicator.start(CALL_TIMEOUT_S)
        for step in range(STEPS):
            communicator.begin({})
            communicator.finish(gradient_of(number, step))
        communicator.flush(CALL_TIMEOUT_S)
        both_trained.wait(CALL_TIMEOUT_S)
        return communicator.stop(CALL_TIMEOUT_S)
    finally:
        communicator.close()
        client.close()


@pytest.mark.parametrize("carrier", ["stream", "grpc"])
@pytest.mark.parametrize("mode", [specs.Sync(), specs.HalfAsync(), specs.Async()], ids=str)
def test_every_gradient_of_every_section_is_applied_once(
    tmp_path: Path, mode: CommunicationMode, carrier: Carrier
) -> None:
    both_trained = Barrier(2)
    with daemon(tmp_path, "--stay") as pserver, ThreadPoolExecutor(2) as pool:
        shared = pserver.endpoint, mode, carrier
        ends = [pool.submit(trainer, *shared, number, both_trained) for number in (0, 1)]
        found = [end.result(CALL_TIMEOUT_S) for end in ends]
        seen = onlooker(pserver.endpoint)
        told = status(seen)
        seen.close()

    is_sync = isinstance(mode, specs.Sync)
    part = np.float32(0.25 if is_sync else 0.5)  # rate 0.5, of the mean or of each
    gradients = [gradient_of(number, step) for number in (0, 1) for step in range(STEPS)]
    for dense in found:
        for name in ("w", "b"):
            total = np.sum([each[name] for each in gradients], axis=0)
            np.testing.assert_array_equal(dense[name], 8 - part * total)
    assert told["rounds"] == ([[section, STEPS] for section in range(SECTIONS)] if is_sync else [])
    assert told["global_step"] == (0 if is_sync else 2 * STEPS)
