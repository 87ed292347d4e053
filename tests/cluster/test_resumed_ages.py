"""Rows that a cut has kept age on: admission, eviction and rates go on as without the restart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I64
from psrt.graph.program import Parameter
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.pserver.checkpoints import Settings, find_cut
from psrt.pserver.serving.service import PserverService
from psrt.rpc.methods import Method
from psrt.storage.local_directory import LocalDirectory
from tests.support.carriers import eventually
from tests.support.cluster import TIMEOUT_S, connect, exported

WIDTH, STEPS, CUT_BEFORE = 4, 24, 9
OLD, SEEN_TWICE = 7, 5
MODES = [specs.Sync(), specs.HalfAsync(), specs.Async()]


def ids_of(step: int) -> I64:
    """One id once at the start, one twice before the cut and once after it, two more often."""
    once = [OLD] * (step == 0) + [SEEN_TWICE] * (step in (2, 4, 20))
    return np.array([*once, 11, 12 + step % 3], np.int64)


def plan_of(mode: specs.CommunicationMode, lifecycle: specs.Lifecycle | None) -> PartitionPlan:
    admission = None if lifecycle else specs.CountFilter(3)
    table = Parameter(
        *("t", (1000, WIDTH), specs.Uniform(-0.1, 0.1), 1),
        sparse=True,
        distributed=True,
        optimizer=specs.Adam(),
        learning_rate=specs.ExponentialDecay(0.1, 5, 0.5),
        options=specs.TableOptions(admission, lifecycle=lifecycle),
    )
    return build_plan([table], ["p:1"], mode=mode)


def train(
    plan: PartitionPlan, mode: specs.CommunicationMode, service: PserverService, cut: bool = False
) -> dict[int, F32]:
    """Go on where the service began, to the end; returns the rows that a sweep leaves."""
    service.start()
    communicator, clients = connect([service], plan, mode, 1, 0)
    with ThreadPoolExecutor(1) as user:
        communicator.start(TIMEOUT_S)
        for step in range(int(communicator.resumed.position or 0), STEPS):
            if cut and step == CUT_BEFORE:
                made = user.submit(clients[0].call, Method.CHECKPOINT, timeout_s=TIMEOUT_S)
                eventually(lambda: service._cuts.proposed, "the proposal of a cut")
                if not isinstance(mode, specs.Sync):  # a thread takes part, without a further round
                    made.result(TIMEOUT_S)
            ids = ids_of(step)
            communicator.begin({})
            communicator.continues_at(lambda step=step: str(step + 1))
            values = np.full((len(ids), WIDTH), 0.1 * step + 0.1, np.float32)
            communicator.finish({"t": SelectedRows(ids, values, unique=True)})
        communicator.flush(TIMEOUT_S)
        if cut:
            assert made.result(TIMEOUT_S).header.cut.number == 1
    service._upkeep.sweep_due()
    rows = exported([service], "t")
    communicator.stop(TIMEOUT_S)
    service.stop()
    return rows


def service_of(directory: LocalDirectory | None, resume: bool = False) -> PserverService:
    cut = find_cut(directory, "latest") if directory is not None and resume else None
    settings = None if directory is None else Settings(directory)
    return PserverService(stripes=2, wait_timeout_s=TIMEOUT_S, cuts=settings, resumed=cut)


@pytest.mark.parametrize("mode", MODES, ids=repr)
@pytest.mark.parametrize(
    "lifecycle", [None, specs.Lifecycle(ttl_rounds=20)], ids=["admission", "ages"]
)
def test_rows_of_a_resumed_job_are_those_of_one_that_was_not_interrupted(
    mode: specs.CommunicationMode, lifecycle: specs.Lifecycle | None, tmp_path: Path
) -> None:
    plan, directory = plan_of(mode, lifecycle), LocalDirectory(tmp_path)

    whole = train(plan, mode, service_of(None))
    train(plan, mode, service_of(directory), cut=True)
    begins_at = int(find_cut(directory, "latest").position_of(0))
    resumed = train(plan, mode, service_of(directory, resume=True))

    assert CUT_BEFORE <= begins_at < STEPS
    assert resumed.keys() == whole.keys()
    assert all(np.array_equal(resumed[row], whole[row]) for row in whole)
    assert (OLD in whole, SEEN_TWICE in whole) == (False, True)


def test_a_sync_trainer_that_is_alone_takes_part_without_a_round(tmp_path: Path) -> None:
    mode = specs.Sync()
    plan, service = plan_of(mode, None), service_of(LocalDirectory(tmp_path))
    service.start()
    communicator, clients = connect([service], plan, mode, 1, 0)
    communicator.start(TIMEOUT_S)
    communicator.continues_at(lambda: "after one step")
    rows = SelectedRows(np.array([11], np.int64), np.ones((1, WIDTH), np.float32), unique=True)
    communicator.finish({"t": rows})

    communicator.is_alone()
    made = clients[0].call(Method.CHECKPOINT, timeout_s=TIMEOUT_S).header.cut.number
    communicator.stop(TIMEOUT_S)
    service.stop()

    assert find_cut(LocalDirectory(tmp_path), "latest").number == made == 1
    assert find_cut(LocalDirectory(tmp_path), "1").position_of(0) == "after one step"
    assert find_cut(LocalDirectory(tmp_path), "1").manifest["round"] == 1
