"""Strategies: their modes in psrt, and the sub-configs they take and refuse."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from psrt.core.errors import ConfigError, ErrorCode
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Sync
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy, ReduceStrategy
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import distributed_strategy
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    DistributedStrategy,
    StrategyFactory,
)
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy_factory import (  # noqa: E501
    DistributedStrategyFactory,
)
from psrt.fluid.transpiler.runtime_configs import EFFECTS, ServerRuntimeConfig, TrainerRuntimeConfig
from psrt.partition.transpiler_config import DistributeTranspilerConfig

FACTORIES: dict[str, Callable[[], DistributedStrategy]] = {
    "sync": StrategyFactory.create_sync_strategy,
    "half_async": StrategyFactory.create_half_async_strategy,
    "async": StrategyFactory.create_async_strategy,
    "geo": StrategyFactory.create_geo_strategy,
}
every_strategy = pytest.mark.parametrize("create", FACTORIES.values(), ids=FACTORIES)


@pytest.fixture(autouse=True)
def no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CPU_NUM", raising=False)


# --- modes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "mode"),
    [
        (StrategyFactory.create_sync_strategy(), Sync()),
        (StrategyFactory.create_half_async_strategy(), HalfAsync()),
        (StrategyFactory.create_async_strategy(), Async(thread_pool_size=5)),
        (StrategyFactory.create_geo_strategy(), Geo(100)),
        (StrategyFactory.create_geo_strategy(update_frequency=400), Geo(400)),
    ],
)
def test_each_strategy_is_a_mode_of_psrt(
    strategy: DistributedStrategy, mode: CommunicationMode
) -> None:
    assert strategy.settled() == mode


def test_both_names_of_the_factory_are_the_same() -> None:
    assert DistributedStrategyFactory is StrategyFactory


@pytest.mark.parametrize("steps", [0, -1, 2.5, True, "100"])
def test_geo_refuses_a_frequency_that_is_no_number_of_steps(steps: Any) -> None:
    with pytest.raises(ConfigError, match="expected an integer, at least 1"):
        StrategyFactory.create_geo_strategy(steps)


def test_delay_compensation_is_an_option_of_async() -> None:
    strategy = StrategyFactory.create_async_strategy()

    strategy.set_program_config({"enable_dc_asgd": True})

    assert strategy.mode() == Async(thread_pool_size=5, dc_asgd=1.0)


@pytest.mark.parametrize("name", ["sync", "half_async", "geo"])
def test_delay_compensation_is_refused_elsewhere(name: str) -> None:
    strategy = FACTORIES[name]()
    strategy.get_program_config().enable_dc_asgd = True

    with pytest.raises(ConfigError, match="enable_dc_asgd"):
        strategy.settled()


# --- the five sub-configs -------------------------------------------------------------------------

SUB_CONFIGS: dict[str, tuple[type[Any], str, Any]] = {
    "program_config": (DistributeTranspilerConfig, "min_block_size", 81920),
    "trainer_runtime_config": (TrainerRuntimeConfig, "communicator_send_wait_times", 7),
    "server_runtime_config": (ServerRuntimeConfig, "_rpc_get_thread_num", 7),
    "execute_strategy": (ExecutionStrategy, "num_threads", 7),
    "build_strategy": (BuildStrategy, "debug_graphviz_path", "graph.dot"),
}
every_sub_config = pytest.mark.parametrize("name", SUB_CONFIGS)


def getter(strategy: DistributedStrategy, name: str) -> Any:
    return getattr(strategy, f"get_{name}")()


def setter(strategy: DistributedStrategy, name: str) -> Callable[[Any], None]:
    function: Callable[[Any], None] = getattr(strategy, f"set_{name}")
    return function


@every_strategy
@every_sub_config
def test_a_sub_config_may_be_changed_in_place_replaced_or_overridden_by_a_dict(
    create: Callable[[], DistributedStrategy], name: str
) -> None:
    kind, field, value = SUB_CONFIGS[name]
    in_place, replaced, by_dict = create(), create(), create()
    other = kind()
    setattr(other, field, value)

    setattr(getter(in_place, name), field, value)
    setter(replaced, name)(other)
    setter(by_dict, name)({field: value})

    for strategy in (in_place, replaced, by_dict):
        assert isinstance(getter(strategy, name), kind)
        assert getattr(getter(strategy, name), field) == value


@every_strategy
@every_sub_config
def test_an_unknown_key_is_refused_with_the_nearest(
    create: Callable[[], DistributedStrategy], name: str
) -> None:
    kind, field, value = SUB_CONFIGS[name]

    with pytest.raises(ConfigError) as refusal:
        setter(create(), name)({field + "s": value})

    assert refusal.value.message == f"{kind.__name__} doesn't have key: {field}s."
    assert refusal.value.hint == f"Did you mean {field}?"
    assert refusal.value.code == ErrorCode.CONFIG_UNKNOWN_KEY


@every_sub_config
@pytest.mark.parametrize("wrong", [7, "min_block_size", ["num_threads"], None])
def test_what_is_neither_a_config_nor_a_dict_is_a_type_error(name: str, wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"{SUB_CONFIGS[name][0].__name__} is to be replaced by"):
        setter(StrategyFactory.create_sync_strategy(), name)(wrong)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("program_config", {"min_block_size": "81920"}),
        ("program_config", {"slice_var_up": "yes"}),
        ("trainer_runtime_config", {"rpc_deadline": 1.5}),
        ("trainer_runtime_config", {"communicator_send_queue_size": True}),
        ("server_runtime_config", {"_rpc_get_thread_num": "12"}),
        ("execute_strategy", {"num_threads": "8"}),
        ("build_strategy", {"reduce_strategy": 1}),
    ],
)
def test_a_value_of_another_type_is_a_type_error_of_psrt(name: str, wrong: Any) -> None:
    strategy = StrategyFactory.create_sync_strategy()

    with pytest.raises(TypeError, match="expected") as refusal:
        setter(strategy, name)(wrong)

    assert isinstance(refusal.value, ConfigError)


@every_strategy
def test_what_makes_a_strategy_is_put_back_after_every_override(
    create: Callable[[], DistributedStrategy], caplog: pytest.LogCaptureFixture
) -> None:
    strategy = create()
    mode, flags = strategy.mode(), {**strategy.flags}
    with pytest.raises(ConfigError, match="runtime_split_send_recv contradicts sync_mode"):
        strategy.set_program_config({"sync_mode": True})
    assert flags.pop("sync_mode") is strategy.get_program_config().sync_mode is False
    with caplog.at_level(logging.WARNING, "psrt.fluid"):
        for name, value in flags.items():
            other = not value if isinstance(value, bool) else value + 1
            strategy.set_program_config({name: other})
            assert getattr(strategy.get_program_config(), name) == value
            setattr(strategy.get_program_config(), name, other)

    assert strategy.settled() == mode
    assert all(f"{name} is" in caplog.text for name in flags)


@pytest.mark.parametrize(("cpu_num", "reduce"), [("1", "AllReduce"), ("4", "Reduce")])
def test_replicas_of_cpu_num_share_parameters_and_have_a_thread_each(
    monkeypatch: pytest.MonkeyPatch, cpu_num: str, reduce: str
) -> None:
    monkeypatch.setenv("CPU_NUM", cpu_num)
    strategy = StrategyFactory.create_sync_strategy()

    assert strategy.get_execute_strategy().num_threads == int(cpu_num)
    assert strategy.get_build_strategy().reduce_strategy is ReduceStrategy[reduce]


# --- runtime knobs --------------------------------------------------------------------------------


@pytest.mark.parametrize(("knob", "field"), EFFECTS.items())
def test_a_runtime_knob_sets_the_field_of_async_it_stands_for(knob: str, field: str) -> None:
    strategy = StrategyFactory.create_async_strategy()
    value = False if knob.endswith("thread") else 9

    strategy.set_trainer_runtime_config({knob: value})

    assert getattr(strategy.mode(), field) == value


def test_gradients_are_averaged_when_the_optimizer_is_not_sgd() -> None:
    strategy = StrategyFactory.create_async_strategy()

    strategy.get_trainer_runtime_config().runtime_configs["communicator_is_sgd_optimizer"] = 0

    assert strategy.mode() == Async(thread_pool_size=5, merge="average")


def test_the_deadline_of_a_call_is_in_milliseconds() -> None:
    config = TrainerRuntimeConfig()

    config.rpc_deadline = 1500

    assert config.call_timeout_s == 1.5


def test_runtime_configs_are_the_attributes_as_a_dict() -> None:
    config = TrainerRuntimeConfig()

    config.runtime_configs["communicator_send_wait_times"] = 2

    assert config.communicator_send_wait_times == 2
    assert dict(config.runtime_configs) == {**config.defaults(), "communicator_send_wait_times": 2}
    with pytest.raises(ConfigError, match="doesn't have key: send_wait_times"):
        config.runtime_configs["send_wait_times"] = 2
    with pytest.raises(KeyError):
        config.runtime_configs["send_wait_times"]


def test_knobs_are_texts_to_programs_that_take_them_for_such() -> None:
    strategy = StrategyFactory.create_async_strategy()
    strategy.set_trainer_runtime_config({"communicator_send_queue_size": "20"})
    config = strategy.get_trainer_runtime_config()
    config.runtime_configs["communicator_send_wait_times"] = "7"  # type: ignore[assignment]

    assert config.runtime_configs["communicator_send_queue_size"] == "20"
    assert config.runtime_configs["communicator_send_queue_size"] != "2"
    assert config.communicator_send_queue_size == 20
    flags = config.get_communicator_flags()
    assert flags["communicator_send_wait_times"] == "7"
    assert flags["communicator_independent_recv_thread"] == "1"
    assert "rpc_deadline" not in flags


@pytest.mark.parametrize("name", TrainerRuntimeConfig.defaults())
def test_every_trainer_knob_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    value = not TrainerRuntimeConfig.defaults()[name] if is_switch(name) else 17
    monkeypatch.setenv(f"FLAGS_{name}", str(int(value)))

    assert TrainerRuntimeConfig().turned() == {name: value}


@pytest.mark.parametrize("name", ServerRuntimeConfig.defaults())
def test_every_server_knob_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(f"FLAGS{name}", "3")

    assert ServerRuntimeConfig().turned() == {name: 3}


def test_a_variable_that_is_no_number_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAGS_rpc_deadline", "soon")

    with pytest.raises(ConfigError, match="FLAGS_rpc_deadline is 'soon', expected a number"):
        TrainerRuntimeConfig()


def test_defaults_that_count_replicas_follow_cpu_num(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPU_NUM", "4")

    mode = StrategyFactory.create_async_strategy().mode()

    assert mode == Async(4, 4, min_send_grad_num_before_recv=4, thread_pool_size=5)


IDLE = {
    "sync": {"communicator_max_merge_var_num", "communicator_thread_pool_size"},
    "half_async": {"communicator_max_merge_var_num", "communicator_thread_pool_size"},
    "geo": {"communicator_max_merge_var_num", "communicator_thread_pool_size"},
    "async": set(),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_turned_knobs_without_effect_are_logged_in_one_line(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    strategy = FACTORIES[name]()
    turned = {"communicator_max_merge_var_num": 3, "communicator_thread_pool_size": 3}
    strategy.set_trainer_runtime_config({**turned, "rpc_deadline": 3, "rpc_retry_times": 9})

    strategy.settled()

    (line,) = [r.getMessage() for r in caplog.records if "no effect" in r.getMessage()]
    named = {knob for knob in TrainerRuntimeConfig.defaults() if knob in line}
    assert named == {*IDLE[name], "rpc_retry_times"}


@every_strategy
def test_a_strategy_without_turned_knobs_logs_nothing(
    create: Callable[[], DistributedStrategy], caplog: pytest.LogCaptureFixture
) -> None:
    create().settled()

    assert caplog.records == []


def is_switch(name: str) -> bool:
    return isinstance(TrainerRuntimeConfig.defaults()[name], bool)


def test_the_module_names_of_fluid_are_there() -> None:
    names = ("TrainerRuntimeConfig", "ServerRuntimeConfig", "DistributedStrategy", "SyncStrategy")

    assert [name for name in names if not hasattr(distributed_strategy, name)] == []
