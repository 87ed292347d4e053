"""The transpiler by Fluid's signatures, and a trainer and its pservers in one process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.specs.modes import Async, Geo, HalfAsync, Sync
from psrt.fluid.running.paddle_files import read_arrays
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from tests.support.live_pservers import free_port
from tests.unit.fluid.models import MODELS, STEPS

ENDPOINTS = "127.0.0.1:6170,127.0.0.1:6171"


def transpiled(config: Any = None, **arguments: Any) -> fluid.DistributeTranspiler:
    MODELS["word2vec"][0]()
    transpiler = fluid.DistributeTranspiler(config)
    transpiler.transpile(0, **{"pservers": ENDPOINTS, "trainers": 2, **arguments})
    return transpiler


def test_the_program_that_was_transpiled_is_the_trainers() -> None:
    program = transpiled().get_trainer_program()

    assert program is fluid.default_main_program()
    assert program.job.plan.endpoints == tuple(ENDPOINTS.split(","))
    assert (program.job.trainer_id, program.job.trainers) == (0, 2)
    assert all(op.role != "optimize" for op in program.job.program.ops)


def test_a_pserver_has_a_program_and_a_startup_program_that_does_nothing() -> None:
    transpiler = transpiled()

    program, startup = transpiler.get_pserver_programs("127.0.0.1:6171")

    assert program.job.endpoint == "127.0.0.1:6171"
    assert {spec.name for spec in program.job.specs} >= {"shared_w"}
    assert fluid.Executor().run(startup) == []
    assert transpiler.get_startup_program("127.0.0.1:6171", program).initialises == []
    assert transpiler.get_startup_program() is fluid.default_startup_program()


def config_of(**fields: Any) -> fluid.DistributeTranspilerConfig:
    config = fluid.DistributeTranspilerConfig()
    for name, value in fields.items():
        setattr(config, name, value)
    return config


@pytest.mark.parametrize(
    ("config", "arguments", "mode"),
    [
        (None, {}, Sync()),
        (None, {"sync_mode": False}, Async()),
        (config_of(sync_mode=False), {}, Async()),
        (config_of(half_async=True), {"sync_mode": False}, HalfAsync()),
        (config_of(geo_sgd_mode=True, geo_sgd_need_push_nums=7), {"sync_mode": False}, Geo(7)),
    ],
)
def test_the_mode_is_what_config_and_arguments_say(
    config: Any, arguments: dict[str, Any], mode: object
) -> None:
    assert transpiled(config, **arguments).get_trainer_program().job.mode == mode


def test_slicing_and_placement_are_arguments_too() -> None:
    class ToTheLast(fluid.transpiler.PSDispatcher):
        def dispatch(self, varlist: Any) -> list[str]:
            return [self.eps[-1] for _ in varlist]

    plan = transpiled(slice_var_up=False, split_method=ToTheLast).get_trainer_program().job.plan

    dense = [spec for spec in plan.specs_for("127.0.0.1:6170") if not hasattr(spec, "width")]
    assert dense == []
    assert fluid.transpiler.HashName in ("HashName",)


def test_collectives_are_refused_with_what_psrt_offers() -> None:
    config = config_of(mode="nccl2")

    with pytest.raises(ConfigError, match=r'mode = "nccl2" .*ParallelExecutor'):
        transpiled(config, trainers="127.0.0.1:6170,127.0.0.1:6171", current_endpoint="")
    with pytest.raises(ConfigError, match=r"trainers is '127.0.0.1:6170', which names endpoints"):
        fluid.DistributeTranspiler().transpile(0, trainers="127.0.0.1:6170")


def test_whether_a_trainer_waits_for_ports_may_be_said_when_it_is_asked_for() -> None:
    transpiler = transpiled()

    assert transpiler.get_trainer_program().job.wait_port
    assert not transpiler.get_trainer_program(wait_port=False).job.wait_port


def test_a_compiled_program_is_not_transpiled() -> None:
    MODELS["word2vec"][0]()
    compiled = fluid.CompiledProgram(fluid.default_main_program())

    with pytest.raises(ProgramError, match="program is of type CompiledProgram"):
        fluid.DistributeTranspiler().transpile(0, compiled)


def test_asking_before_transpiling_is_refused() -> None:
    with pytest.raises(ProgramError, match="before it was given one"):
        fluid.DistributeTranspiler().get_trainer_program()


# --- a whole job in this process ---


@contextmanager
def serving(transpiler: fluid.DistributeTranspiler, endpoints: list[str]) -> Iterator[None]:
    """Pservers of a job, each `exe.run` of its program, until its trainers have completed."""
    programs = [transpiler.get_pserver_program(endpoint) for endpoint in endpoints]
    threads = [threading.Thread(target=fluid.Executor().run, args=(part,)) for part in programs]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()


def trained_here(model: str) -> dict[str, np.ndarray]:
    build, _, make_feeds = MODELS[model]
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        build()
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        for feed in make_feeds():
            exe.run(feed=feed)
        names = [p.name for p in fluid.default_main_program().all_parameters()]
        return {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in names}


@pytest.mark.parametrize("model", ["word2vec", "clicks"])
def test_one_trainer_by_two_pservers_ends_where_training_here_does(
    model: str, tmp_path: Path
) -> None:
    expected = trained_here(model)
    build, _, make_feeds = MODELS[model]
    loss = build()
    test = fluid.default_main_program().clone(for_test=True)
    endpoints = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers=",".join(endpoints), trainers=1)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())

    with serving(transpiler, endpoints):
        program = transpiler.get_trainer_program()
        for feed in make_feeds():
            (value,) = exe.run(program, feed=feed, fetch_list=[loss.name])
        (tested,) = exe.run(test, feed=make_feeds()[0], fetch_list=[loss])
        fluid.io.save_params(exe, tmp_path, program)
        exe.close()

    assert value.shape == tested.shape == (1,)
    assert len(list(tmp_path.iterdir())) == len(expected)
    for name, values in expected.items():
        saved = read_arrays(tmp_path, [name], None)[name]
        np.testing.assert_allclose(saved, values, rtol=1e-6, atol=1e-7)


def test_a_run_in_sync_costs_one_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    build, _, make_feeds = MODELS["clicks"]
    loss = build()
    endpoint, methods = f"127.0.0.1:{free_port()}", list[Method]()
    call = Client.call

    def counted(self: Client, method: Method, *args: Any, **options: Any) -> Any:
        methods.append(method)
        return call(self, method, *args, **options)

    monkeypatch.setattr(Client, "call", counted)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers=endpoint, trainers=1)
    exe = fluid.Executor()
    with serving(transpiler, [endpoint]):
        program, (first, *later) = transpiler.get_trainer_program(), make_feeds()
        exe.run(program, feed=first, fetch_list=[loss])
        methods.clear()

        for feed in later:
            exe.run(program, feed=feed, fetch_list=[loss])
        sent = list(methods)
        exe.close()

    assert sent == [Method.EXCHANGE] * len(later)


def test_a_dataset_trains_by_pservers_with_replicas() -> None:
    class Batches:
        def batches(self) -> Any:
            return iter(make_feeds())

    build, _, make_feeds = MODELS["clicks"]
    loss = build()
    endpoint = f"127.0.0.1:{free_port()}"
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers=endpoint, trainers=1, sync_mode=False)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    program = transpiler.get_trainer_program()
    compiled = fluid.CompiledProgram(program).with_data_parallel(loss.name, places=2)
    handled: list[Any] = []

    with serving(transpiler, [endpoint]):
        exe.train_from_dataset(
            compiled, Batches(), fetch_list=[loss], print_period=1, fetch_handler=handled.append
        )
        with pytest.raises(ProgramError, match="connected to its pservers with 2 replicas"):
            exe.run(program, feed=make_feeds()[0])
        exe.close()

    assert len(handled) == STEPS


def test_a_distributed_table_is_refused_where_there_are_no_pservers() -> None:
    ids = fluid.layers.data("ids", [1], dtype="int64")
    rows = fluid.layers.embedding(ids, [10, 2], is_sparse=True, is_distributed=True)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(rows))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())

    with pytest.raises(ProgramError, match="distributed"):
        exe.run(feed={"ids": np.array([[1 << 40]])})
