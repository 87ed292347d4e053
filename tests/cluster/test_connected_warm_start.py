"""Warm starts of connected executors: the transpiler carries the source to real pservers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import ConfigError, ErrorCode, WireError
from psrt.core.specs import CommunicationMode, Geo, Sync, WarmStart
from psrt.graph.program import Program
from psrt.partition.transpiler import DistributeTranspiler, TrainerProgram
from psrt.partition.transpiler_config import DistributeTranspilerConfig
from psrt.pserver.decisions import JobIdentity
from psrt.trainer.training import ConnectedExecutor
from tests.support.live_pservers import LivePserver, live_pservers
from tests.support.saved_cuts import cut_of_pservers

IDS = np.arange(30, dtype=np.int64)


def program_of(optimizer: Any) -> Program:
    with psrt.program(seed=3) as program:
        ids = layers.data("ids", shape=(1,), dtype="int64")
        rows = layers.embedding(ids, (100, 4), is_sparse=True, param="emb")
        hidden = layers.fc(layers.flatten(rows), 8, act="tanh", param="w")
        cost = layers.square_error_cost(layers.fc(hidden, 1), layers.data("y", shape=(1,)))
        optimizer.minimize(layers.mean(cost))
    return program


def part_of(
    pservers: Sequence[LivePserver],
    program: Program,
    warm_start: WarmStart | None = None,
    mode: CommunicationMode | None = None,
    trainer: int = 0,
    trainers: int = 1,
) -> TrainerProgram:
    transpiler = transpiled(pservers, program, warm_start, mode, trainer, trainers)
    return transpiler.get_trainer_program()


def transpiled(
    pservers: Sequence[LivePserver],
    program: Program,
    warm_start: WarmStart | None,
    mode: CommunicationMode | None = None,
    trainer: int = 0,
    trainers: int = 1,
) -> DistributeTranspiler:
    transpiler = DistributeTranspiler(DistributeTranspilerConfig(min_block_size=8))
    endpoints = [pserver.endpoint for pserver in pservers]
    transpiler.transpile(
        program, trainer, endpoints, trainers, mode or Sync(), warm_start=warm_start
    )
    return transpiler


def feed() -> dict[str, np.ndarray]:
    return {"ids": IDS[:, None], "y": np.sin(IDS)[:, None].astype(np.float32)}


def parameters(executor: ConnectedExecutor) -> dict[str, bytes]:
    executor.pull()
    rows = executor.pull_rows({"emb": IDS})["emb"]
    return {"w": executor.scope["w"].tobytes(), "emb": rows.tobytes()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[WarmStart, dict[str, bytes]]:
    """Cuts of two pservers after some steps, and the parameters they have."""
    directory, adagrad = tmp_path_factory.mktemp("cuts"), psrt.optimizer.Adagrad(0.1)
    with (
        live_pservers(2) as pservers,
        ConnectedExecutor(part_of(pservers, program_of(adagrad))) as executor,
    ):
        for _ in range(5):
            executor.run(feed())
        found = parameters(executor)
        cut_of_pservers(directory, *(pserver.service.tables.all() for pserver in pservers))
    return WarmStart(str(directory), strict=True), found


@pytest.mark.parametrize("count", [1, 3])
def test_an_executor_begins_with_the_parameters_of_a_cut_and_trains_on(
    saved: tuple[WarmStart, dict[str, bytes]], count: int
) -> None:
    warm_start, expected = saved
    program, said = program_of(psrt.optimizer.Adam(0.1)), list[str]()
    with (
        live_pservers(count) as pservers,
        ConnectedExecutor(part_of(pservers, program, warm_start), say=said.append) as executor,
    ):
        executor.start()

        assert parameters(executor) == expected
        assert said[0].endswith("5 of 5 parameters, 0 with optimizer state")
        executor.run(feed())
        found = parameters(executor)
        assert all(found[name] != expected[name] for name in expected)


def test_a_pserver_of_a_script_waits_for_its_trainers_to_begin_warm(
    saved: tuple[WarmStart, dict[str, bytes]],
) -> None:
    warm_start, expected = saved
    program = program_of(psrt.optimizer.Adam(0.1))
    with live_pservers(1) as pservers:
        transpiler = transpiled(pservers, program, warm_start)
        part = transpiler.get_pserver_program(pservers[0].endpoint)
        pservers[0].service.expect(JobIdentity("transpiled", part.plan.hash(), 1, part.mode), ())
        with ConnectedExecutor(transpiler.get_trainer_program()) as executor:
            assert parameters(executor) == expected


def test_trainers_with_other_warm_starts_are_refused(
    saved: tuple[WarmStart, dict[str, bytes]],
) -> None:
    warm_start, _ = saved
    program = program_of(psrt.optimizer.Adam(0.1))
    with live_pservers(1) as pservers:
        first = ConnectedExecutor(part_of(pservers, program, warm_start, trainers=2))
        second = ConnectedExecutor(part_of(pservers, program, None, None, 1, 2))
        first.start()

        with pytest.raises(WireError) as refused:
            second.start()

        assert refused.value.code is ErrorCode.JOB_MISMATCH
        first.close()


def test_geo_has_no_warm_start(saved: tuple[WarmStart, dict[str, bytes]]) -> None:
    warm_start, _ = saved
    program = program_of(psrt.optimizer.Sgd(0.1))
    with live_pservers(1) as pservers:
        executor = ConnectedExecutor(part_of(pservers, program, warm_start, Geo()))

        with pytest.raises(ConfigError, match="mode geo has no warm start"):
            executor.start()
