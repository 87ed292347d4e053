"""`fleet` from the first call to the last, and its errors for calls out of order.

Server and worker are two fleets of one process here, over programs built alike; real processes are
in tests/seeds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Sync
from psrt.fluid.incubate.fleet.base.role_maker import Role, UserDefinedRoleMaker
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import (
    DistributedTranspiler,
    fleet,
)
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    StrategyFactory,
)
from psrt.fluid.running.paddle_files import read_arrays
from tests.support.scripts import endpoints

DEADLINE_S = 60.0


def network() -> fluid.Variable:
    x = fluid.layers.data(name="x", shape=[4], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    predicted = fluid.layers.fc(input=x, size=1)
    loss: fluid.Variable = fluid.layers.mean(
        fluid.layers.square_error_cost(input=predicted, label=y)
    )
    return loss


def of_role(role: Role, pservers: list[str], workers: int = 1, index: int = 0) -> Any:
    made = DistributedTranspiler()
    made.init(UserDefinedRoleMaker(index, role, workers, pservers))
    return made


def minimized(made: Any, strategy: Any = None) -> fluid.Variable:
    loss = network()
    made.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss)
    return loss


@contextmanager
def served(pservers: list[str], strategy: Any = None) -> Iterator[list[threading.Thread]]:
    """A server for each endpoint, in a thread; all must end by themselves."""
    threads = []
    for index in range(len(pservers)):
        server = of_role(Role.SERVER, pservers, index=index)
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            minimized(server, strategy)
        server.init_server()
        threads.append(threading.Thread(target=server.run_server, daemon=True))
    for thread in threads:
        thread.start()
    yield threads
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "a server still runs though its worker has stopped"


def batch() -> dict[str, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    return {"x": x, "y": x.sum(axis=1, keepdims=True)}


# --- the whole flow -------------------------------------------------------------------------------


def test_a_worker_learns_as_a_program_alone_would() -> None:
    alone = [0.0] * 5
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        loss = network()
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        alone = [float(exe.run(feed=batch(), fetch_list=[loss])[0][0]) for _ in range(5)]
    pservers = endpoints(2)

    with served(pservers):
        worker = of_role(Role.WORKER, pservers)
        loss = minimized(worker)
        exe = fluid.Executor()
        worker.init_worker()
        exe.run(worker.startup_program)
        program = worker.main_program
        together = [float(exe.run(program, batch(), [loss])[0][0]) for _ in range(5)]
        worker.barrier_worker()
        worker.stop_worker()

    np.testing.assert_allclose(together, alone, rtol=1e-5)


def test_a_network_that_a_loader_feeds_is_served_and_trained() -> None:
    pservers = endpoints(1)
    server = of_role(Role.SERVER, pservers)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        fed_by_loader(server)
    server.init_server()
    serving = threading.Thread(target=server.run_server, daemon=True)
    serving.start()

    worker = of_role(Role.WORKER, pservers)
    loss, loader = fed_by_loader(worker)
    loader.set_batch_generator(lambda: iter([[batch()["x"], batch()["y"]]] * 3))
    exe = fluid.Executor()
    worker.init_worker()
    exe.run(worker.startup_program)
    loader.start()
    losses = [float(exe.run(worker.main_program, fetch_list=[loss])[0][0]) for _ in range(3)]
    with pytest.raises(fluid.core.EOFException):
        exe.run(worker.main_program, fetch_list=[loss])
    worker.stop_worker()
    serving.join(DEADLINE_S)

    assert not serving.is_alive()
    assert losses[2] < losses[0]


def fed_by_loader(made: Any) -> tuple[fluid.Variable, Any]:
    loss = minimized(made)
    block = fluid.default_main_program().global_block()
    loader = fluid.io.DataLoader.from_generator([block.var("x"), block.var("y")], 4, iterable=False)
    return loss, loader


def test_a_worker_saves_what_the_servers_hold(tmp_path: Path) -> None:
    pservers = endpoints(1)
    with served(pservers):
        worker = of_role(Role.WORKER, pservers)
        loss = minimized(worker)
        exe = fluid.Executor()
        exe.run(worker.startup_program)
        exe.run(worker.main_program, batch(), [loss])

        worker.save_persistables(exe, str(tmp_path / "vars"))
        worker.save_inference_model(exe, str(tmp_path / "model"), ["x", "y"], [loss])
        worker.stop_worker()

    trained = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    saved = read_arrays(tmp_path / "vars", ["fc_0.w_0"], None)["fc_0.w_0"]
    np.testing.assert_array_equal(saved, trained)
    program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "model"), exe)
    (found,) = exe.run(program, batch(), fetches)
    errors = batch()["x"] @ trained + fluid_bias() - batch()["y"]
    assert feeds == ["x", "y"]
    np.testing.assert_allclose(found, [np.mean(errors**2)], rtol=1e-5)


def fluid_bias() -> np.ndarray:
    return np.array(fluid.global_scope().find_var("fc_0.b_0").get_tensor())


def test_a_worker_without_data_still_ends_the_job() -> None:
    pservers = endpoints(1)

    with served(pservers):
        worker = of_role(Role.WORKER, pservers)
        minimized(worker)
        worker.init_worker()
        worker.stop_worker()


# --- strategies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize(
    ("strategy", "mode"),
    [
        (None, Sync()),
        (StrategyFactory.create_half_async_strategy(), HalfAsync()),
        (StrategyFactory.create_async_strategy(), Async(thread_pool_size=5)),
        (StrategyFactory.create_geo_strategy(7), Geo(7)),
        (fluid.DistributeTranspilerConfig(sync_mode=False), Async(thread_pool_size=5)),
        (fluid.DistributeTranspilerConfig(sync_mode=False, half_async=True), HalfAsync()),
        (fluid.DistributeTranspilerConfig(), Sync()),
        (
            fluid.DistributeTranspilerConfig(
                sync_mode=False, geo_sgd_mode=True, geo_sgd_need_push_nums=9
            ),
            Geo(9),
        ),
    ],
)
def test_the_strategy_or_a_config_decides_the_mode_of_both_parts(
    role: Role, strategy: Any, mode: CommunicationMode
) -> None:
    made = of_role(role, ["127.0.0.1:6170"])

    minimized(made, strategy)

    assert made.main_program.job.mode == mode


def test_parts_carry_the_settings_of_the_program_config_and_the_deadline() -> None:
    strategy = StrategyFactory.create_sync_strategy()
    strategy.set_program_config({"slice_var_up": False, "min_block_size": 1})
    strategy.set_trainer_runtime_config({"rpc_deadline": 5000})
    worker = of_role(Role.WORKER, ["127.0.0.1:6170", "127.0.0.1:6171"])

    minimized(worker, strategy)

    job = worker.main_program.job
    assert sorted(block.spec.name for block in job.plan.blocks) == ["fc_0.b_0", "fc_0.w_0"]
    assert worker.main_program.call_timeout_s == 5.0


# --- who there is ---------------------------------------------------------------------------------


def test_fleet_answers_for_its_role_maker() -> None:
    worker = of_role(Role.WORKER, ["a:1", "b:1"], workers=3, index=2)
    server = of_role(Role.SERVER, ["a:1", "b:1"], workers=3, index=1)

    assert (worker.is_worker(), worker.is_server(), worker.is_first_worker()) == (
        True,
        False,
        False,
    )
    assert (worker.worker_index(), worker.worker_num(), worker.server_num()) == (2, 3, 2)
    assert server.server_index() == 1
    assert server.server_endpoints() == ["a:1", "b:1"]
    assert server.server_endpoints(to_string=True) == "a:1,b:1"
    assert worker.worker_endpoints(to_string=True) == ""


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [0, 1, 4, 5, 12])
def test_files_are_split_into_neighbours_as_evenly_as_can_be(workers: int, count: int) -> None:
    files = [f"part-{number}" for number in range(count)]

    shares = [
        of_role(Role.WORKER, ["a:1"], workers, index).split_files(files) for index in range(workers)
    ]

    assert shares == [list(share) for share in np.array_split(np.array(files, object), workers)]


# --- out of turn ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.is_worker(), r"before fleet\.init"),
        (lambda f: f.distributed_optimizer(fluid.optimizer.SGD(0.1)), r"before fleet\.init"),
        (lambda f: f.main_program, "fleet has no program yet"),
        (lambda f: f.startup_program, "fleet has no program yet"),
    ],
)
def test_what_comes_first_is_named(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        call(DistributedTranspiler())


@pytest.mark.parametrize("name", ["init_worker", "barrier_worker", "stop_worker"])
def test_a_server_is_no_worker(name: str) -> None:
    server = of_role(Role.SERVER, ["127.0.0.1:6170"])
    minimized(server)

    with pytest.raises(ProgramError, match=rf"fleet\.{name} is for workers"):
        getattr(server, name)()


@pytest.mark.parametrize("name", ["init_server", "run_server"])
def test_a_worker_is_no_server(name: str) -> None:
    worker = of_role(Role.WORKER, ["127.0.0.1:6170"])
    minimized(worker)

    with pytest.raises(ProgramError, match=rf"fleet\.{name} is for servers"):
        getattr(worker, name)()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.init("worker"), "was given a str, which is no role maker"),
        (lambda f: f.distributed_optimizer("sgd"), "was given a str"),
        (lambda f: f.distributed_optimizer(fluid.optimizer.SGD(0.1), {}), "a dict as its strategy"),
        (lambda f: f.split_files("part-0"), "expected a list"),
        (lambda f: f.save_persistables(None, "d", "program"), "cannot save a str"),
    ],
)
def test_wrong_arguments_are_refused(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call(of_role(Role.WORKER, ["a:1"]))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("shrink_sparse_table", r"fleet\.shrink\(\) decays scores"),
        ("stop_workers", r"Did you mean stop_worker\?"),
    ],
)
def test_what_fleet_has_not_is_answered_with_what_there_is(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(fleet, name)
