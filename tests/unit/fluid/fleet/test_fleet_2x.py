"""`fleet` by the names of the 2.x API."""

from __future__ import annotations

from typing import Any

import pytest

import psrt.fluid as fluid
import psrt.fluid.distributed.fleet as fleet
from psrt.core.errors import ConfigError
from psrt.core.specs import Async, Collective, CommunicationMode, Geo, Sync

PSERVERS = ["127.0.0.1:6170"]


@pytest.mark.parametrize(
    ("a_sync", "configs", "mode"),
    [
        (False, {}, Sync()),
        (True, {}, Async(send_queue_size=16, send_wait_times=1, independent_recv_thread=False)),
        (True, {"k_steps": 400}, Geo(400)),
        (
            True,
            {
                "max_merge_var_num": 2,
                "send_queue_size": 3,
                "send_wait_times": 4,
                "min_send_grad_num_before_recv": 5,
                "thread_pool_size": 6,
                "independent_recv_thread": True,
            },
            Async(2, 3, 4, min_send_grad_num_before_recv=5, thread_pool_size=6),
        ),
    ],
)
def test_a_sync_and_k_steps_say_the_mode(
    a_sync: bool, configs: dict[str, Any], mode: CommunicationMode
) -> None:
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = a_sync
    strategy.a_sync_configs = configs
    fleet.init(fleet.UserDefinedRoleMaker(0, fleet.Role.WORKER, 1, PSERVERS))
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", shape=[2]), 1))

    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss)

    assert fleet.main_program.job.mode == mode
    assert fleet.is_worker()


@pytest.mark.parametrize(("a_sync", "steps"), [(False, 10), (True, -1), (False, -1)])
def test_flags_that_contradict_each_other_are_refused(a_sync: bool, steps: int) -> None:
    strategy = fleet.DistributedStrategy()
    strategy.a_sync, strategy.a_sync_configs = a_sync, {"k_steps": steps}

    with pytest.raises(ConfigError, match=f"a_sync is {a_sync} and k_steps is {steps}"):
        _ = strategy.settings


def test_an_unknown_item_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"doesn't have key: k_step\.") as refusal:
        fleet.DistributedStrategy().a_sync_configs = {"k_step": 1}

    assert refusal.value.hint == "Did you mean k_steps?"


def test_items_are_read_as_a_dict() -> None:
    strategy = fleet.DistributedStrategy()

    strategy.a_sync_configs = {"k_steps": 3}

    assert strategy.a_sync_configs["k_steps"] == 3
    assert strategy.a_sync_configs["send_queue_size"] == 16


def test_a_collective_fleet_has_workers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:6170,127.0.0.1:6171")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    fleet.init(is_collective=True)
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [3]), 1))

    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss)

    job = fleet.main_program.job
    assert (job.mode, job.trainer_id, job.trainers) == (Collective(), 1, 2)


def test_strategies_of_other_kinds_are_refused() -> None:
    with pytest.raises(ConfigError, match="was given a dict as its strategy"):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), {})  # type: ignore[arg-type]
