"""Values as Fluid returns and takes them; networks that are built twice; loaders of replicas."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ConfigError, DataError, ProgramError
from psrt.core.tensors import Ragged
from psrt.fluid.running import TimedReport

layers = fluid.layers
FEED = {"x": np.ones((8, 4), "f4"), "y": np.ones((8, 1), "f4")}


def line() -> tuple[fluid.Variable, fluid.Variable]:
    x, y = layers.data("x", [4]), layers.data("y", [1])
    predicted = layers.fc(x, 1)
    loss = layers.mean(layers.square_error_cost(predicted, y))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return predicted, loss


def started() -> fluid.Executor:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


# --- one element ----------------------------------------------------------------------------------


def test_a_loss_converts_as_a_number_with_every_numpy() -> None:
    _, loss = line()
    (value,) = started().run(feed=FEED, fetch_list=[loss])

    assert value.shape == (1,)
    assert f"{value:.3f}" == "%.3f" % value == format(float(value), ".3f")  # noqa: UP031
    assert int(value * 0 + 3) == 3
    assert type(value.mean()) is np.float32
    assert type(np.concatenate([value, value]).sum()) is np.float32
    assert type(pickle.loads(pickle.dumps(value))) is np.ndarray
    assert str(value) == str(np.array(value))


def test_values_are_tensors_where_no_arrays_are_wanted() -> None:
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    out = layers.cast(words, "float32")
    feed = {"words": fluid.create_lod_tensor([[1, 2], [3]], [[2, 1]])}

    (lists,) = started().run(feed=feed, fetch_list=[out], return_numpy=False)

    assert (lists.lod(), lists.shape()) == ([[0, 2, 3]], [3, 1])
    assert np.array(lists).ravel().tolist() == [1, 2, 3]


# --- feeds ----------------------------------------------------------------------------------------


def test_a_tensor_with_lengths_feeds_plain_rows_and_an_array_feeds_lists_of_one() -> None:
    plain = layers.data("plain", [1], dtype="int64")
    lists = layers.data("lists", [1], dtype="int64", lod_level=1)
    outs = [layers.cast(plain, "float32"), layers.cast(lists, "float32")]
    tensor = fluid.create_lod_tensor([[3], [4]], [[1, 1]])

    rows, ragged = started().run(
        feed={"plain": tensor, "lists": np.array([[5], [6]])}, fetch_list=outs
    )

    assert rows.tolist() == [[3], [4]]
    assert ragged.offsets.tolist() == [0, 1, 2]
    assert ragged.values.tolist() == [5, 6]


def test_what_no_op_reads_needs_no_value_and_what_is_unknown_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    x = layers.data("x", [2])
    layers.data("beside", [3], dtype="int64")
    layers.data("lists", [1], dtype="int64", lod_level=1)
    total = layers.reduce_sum(x)

    (value,) = started().run(feed={"x": np.ones((3, 2), "f4"), "other": [1]}, fetch_list=[total])

    assert value.tolist() == [6]
    assert "The feed of other was left out" in caplog.text


def test_a_list_of_one_id_stands_beside_whole_examples() -> None:
    ids = layers.data("ids", [1], dtype="int64", lod_level=1)
    dense = layers.data("dense", [3])
    attr = fluid.ParamAttr("table", fluid.initializer.Constant(2.0))
    joined = layers.concat([layers.embedding(ids, [9, 2], param_attr=attr), dense], axis=1)
    loss = layers.mean(layers.fc(joined, 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe, rows = started(), np.ones((2, 3), "f4")

    (value,) = exe.run(feed={"ids": Ragged.of([[1], [4]]), "dense": rows}, fetch_list=[joined])

    assert joined.shape == (-1, 5)
    assert value.tolist() == [[2, 2, 1, 1, 1]] * 2
    with pytest.raises(DataError, match=r"Example 0 of .* has 2 elements"):
        exe.run(feed={"ids": Ragged.of([[1, 4], []]), "dense": rows}, fetch_list=[joined])


# --- programs -------------------------------------------------------------------------------------


def test_a_network_built_twice_with_one_seed_begins_with_the_same_values() -> None:
    found = []
    for _ in range(2):
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 7
        with fluid.program_guard(main, startup):
            layers.fc(layers.fc(layers.data("x", [4]), 3), 2)
        fluid.Executor().run(startup)
        scope, parameters = fluid.global_scope(), main.all_parameters()
        found.append([np.array(scope.find_var(p.name).get_tensor()) for p in parameters])

    for first, second in zip(*found, strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(found[0][0][:3, :2], found[0][2])


def test_a_data_var_may_be_declared_again_as_it_is() -> None:
    first = layers.data("x", [4])

    assert layers.data("x", [4]) is first
    assert first.is_data
    with pytest.raises(ProgramError, match="a var named x already"):
        layers.data("x", [5])


def test_the_first_layer_decides_how_a_shared_parameter_begins() -> None:
    ids = layers.data("ids", [1], dtype="int64")
    ones = fluid.ParamAttr("table", fluid.initializer.Constant(1.0))
    layers.embedding(ids, [3, 2], param_attr=ones)
    again = layers.embedding(ids, [3, 2], param_attr=fluid.ParamAttr("table", learning_rate=1.0))

    (value,) = started().run(feed={"ids": np.array([[1]])}, fetch_list=[again])

    assert value.tolist() == [[1, 1]]


def test_a_tensor_stands_for_the_var_that_was_assigned_last() -> None:
    x = layers.data("x", [2])
    out = layers.create_tensor("float32", name="out")
    with pytest.raises(ProgramError, match="No op has written out yet"):
        layers.scale(out, 2.0)
    layers.assign(x, output=out)
    doubled = layers.scale(out, 2.0)
    layers.assign(doubled, output=out)

    values = started().run(feed={"x": np.ones((1, 2), "f4")}, fetch_list=[out, "out", doubled])

    assert [value.tolist() for value in values] == [[[2, 2]]] * 3


def test_a_counter_counts_runs_and_a_condition_is_compared() -> None:
    layers.data("x", [1])
    counter = layers.autoincreased_step_counter(begin=5, step=2)
    assert layers.autoincreased_step_counter() is counter
    limit = layers.fill_constant([1], "int64", 8)
    below = layers.less_than(counter, limit)
    exe = started()

    found = [exe.run(feed={"x": FEED["y"]}, fetch_list=[counter, below]) for _ in range(3)]

    assert [(int(c), bool(b[0])) for c, b in found] == [(5, True), (7, True), (9, False)]
    exe.run(fluid.default_startup_program())
    assert int(exe.run(feed={"x": FEED["y"]}, fetch_list=[counter])[0]) == 5


def test_accuracy_counts_and_of_one_column_a_label_but_0_is_wrong() -> None:
    scores, label = layers.data("scores", [1]), layers.data("label", [1], dtype="int64")
    total, right = layers.create_tensor("int64"), layers.create_tensor("int64")
    share = layers.accuracy(scores, label, correct=right, total=total)
    feed = {"scores": np.ones((4, 1), "f4"), "label": np.array([[1], [0], [0], [1]])}

    values = started().run(feed=feed, fetch_list=[share, right, total])

    assert [float(value) for value in values] == [0.5, 2, 4]


def test_a_rate_may_be_a_global_var() -> None:
    x = layers.data("x", [4])
    rate = layers.create_global_var([1], 0.5, "float32", persistable=True)
    loss = layers.mean(layers.fc(x, 1, bias_attr=False))
    fluid.optimizer.SGD(learning_rate=rate).minimize(loss)
    exe, name = started(), fluid.default_main_program().all_parameters()[0].name

    before = np.array(fluid.global_scope().find_var(name).get_tensor())
    exe.run(feed={"x": np.ones((2, 4), "f4")})
    after = np.array(fluid.global_scope().find_var(name).get_tensor())

    np.testing.assert_allclose(before - after, 0.5)


def test_a_program_without_ops_runs_over_a_dataset(tmp_path: Path) -> None:
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    (tmp_path / "lines").write_text("1 5\n2 5 6\n")
    dataset = fluid.DatasetFactory().create_dataset("FileInstantDataset")
    dataset.set_use_var([words])
    dataset.set_hdfs_config("name", "user")
    exe = started()

    exe.train_from_dataset(fluid.default_main_program(), dataset)  # of no files, as in Fluid
    dataset.set_filelist([str(tmp_path / "lines")])
    exe.train_from_dataset(fluid.default_main_program(), dataset)
    (feeds,) = fluid.io.DataLoader.from_dataset(dataset, fluid.cpu_places(1))

    assert feeds[0]["words"].lod() == [[0, 1, 3]]
    assert dataset.dataset.get_hdfs_config() == ("name", "user")
    with pytest.raises(RuntimeError, match="dataset is need and should be initialized"):
        exe.train_from_dataset(fluid.default_main_program(), None)


def test_a_parameter_beside_the_loss_stays_where_a_program_is_transpiled() -> None:
    line()
    layers.fc(fluid.default_main_program().variable("x"), 3, name="aside")

    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="127.0.0.1:6170", trainers=1)

    aside = fluid.default_main_program().graph.parameters["aside.w_0"]
    assert not aside.trainable
    assert transpiler.get_pserver_program("127.0.0.1:6170").job.specs


# --- loaders --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batches", "drop_last", "runs"), [(8, True, 4), (5, True, 2), (5, False, 3)]
)
def test_each_replica_takes_a_batch_of_the_loader(batches: int, drop_last: bool, runs: int) -> None:
    _, loss = line()
    program = fluid.default_main_program()
    vars = [program.variable(name) for name in FEED]
    loader = fluid.io.DataLoader.from_generator(vars, 4, iterable=False, drop_last=drop_last)
    loader.set_batch_generator(lambda: iter([tuple(FEED.values())] * batches))
    exe = started()
    compiled = fluid.CompiledProgram(program).with_data_parallel(loss.name, places=2)

    def trained() -> int:
        done = 0
        with contextlib.suppress(fluid.core.EOFException):
            for done in itertools.count():  # noqa: B007 (its last value is the result)
                exe.run(compiled, fetch_list=[loss])
        return done

    loader.start()
    counted = trained()
    loader.reset()

    assert counted == runs


def test_a_py_reader_feeds_training_and_tests_by_parallel_executors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CPU_NUM", "2")

    def network() -> tuple[Any, fluid.Variable]:
        reader = layers.py_reader(4, [(-1, 2), (-1, 1)], ["float32", "int64"], name="reader")
        x, label = layers.read_file(layers.double_buffer(reader))
        cost = layers.cross_entropy(layers.fc(x, 2, act="softmax"), label)
        return reader, layers.mean(cost)

    def examples() -> Iterator[list[tuple[list[float], int]]]:
        for at in range(4):
            yield [([at, 1.0], at % 2)] * 3

    main, test, startup = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        reader, loss = network()
        fluid.optimizer.SGD(0.1).minimize(loss)
    with fluid.program_guard(test, fluid.Program()), fluid.unique_name.guard():
        tester, test_loss = network()
    fluid.Executor().run(startup)
    train_exe = fluid.ParallelExecutor(loss_name=loss.name, main_program=main)
    test_exe = fluid.ParallelExecutor(main_program=test, share_vars_from=train_exe)

    for exe, of, fetched in ((train_exe, reader, loss), (test_exe, tester, test_loss)):
        of.decorate_paddle_reader(lambda: examples())
        of.start()
        values = [exe.run(fetch_list=[fetched.name])[0].mean() for _ in range(2)]
        with pytest.raises(fluid.core.EOFException):
            exe.run(fetch_list=[fetched.name])
        of.reset()
        assert all(0 < value < 5 for value in values)
        assert not exe._need_create_local_exe_scopes()
        exe.drop_local_exe_scopes()
        assert exe._need_create_local_exe_scopes()


# --- reports --------------------------------------------------------------------------------------


def test_a_handler_gets_its_vars_at_the_first_step_behind_each_period() -> None:
    _, loss = line()
    seen: list[dict[str, Any]] = []

    class Handler(fluid.executor.FetchHandler):
        def handler(self, res_dict: Any) -> None:
            seen.append(dict(res_dict))

    times = iter([0.0, 3.0, 10.0, 12.0, 20.5])
    report = TimedReport(Handler({"loss": loss, "none": "no var"}, 10), lambda: next(times))
    for value in (1.0, 2.0, 3.0, 4.0):
        report.step([np.array(value)])

    assert report.names == [loss.name]
    assert [float(each["loss"]) for each in seen] == [2.0, 4.0]


def test_a_handler_is_called_while_a_dataset_is_trained_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, loss = line()

    class Batches:
        def batches(self) -> Any:
            return iter([FEED])

    started().train_from_dataset(
        dataset=Batches(), fetch_handler=fluid.executor.FetchHandler({"loss": loss}, 0)
    )

    assert capsys.readouterr().out.startswith("loss[0]: ")


# --- files ----------------------------------------------------------------------------------------


def test_a_program_is_saved_and_loaded_as_one(tmp_path: Path) -> None:
    line()
    exe, scope = started(), fluid.global_scope()
    exe.run(feed=FEED)
    trained = np.array(scope.find_var("fc_0.w_0").get_tensor())
    fluid.save(fluid.default_main_program(), str(tmp_path / "deep" / "model"))
    exe.run(fluid.default_startup_program())

    fluid.load(fluid.default_main_program(), str(tmp_path / "deep" / "model"), exe)

    files = sorted(path.name for path in (tmp_path / "deep").iterdir())
    assert files == ["model.pdmodel", "model.pdopt", "model.pdparams"]
    np.testing.assert_array_equal(scope.find_var("fc_0.w_0").get_tensor(), trained)
    state = fluid.io.load_program_state(str(tmp_path / "deep" / "model"))
    fluid.io.set_program_state(fluid.default_main_program(), {"fc_0.w_0": state["fc_0.w_0"] * 0})
    assert not np.array(scope.find_var("fc_0.w_0").get_tensor()).any()
    with pytest.raises(DataError, match=r"fc_0\.b_0 has shape \(1,\), but was given shape \(2,\)"):
        fluid.set_program_state(fluid.default_main_program(), {"fc_0.b_0": np.zeros(2)})


def test_a_pickle_that_holds_more_than_arrays_is_refused(tmp_path: Path) -> None:
    line()
    (tmp_path / "model.pdparams").write_bytes(pickle.dumps({"fc_0.w_0": print}, 2))

    with pytest.raises(DataError, match=r"print is no part of an array"):
        fluid.load(fluid.default_main_program(), str(tmp_path / "model"))
    with pytest.raises(DataError, match=r"other\.pdparams cannot be read"):
        fluid.load(fluid.default_main_program(), str(tmp_path / "other"))


def test_a_model_is_saved_beside_other_files_and_again(tmp_path: Path) -> None:
    predicted, _ = line()
    exe = started()
    (tmp_path / "log").write_text("kept")

    for _ in range(2):
        exe.run(feed=FEED)
        fluid.io.save_inference_model(
            str(tmp_path), ["x"], [predicted], exe, export_for_deployment=True
        )
    expected = exe.run(feed=FEED, fetch_list=[predicted])[0]
    program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path), exe)

    files = sorted(path.name for path in tmp_path.iterdir())
    parameters = ["fc_0.b_0", "fc_0.w_0"]
    assert files == ["__model__", "dense", *parameters, "log", "manifest.json", "sparse"]
    assert feeds == ["x"]
    again = exe.run(program, feed={"x": FEED["x"]}, fetch_list=fetches)[0]
    assert again.shape == expected.shape


def test_a_model_is_saved_into_the_directory_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    predicted, _ = line()
    exe = started()

    fluid.io.save_inference_model("./", ["x"], [predicted], exe, None, "model", "parameters")
    _, feeds, fetches = fluid.io.load_inference_model("./", exe, "model", "parameters")

    assert (feeds, [each.shape for each in fetches]) == (["x"], [predicted.shape])


def test_a_program_without_ops_returns_what_it_is_fed() -> None:
    layers.data("x", [4])

    (found,) = started().run(feed={"x": FEED["x"]}, fetch_list=["x"])

    np.testing.assert_array_equal(found, FEED["x"])


def test_a_program_is_saved_whole_and_trains_on(tmp_path: Path) -> None:
    _, loss = line()
    exe = started()
    feed = {name: np.random.default_rng(1).random(a.shape, "f4") for name, a in FEED.items()}
    exe.run(feed=feed)

    assert fluid.io.save_inference_model(str(tmp_path), [], [], exe, params_filename="all") == []
    (expected,) = exe.run(feed=feed, fetch_list=[loss])
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(
            str(tmp_path), exe, params_filename="all"
        )
        found = [exe.run(program, feed=feed, fetch_list=[loss.name])[0] for _ in range(2)]

    assert (feeds, fetches) == ([], [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["__model__", "all"]
    np.testing.assert_array_equal(found[0], expected)
    assert found[1] < found[0]


# --- names ----------------------------------------------------------------------------------------


def test_every_var_is_a_tensor() -> None:
    line()

    variables = fluid.default_main_program().global_block().vars.values()
    assert {each.type for each in variables} == {fluid.core.VarDesc.VarType.LOD_TENSOR}


def test_versions_are_compared_with_the_newest_of_fluid() -> None:
    fluid.require_version("1.6.0")
    fluid.require_version("1.5", "1.8.5.0")

    with pytest.raises(ConfigError, match=r"requires PaddlePaddle 2\.0 or later; psrt has 1\.8\.5"):
        fluid.require_version("2.0")
    with pytest.raises(TypeError, match="not a text"):
        fluid.require_version(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"1\.x"):
        fluid.require_version("1.x")


def test_flags_are_kept_and_dtypes_have_numbers() -> None:
    fluid.set_flags({"FLAGS_eager_delete_tensor_gb": 0.0})

    assert fluid.get_flags("FLAGS_eager_delete_tensor_gb") == {"FLAGS_eager_delete_tensor_gb": 0.0}
    assert fluid.core.globals()["FLAGS_eager_delete_tensor_gb"] == 0.0
    assert layers.cast(layers.data("x", [1]), fluid.core.VarDesc.VarType.INT32).dtype == "int64"
    assert isinstance(fluid.core.Scope(), fluid.Scope)


def test_ops_are_timed_between_start_and_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, loss = line()
    exe = started()

    with fluid.profiler.profiler("CPU", "total", str(tmp_path / "trace.json")):
        fluid.profiler.reset_profiler()
        exe.run(feed=FEED, fetch_list=[loss])
    exe.run(feed=FEED, fetch_list=[loss])
    fluid.profiler.stop_profiler()

    assert capsys.readouterr().out.count("square_error_cost") >= 1
    assert "traceEvents" in (tmp_path / "trace.json").read_text()
    with pytest.raises(ConfigError, match="names a GPU"):
        fluid.profiler.cuda_profiler("file")


def test_dynamic_graphs_can_be_imported_and_are_refused_when_they_are_used() -> None:
    parallel = importlib.import_module("psrt.fluid.dygraph.parallel")

    with pytest.raises(ConfigError, match=r"fluid\.dygraph\.DataParallel needs graphs"):
        parallel.DataParallel(None)


@pytest.mark.parametrize(
    ("path", "name", "hint"),
    [
        ("psrt.fluid.op", "Operator", "Write layers into a program"),
        ("psrt.fluid.framework", "OpProtoHolder", "docs/reference/layers.md"),
        ("psrt.fluid.contrib.layers", "basic_lstm", "layers.dynamic_lstm"),
        ("psrt.fluid.contrib.layers", "BasicGRUUnit", "layers.dynamic_lstm"),
    ],
)
def test_parts_of_others_helpers_can_be_imported(path: str, name: str, hint: str) -> None:
    made = getattr(importlib.import_module(path), name)

    with pytest.raises(ConfigError, match=hint):
        made("sum")


def test_double_precision_is_fed_and_computed_as_such() -> None:
    x = fluid.layers.data("x", [3], dtype="double")
    (read,) = fluid.layers.py_reader(4, [(-1, 2)], ["float64"], [0])._vars
    hidden = fluid.layers.fc(x, 1, bias_attr=False)
    loss = fluid.layers.mean(fluid.layers.square(hidden))
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe, fed = fluid.Executor(), np.random.default_rng(1).normal(size=(5, 3))
    exe.run(fluid.default_startup_program())
    weight = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    before = np.array(weight)
    batch = {"x": fed, read.name: np.zeros((5, 2))}

    squares, value = exe.run(feed=batch, fetch_list=[x * x, loss])

    np.testing.assert_array_equal(squares, fed * fed)
    assert (read.dtype, squares.dtype, value.dtype) == ("float64", "float64", "float64")
    out = fed @ before
    np.testing.assert_allclose(value[0], (out**2).mean(), rtol=1e-12)
    np.testing.assert_allclose(weight, before - 0.5 * 2 / 5 * fed.T @ out, rtol=1e-5)
