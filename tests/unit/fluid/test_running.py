"""Executors: startup, scopes, shared memory, replicas, datasets, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ConfigError, DataError, ProgramError

ROWS = 6


def regression(optimizer: Any = None) -> fluid.Variable:
    x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [1])
    hidden = fluid.layers.fc(x, 4, act="tanh")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    (optimizer or fluid.optimizer.Adam(0.1)).minimize(loss)
    return loss


def feeds(count: int = 4) -> list[dict[str, Any]]:
    draw = np.random.default_rng(5)
    return [
        {
            "x": draw.normal(size=(ROWS, 3)).astype("f4"),
            "y": draw.normal(size=(ROWS, 1)).astype("f4"),
        }
        for _ in range(count)
    ]


def started() -> fluid.Executor:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def weights() -> np.ndarray:
    return np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())


def test_a_program_whose_startup_did_not_run_is_refused() -> None:
    loss = regression()

    with pytest.raises(ProgramError, match=r"fc_0.w_0, .* no value yet.*default_startup_program"):
        fluid.Executor().run(feed=feeds()[0], fetch_list=[loss])


def test_optimizer_state_belongs_to_the_scope_and_begins_anew_with_the_startup_program() -> None:
    regression()
    exe = started()
    for feed in feeds():
        exe.run(feed=feed)
    once = weights()

    exe.run(fluid.default_startup_program())
    for feed in feeds():
        fluid.Executor().run(feed=feed)

    np.testing.assert_array_equal(weights(), once)


def test_a_program_that_grows_keeps_the_state_of_its_optimizer() -> None:
    def trained(grow: bool) -> np.ndarray:
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.scope_guard(fluid.Scope()),
            fluid.unique_name.guard(),
        ):
            loss = regression()
            exe = started()
            for number, feed in enumerate(feeds()):
                if grow and number == 2:
                    fluid.layers.scale(loss, 2.0)
                exe.run(feed=feed)
            return weights()

    np.testing.assert_array_equal(trained(grow=True), trained(grow=False))


def test_scopes_are_apart_even_while_they_are_empty() -> None:
    regression()
    exe, other = fluid.Executor(), fluid.Scope()

    exe.run(fluid.default_startup_program(), scope=other)

    assert fluid.global_scope().find_var("fc_0.w_0") is None
    assert other.find_var("fc_0.w_0") is not None
    with fluid.scope_guard(other):
        assert fluid.global_scope() is other


def test_a_tensor_of_the_scope_is_read_and_set() -> None:
    regression()
    started()
    tensor = fluid.global_scope().find_var("fc_0.b_0").get_tensor()

    tensor.set(np.arange(4.0), fluid.CPUPlace())

    assert tensor.shape() == [4]
    assert np.array(tensor).tolist() == [0, 1, 2, 3]
    assert np.asarray(tensor).dtype == np.float32
    assert (tensor[1], len(tensor)) == (1.0, 4)


def test_vars_are_fetched_by_variable_or_name_alone_or_listed() -> None:
    loss = regression()
    exe, feed = started(), feeds()[0]
    test = fluid.default_main_program().clone(for_test=True)

    fetched = [exe.run(test, feed=feed, fetch_list=f) for f in (loss, loss.name, [loss])]

    assert len({values[0].item() for values in fetched}) == 1


def test_memory_is_shared_and_whatever_is_fetched_is_right_and_training_goes_on() -> None:
    def trained(optimize: bool) -> tuple[np.ndarray, list[float]]:
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.scope_guard(fluid.Scope()),
            fluid.unique_name.guard(),
        ):
            loss = regression()
            if optimize:
                fluid.memory_optimize(fluid.default_main_program(), skip_grads=True)
            exe = started()
            lists = [[loss], ["fc_0.out"], ["fc_1.out", loss], []]
            steps = zip(feeds(), lists, strict=True)
            values = [exe.run(feed=feed, fetch_list=names) for feed, names in steps]
            return weights(), [float(v.sum()) for step in values for v in step]

    shared, alone = trained(optimize=True), trained(optimize=False)

    np.testing.assert_array_equal(shared[0], alone[0])
    assert shared[1] == alone[1]


def test_what_was_transpiled_is_too_late_for_shared_memory() -> None:
    regression()
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="127.0.0.1:6170", trainers=1)

    for program in (
        transpiler.get_trainer_program(),
        transpiler.get_pserver_program("127.0.0.1:6170"),
    ):
        with pytest.raises(ProgramError, match=r"before transpile; a pserver holds tables"):
            fluid.memory_optimize(program, skip_grads=True)


# --- replicas ---


def test_the_parallel_executor_trains_and_tests_as_the_document_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CPU_NUM", "2")
    loss = regression()
    test_program = fluid.default_main_program().clone(for_test=True)
    exec_strategy = fluid.ExecutionStrategy()
    exec_strategy.num_threads = 2
    build_strategy = fluid.BuildStrategy()
    build_strategy.memory_optimize = True
    build_strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    started()
    train_exe = fluid.ParallelExecutor(
        use_cuda=False,
        loss_name=loss.name,
        main_program=fluid.default_main_program(),
        exec_strategy=exec_strategy,
        build_strategy=build_strategy,
    )
    test_exe = fluid.ParallelExecutor(
        use_cuda=True, main_program=test_program, share_vars_from=train_exe
    )

    for feed in feeds():
        (train_loss,) = train_exe.run([loss.name], feed=feed)
        train_exe.run(["fc_0.out"], feed=feed)
    (test_loss,) = test_exe.run(fetch_list=[loss.name], feed=feed)

    assert train_exe.device_count == test_exe.device_count == 2
    assert train_loss.shape == test_loss.shape == (2,)
    assert test_loss.mean() < train_loss.mean()


def test_parts_of_a_feed_are_one_batch() -> None:
    loss = regression()
    exe, whole = started(), feeds()[0]
    test = fluid.default_main_program().clone(for_test=True)
    parts = [{name: values[at : at + 3] for name, values in whole.items()} for at in (0, 3)]
    compiled = fluid.CompiledProgram(test).with_data_parallel(places=2)

    (of_parts,) = exe.run(compiled, feed=parts, fetch_list=[loss])
    (of_whole,) = exe.run(test, feed=whole, fetch_list=[loss])
    (alone,) = exe.run(test, feed=whole, fetch_list=[loss], return_merged=False)
    (apart,) = exe.run(compiled, feed=parts, fetch_list=[loss], return_merged=False)

    assert of_parts.shape == (2,)
    np.testing.assert_allclose(of_parts.mean(), of_whole[0], rtol=1e-6)
    np.testing.assert_array_equal(of_parts, np.concatenate(apart))
    assert alone.shape == (1,)
    with pytest.raises(DataError, match="parts of a feed do not feed the same"):
        exe.run(compiled, feed=[whole, {"x": whole["x"]}])


def test_a_compiled_program_without_replicas_runs_alone() -> None:
    loss = regression()
    exe, feed = started(), feeds()[0]

    (value,) = exe.run(
        fluid.CompiledProgram(fluid.default_main_program()), feed=feed, fetch_list=[loss]
    )

    assert value.shape == (1,)


def test_what_replicas_share_is_fetched_once() -> None:
    loss = regression()
    started()
    executor = fluid.ParallelExecutor(False, loss.name)
    names = ["fc_0.w_0", "fc_0.w_0@GRAD", loss.name]

    alone = fluid.Executor().run(feed=feeds()[0], fetch_list=names)
    fluid.Executor().run(fluid.default_startup_program())
    shared = executor.run(names, feed=feeds()[0])

    assert [value.shape for value in alone] == [(3, 4), (3, 4), (1,)]
    assert [value.shape for value in shared] == [(3, 4), (3, 4), (executor.device_count,)]
    for one, other in zip(alone[:2], shared, strict=False):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_a_loss_of_data_alone_trains_nothing(caplog: pytest.LogCaptureFixture) -> None:
    loss = fluid.layers.mean(fluid.layers.data("x", [3]))

    assert fluid.optimizer.SGD(0.1).minimize(loss) == ([], [])
    (value,) = fluid.Executor().run(feed={"x": np.ones((2, 3), "f4")}, fetch_list=[loss])

    assert value == 1
    assert "updates nothing: the program has no parameters" in caplog.text


def test_a_loss_that_is_not_there_is_refused() -> None:
    regression()
    compiled = fluid.CompiledProgram(fluid.default_main_program())

    with pytest.raises(ProgramError, match=r"no var mean_0.ot to be its loss. Did you mean mean_0"):
        compiled.with_data_parallel(loss_name="mean_0.ot")


# --- datasets ---


class Batches:
    """A dataset as `train_from_dataset` takes it."""

    def batches(self) -> Iterator[dict[str, Any]]:
        return iter(feeds(6))


def test_a_dataset_trains_and_its_values_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    loss = regression()
    exe = started()
    losses: list[float] = []

    exe.train_from_dataset(
        dataset=Batches(), fetch_list=[loss], fetch_info=["loss"], print_period=3
    )
    trained = weights()
    exe.infer_from_dataset(
        dataset=Batches(),
        fetch_list=[loss],
        print_period=1,
        fetch_handler=lambda values: losses.append(values[0].item()),
    )

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["loss", "loss"]
    assert len(losses) == 6
    np.testing.assert_array_equal(weights(), trained)
    with pytest.raises(ProgramError, match="dataset is need and should be initialized"):
        exe.train_from_dataset()


# --- places ---


def test_places_are_those_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPU_NUM", "3")

    assert fluid.cpu_places() == [fluid.CPUPlace()] * 3
    assert fluid.cpu_places(2) == [fluid.CPUPlace()] * 2
    assert not fluid.is_compiled_with_cuda()
    assert not fluid.core.is_compiled_with_cuda()
    assert fluid.core.get_cuda_device_count() == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda: fluid.CUDAPlace(0),
        lambda: fluid.CUDAPinnedPlace(),
        lambda: fluid.cuda_places(),
        lambda: fluid.ParallelExecutor(use_cuda=True),
    ],
)
def test_a_gpu_is_refused_with_what_psrt_offers(ask: Any) -> None:
    with pytest.raises(ConfigError, match=r"psrt computes on CPUs.*CPU_NUM sets the number of"):
        ask()


def test_trainers_without_pservers_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"trainer 0 of 4, but its program was not transpiled so"):
        fluid.ParallelExecutor(num_trainers=4)
