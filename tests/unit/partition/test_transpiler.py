"""The transpiler: modes of Fluid's flags, parts of each process, refusals."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import ConfigError, ErrorCode, ProgramError, PsrtError
from psrt.core.specs import (
    Add,
    Async,
    Collective,
    DenseTableSpec,
    Geo,
    HalfAsync,
    Momentum,
    SparseTableSpec,
    Ssp,
    Sync,
)
from psrt.graph.program import Program
from psrt.partition.arguments import endpoints_of
from psrt.partition.transpiler import DistributeTranspiler
from psrt.partition.transpiler_config import DistributeTranspilerConfig, mode_of
from tests.support.pages import page

ENDPOINTS = "ps0:6170,ps1:6170"


def ctr_program() -> Program:
    """A distributed table of 8 columns, a sparse one of 4, and a dense layer of 12 × 3."""
    with psrt.program(seed=5) as program:
        far = layers.data("far", dtype="int64", ragged=True)
        near = layers.data("near", dtype="int64", ragged=True)
        label = layers.data("label")
        rows = [
            layers.embedding(far, [1000, 8], is_sparse=True, is_distributed=True, param="big"),
            layers.embedding(near, [10, 4], is_sparse=True, param="small"),
        ]
        pooled = layers.concat([layers.sequence_pool(row, "sum") for row in rows], axis=1)
        hidden = layers.fc(pooled, 3, param="w", bias=False)
        loss = layers.mean(layers.square_error_cost(layers.fc(hidden, 1, bias=False), label))
        psrt.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return program


def transpiled(
    trainer_id: Any = 0, *, trainers: Any = 2, pservers: Any = ENDPOINTS, **fields: Any
) -> DistributeTranspiler:
    transpiler = DistributeTranspiler(config_with(**fields))
    transpiler.transpile(ctr_program(), trainer_id, pservers, trainers)
    return transpiler


def config_with(**fields: Any) -> DistributeTranspilerConfig:
    config = DistributeTranspilerConfig()
    for name, value in fields.items():
        setattr(config, name, value)
    return config


# --- modes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "mode"),
    [
        ({}, Sync()),
        ({"sync_mode": False}, Async()),
        ({"sync_mode": False, "runtime_split_send_recv": True}, Async()),
        ({"sync_mode": False, "enable_dc_asgd": True}, Async(dc_asgd=1.0)),
        ({"sync_mode": False, "half_async": True}, HalfAsync()),
        ({"sync_mode": False, "half_async": True, "completely_not_async": True}, Sync()),
        ({"sync_mode": False, "geo_sgd_mode": True}, Geo(100)),
        ({"sync_mode": False, "geo_sgd_mode": True, "geo_sgd_need_push_nums": 400}, Geo(400)),
    ],
)
def test_a_mode_is_read_off_fluids_flags(fields: dict[str, Any], mode: object) -> None:
    assert mode_of(config_with(**fields)) == mode


def test_queues_beside_rounds_are_refused_as_soon_as_both_are_set() -> None:
    config = DistributeTranspilerConfig()

    with pytest.raises(ConfigError, match="runtime_split_send_recv contradicts sync_mode"):
        config.runtime_split_send_recv = True
    config.sync_mode = False
    config.runtime_split_send_recv = True
    with pytest.raises(ConfigError, match="runtime_split_send_recv contradicts sync_mode"):
        config.sync_mode = True

    assert mode_of(config) == Async()


def test_an_argument_of_transpile_overrides_the_config() -> None:
    assert mode_of(config_with(), sync_mode=False) == Async()
    assert mode_of(config_with(sync_mode=False), sync_mode=True) == Sync()


FLAGS = (
    "sync_mode",
    "runtime_split_send_recv",
    "half_async",
    "completely_not_async",
    "geo_sgd_mode",
    "enable_dc_asgd",
)


def is_contradictory(on: set[str]) -> bool:
    """The rules of Fluid's setters and checks, as one line each."""
    rounds_and_others = "sync_mode" in on and on & {
        "runtime_split_send_recv",
        "half_async",
        "geo_sgd_mode",
    }
    geo_and_others = "geo_sgd_mode" in on and on & {"half_async", "completely_not_async"}
    compensated = "enable_dc_asgd" in on and on & {
        "sync_mode",
        "completely_not_async",
        "half_async",
        "geo_sgd_mode",
    }
    return bool(rounds_and_others or geo_and_others or compensated)


@pytest.mark.parametrize("values", list(itertools.product((False, True), repeat=len(FLAGS))))
def test_every_combination_of_flags_has_one_mode_or_names_two_that_contradict(
    values: tuple[bool, ...],
) -> None:
    fields = dict(zip(FLAGS, values, strict=True))
    on = {name for name, value in fields.items() if value}

    if is_contradictory(on):
        with pytest.raises(ConfigError, match="contradicts") as caught:
            mode_of(config_with(**fields))
        assert len({name for name in FLAGS if name in caught.value.message} & on) == 2
    else:
        assert isinstance(mode_of(config_with(**fields)), Sync | Async | HalfAsync | Geo)


@pytest.mark.parametrize("mode", ["nccl2", "collective"])
def test_a_collective_mode_trains_without_pservers(mode: str) -> None:
    assert mode_of(config_with(mode=mode)) == Collective()


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected one of pserver, nccl2, collective"):
        mode_of(config_with(mode="ring"))


def test_geo_needs_a_step_between_two_exchanges() -> None:
    with pytest.raises(ConfigError, match="geo_sgd_need_push_nums is 0"):
        mode_of(config_with(sync_mode=False, geo_sgd_mode=True, geo_sgd_need_push_nums=0))


def test_a_misspelt_field_of_the_config_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no field slice_var_upp") as caught:
        config_with(slice_var_upp=False)

    assert caught.value.hint == "Did you mean slice_var_up?"
    assert caught.value.code is ErrorCode.CONFIG_UNKNOWN_KEY


# --- parts ----------------------------------------------------------------------------------------


def test_every_trainer_gets_the_same_plan_and_its_own_id() -> None:
    parts = [transpiled(trainer).get_trainer_program() for trainer in range(2)]

    assert [part.trainer_id for part in parts] == [0, 1]
    assert parts[0].plan.hash() == parts[1].plan.hash()
    assert {(part.trainers, part.mode, part.job_id) for part in parts} == {
        (2, Sync(), "transpiled")
    }


def test_a_trainer_waits_for_ports_by_the_config_or_by_argument() -> None:
    assert transpiled().get_trainer_program().wait_port
    assert not transpiled(wait_port=False).get_trainer_program().wait_port
    assert not transpiled().get_trainer_program(wait_port=False).wait_port


def test_a_trainer_runs_the_program_without_its_updates() -> None:
    program = transpiled().get_trainer_program().program

    assert {op.role for op in program.ops} == {"forward", "backward"}


def test_under_geo_a_trainer_updates_dense_parameters_and_tables_add_up_changes() -> None:
    part = transpiled(sync_mode=False, geo_sgd_mode=True).get_trainer_program()

    updated = {name for op in part.program.ops if op.type == "update" for name in op.writes()}
    assert updated == {"w", "fc_1.w_0"}
    assert {type(block.spec.optimizer) for block in part.plan.blocks} == {Add}
    assert {type(spec.optimizer) for spec in part.plan.sparse} == {Add}


def test_the_parts_of_pservers_cover_every_block_once_and_share_every_table() -> None:
    transpiler = transpiled(min_block_size=4)

    parts = [transpiler.get_pserver_program(endpoint) for endpoint in ("ps0:6170", "ps1:6170")]

    plan = transpiler.get_trainer_program().plan
    held = [spec for part in parts for spec in part.specs]
    dense = [spec for spec in held if isinstance(spec, DenseTableSpec)]
    shares = [spec for spec in held if isinstance(spec, SparseTableSpec) and spec.name == "big"]
    assert sorted(s.name for s in dense) == sorted(b.spec.name for b in plan.blocks)
    assert [(s.first_shard, s.last_shard) for s in shares] == [(0, 512), (512, 1024)]
    assert all(isinstance(spec.optimizer, Momentum) for spec in held)


def test_program_and_startup_program_of_a_pserver_come_together() -> None:
    transpiler = transpiled()

    program, startup = transpiler.get_pserver_programs("ps1:6170")

    assert startup == transpiler.get_startup_program("ps1:6170")
    assert startup.specs == program.specs
    assert transpiler.get_startup_program().specs == ()


def test_a_mode_that_fluid_has_no_flag_for_is_given_directly() -> None:
    transpiler = DistributeTranspiler()

    transpiler.transpile(ctr_program(), 0, ENDPOINTS, 2, mode=Ssp(5))

    assert transpiler.get_pserver_program("ps0:6170").mode == Ssp(5)


def test_print_log_prints_the_balance() -> None:
    printed: list[str] = []
    transpiler = DistributeTranspiler(config_with(print_log=True), printed.append)

    transpiler.transpile(ctr_program(), 0, ENDPOINTS, 2)

    assert printed == [transpiler.get_trainer_program().plan.balance()]


# --- placement ------------------------------------------------------------------------------------


def placed(split_method: Any) -> dict[str, str]:
    plan = transpiled(split_method=split_method, min_block_size=4).get_trainer_program().plan
    return {block.spec.name: block.endpoint for block in plan.blocks}


def test_blocks_are_balanced_by_default_and_placed_in_turn_by_name() -> None:
    assert placed("Balanced") == placed(None)
    assert list(placed("RoundRobin").values()) == ["ps0:6170", "ps1:6170", "ps0:6170"]


def test_hash_name_places_alike_in_every_process() -> None:
    endpoints = ENDPOINTS.split(",")

    assert placed("HashName") == {
        name: endpoints[zlib.crc32(name.encode()) % 2] for name in placed("HashName")
    }


class Last:
    """Written like Fluid's dispatchers: names are called for, everything goes to one endpoint."""

    def __init__(self, pserver_endpoints: list[str]) -> None:
        self._eps = pserver_endpoints
        self.seen: list[list[str]] = []

    def reset(self) -> None:
        self.seen = []

    def dispatch(self, varlist: list[Any]) -> list[str]:
        self.seen.append([var.name() for var in varlist])
        assert all(var.shape[0] > 0 for var in varlist)
        return [self._eps[-1]] * len(varlist)


def test_a_dispatcher_class_is_made_with_the_endpoints() -> None:
    assert set(placed(Last).values()) == {"ps1:6170"}


def test_a_dispatcher_object_is_asked_once_a_parameter() -> None:
    mine = Last(["ps0:6170"])

    assert set(placed(mine).values()) == {"ps0:6170"}
    assert mine.seen[-1] == ["w.block0", "w.block1"]


def test_a_function_of_blocks_and_endpoints_places_all_at_once() -> None:
    assert set(placed(lambda blocks, endpoints: [endpoints[0]] * len(blocks)).values()) == {
        "ps0:6170"
    }


def test_a_split_method_that_places_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="split_method is 3"):
        transpiled(split_method=3)


def test_slicing_can_be_turned_off() -> None:
    plan = transpiled(slice_var_up=False, min_block_size=4).get_trainer_program().plan

    assert all(block.spec.offset == 0 for block in plan.blocks)


def test_small_blocks_are_allowed() -> None:
    plan = transpiled(min_block_size=1).get_trainer_program().plan

    assert "w.block1" in {block.spec.name for block in plan.blocks}


@pytest.mark.parametrize("name", ["min_block_size", "geo_sgd_need_push_nums"])
@pytest.mark.parametrize("value", ["8192", 4.0, 2.5, None])
def test_a_number_of_the_config_is_an_integer(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{name} is {value!r}, expected an integer"):
        config_with(**{name: value})
    with pytest.raises(ConfigError, match=name):
        DistributeTranspilerConfig(**{name: value})


@pytest.mark.parametrize("name", ["slice_var_up", "wait_port", *FLAGS])
@pytest.mark.parametrize("value", ["False", "", 2, None])
def test_a_text_is_no_switch_of_the_config(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{name} is {value!r}, expected True or False"):
        config_with(**{name: value})


def test_numbers_of_numpy_and_0_and_1_are_taken_for_what_they_are() -> None:
    config = config_with(min_block_size=np.int64(4), sync_mode=0, slice_var_up=np.bool_(True))

    assert (config.min_block_size, config.sync_mode, config.slice_var_up) == (4, False, True)
    assert type(config.sync_mode) is type(config.slice_var_up) is bool


class WithoutEndpoints:
    def dispatch(self, varlist: list[Any]) -> list[str]:
        return ["ps0:6170"] * len(varlist)


class Silent:
    def dispatch(self, varlist: list[Any]) -> None:
        return None


@pytest.mark.parametrize(
    ("split_method", "reason"),
    [
        (WithoutEndpoints, "the dispatcher WithoutEndpoints could not be made"),
        (Silent(), "the dispatcher answered None for 1 blocks"),
        (lambda blocks, endpoints: None, "the dispatcher answered None for 3 blocks"),
        (lambda blocks, endpoints: "ps0:6170", "the dispatcher answered 'ps0:6170'"),
    ],
)
def test_a_dispatcher_that_does_not_answer_is_refused(split_method: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        placed(split_method)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: transpiled(2, trainers=2), "trainer_id is 2, but the job has 2 trainer"),
        (lambda: transpiled(-1), "trainer_id is -1"),
        (lambda: transpiled(trainers=0), "the job has 0 trainers"),
        (lambda: transpiled(pservers="ps0:6170,ps0:6170"), "ps0:6170 is listed twice"),
        (lambda: transpiled(pservers=","), "no pserver endpoints"),
        (lambda: transpiled(pservers=6170), "pservers is 6170, expected endpoints"),
        (lambda: transpiled(pservers=[6170]), "pservers is [6170], expected endpoints"),
        (lambda: transpiled("0"), "trainer_id is '0', expected an integer"),
        (lambda: transpiled(0.5), "trainer_id is 0.5, expected an integer"),
        (lambda: transpiled(trainers=2.0), "trainers is 2.0, expected an integer"),
        (lambda: transpiled().get_trainer_program("False"), "wait_port is 'False'"),
        (lambda: DistributeTranspiler().transpile("x", 0, ENDPOINTS), "program is of type str"),
        (
            lambda: DistributeTranspiler().transpile(ctr_program(), 0, ENDPOINTS, mode="geo"),
            "mode is 'geo', which is no communication mode",
        ),
        (lambda: transpiled().get_pserver_program(6170), "6170 is no pserver"),
        (lambda: transpiled(pservers="ps0"), "'ps0', which is not host:port"),
        (lambda: transpiled(pservers="ps0:0"), "'ps0:0', which is not host:port"),
        (lambda: transpiled(pservers=["ps0:six"]), "'ps0:six', which is not host:port"),
        (lambda: transpiled().get_pserver_program("ps2:6170"), "'ps2:6170' is no pserver"),
        (lambda: DistributeTranspiler().get_trainer_program(), "before it was given one"),
    ],
)
def test_arguments_that_no_job_can_have_are_refused(call: Callable[[], Any], reason: str) -> None:
    with pytest.raises(PsrtError) as caught:
        call()

    assert reason in caught.value.message


def test_a_misspelt_endpoint_names_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        transpiled().get_pserver_program("ps1:6171")

    assert caught.value.hint == "Did you mean ps1:6170?"


def test_a_program_without_minimize_is_refused() -> None:
    with psrt.program() as program:
        layers.fc(layers.data("x", [2]), 1)

    with pytest.raises(ProgramError, match="trains nothing") as caught:
        DistributeTranspiler().transpile(program, 0, ENDPOINTS, 1)
    assert "minimize" in caught.value.hint


def test_endpoints_may_be_written_with_blanks() -> None:
    assert endpoints_of(" a:1 , [::1]:2,") == ["a:1", "[::1]:2"]


def test_the_document_explains_every_field_of_the_config() -> None:
    text = page("reference/transpiler.md")

    missing = [f.name for f in fields(DistributeTranspilerConfig) if f"`{f.name}`" not in text]

    assert missing == []
