"""Servers begin with parameters that were saved, by PaddlePaddle's files or as a model."""

from __future__ import annotations

import gc
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ConfigError, DataError, ProgramError
from psrt.fluid.incubate.fleet.base.role_maker import Role
from tests.unit.fluid.fleet.test_fleet import DEADLINE_S, endpoints, of_role

STEPS, SAVED_AFTER = 6, 3


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with own_programs():
        yield


@contextmanager
def own_programs() -> Iterator[None]:
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        yield


def loss_of(is_distributed: bool = False) -> Any:
    ids = fluid.layers.data(name="ids", shape=[1], dtype="int64")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    rows = fluid.layers.embedding(ids, [50, 4], is_sparse=True, is_distributed=is_distributed)
    predicted = fluid.layers.fc(input=rows, size=1)
    return fluid.layers.mean(fluid.layers.square_error_cost(input=predicted, label=y))


def batch(step: int) -> dict[str, np.ndarray]:
    ids = np.random.default_rng(step).integers(0, 50, (16, 1))
    return {"ids": ids, "y": (ids % 3).astype(np.float32)}


def trained_alone(steps: range, save: Path | None = None) -> list[float]:
    """Losses of steps in this process; saves the parameters at the end."""
    with own_programs():
        loss = loss_of()
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        losses = [float(exe.run(feed=batch(n), fetch_list=[loss])[0]) for n in steps]
        if save is not None:
            fluid.io.save_persistables(exe, str(save), fluid.default_main_program())
    return losses


def trained_by_servers(
    steps: range, begin_with: Path, is_distributed: bool = False, save: Path | None = None
) -> list[float]:
    """Losses of a worker's steps over two servers that begin with what was saved."""
    pservers, threads = endpoints(2), []
    for index in range(2):
        server = of_role(Role.SERVER, pservers, index=index)
        with own_programs():
            server.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss_of(is_distributed))
        server.init_server(str(begin_with) if begin_with.name else None)
        threads.append(threading.Thread(target=server.run_server, daemon=True))
    for thread in threads:
        thread.start()
    with own_programs():
        worker, loss = of_role(Role.WORKER, pservers), loss_of(is_distributed)
        worker.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(loss)
        exe = fluid.Executor()
        exe.run(worker.startup_program)
        losses = [float(exe.run(worker.main_program, batch(n), [loss])[0]) for n in steps]
        if save is not None:
            worker.save_persistables(exe, str(save))
        worker.stop_worker()
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "a server still runs though its worker has stopped"
    return losses


def test_servers_go_on_with_what_a_program_of_one_process_has_saved(tmp_path: Path) -> None:
    whole = trained_alone(range(STEPS))
    trained_alone(range(SAVED_AFTER), save=tmp_path)

    rest = trained_by_servers(range(SAVED_AFTER, STEPS), tmp_path)

    np.testing.assert_allclose(rest, whole[SAVED_AFTER:], rtol=1e-5)


def test_servers_go_on_with_what_a_worker_has_saved_of_distributed_tables(tmp_path: Path) -> None:
    model = tmp_path / "model"
    whole = trained_by_servers(range(STEPS), Path(), is_distributed=True)
    trained_by_servers(range(SAVED_AFTER), Path(), is_distributed=True, save=model)

    rest = trained_by_servers(range(SAVED_AFTER, STEPS), model, is_distributed=True)

    np.testing.assert_allclose(rest, whole[SAVED_AFTER:], rtol=1e-5)


def pserver_program(mode: str = "") -> Any:
    loss = loss_of()
    fluid.optimizer.SGD(0.1).minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.geo_sgd_mode = mode == "geo"
    config.sync_mode = mode != "geo"
    transpiler = fluid.DistributeTranspiler(config)
    transpiler.transpile(0, pservers="127.0.0.1:6174", trainers=1)
    return transpiler.get_pserver_program("127.0.0.1:6174")


def test_persistables_are_loaded_into_the_program_of_a_pserver(tmp_path: Path) -> None:
    trained_alone(range(1), save=tmp_path)
    program = pserver_program()

    fluid.io.load_persistables(fluid.Executor(), str(tmp_path), program)

    (source,) = re.findall(r'"source":\s*"([^"]*)"', program.serve_settings["warm_start"])
    assert (Path(source) / "manifest.json").is_file()
    del program
    gc.collect()
    assert not Path(source).parent.exists()


def test_a_directory_that_lacks_a_parameter_is_no_beginning(tmp_path: Path) -> None:
    trained_alone(range(1), save=tmp_path)
    (tmp_path / "fc_0.b_0").unlink()

    with pytest.raises(DataError, match=r"fc_0\.b_0"):
        fluid.io.load_persistables(fluid.Executor(), str(tmp_path), pserver_program())


def test_a_trainer_loads_nothing(tmp_path: Path) -> None:
    pserver_program()

    with pytest.raises(ProgramError, match="the program of each pserver"):
        fluid.io.load_persistables(fluid.Executor(), str(tmp_path))


def test_in_mode_geo_trainers_would_not_begin_with_it(tmp_path: Path) -> None:
    trained_alone(range(1), save=tmp_path)
    program = pserver_program("geo")
    fluid.io.load_persistables(fluid.Executor(), str(tmp_path), program)

    with pytest.raises(ConfigError, match="mode geo has no warm start"):
        fluid.Executor().run(program)
