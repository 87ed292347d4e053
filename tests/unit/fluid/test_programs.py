"""Default programs, names, seeds, clones and the operators of variables."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError

layers = fluid.layers


def run(fetch: fluid.Variable, **feed: object) -> np.ndarray:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=[fetch])[0]


@pytest.mark.parametrize("module", ["psrt.fluid", "psrt.fluid.incubate.data_generator"])
def test_importing_fluid_loads_no_kernels(module: str) -> None:
    code = f"import sys, {module}; sys.exit('numba' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_layers_write_into_the_program_of_the_guard_and_behind_it_into_the_default() -> None:
    main, startup = fluid.Program(), fluid.Program()

    with fluid.program_guard(main, startup):
        fluid.layers.data("inside", [1])
    fluid.layers.data("outside", [1])

    assert [v.name for v in main.list_vars()] == ["inside"]
    assert [v.name for v in fluid.default_main_program().list_vars()] == ["outside"]
    assert startup.initialises == [main]


def test_two_programs_share_no_parameter_by_accident_but_do_under_a_guard_of_names() -> None:
    def parameters() -> list[str]:
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            fluid.layers.fc(fluid.layers.data("x", [2]), 1, bias_attr=False)
            return [p.name for p in fluid.default_main_program().all_parameters()]

    assert parameters() == ["fc_0.w_0"]
    assert parameters() == ["fc_1.w_0"]
    with fluid.unique_name.guard():
        assert parameters() == ["fc_0.w_0"]


@pytest.mark.parametrize(
    "name", ["unique_name", "clip", "param_attr", "optimizer", "reader", "dataset", "lod_tensor"]
)
def test_modules_of_sub_rooms_have_paddlepaddles_paths_too(name: str) -> None:
    by_name = getattr(fluid, name)
    by_path = importlib.import_module(f"psrt.fluid.{name}")

    assert by_path is by_name
    assert by_path.__name__.count(".") == 3


def test_a_name_given_to_a_layer_names_its_parameters_and_is_not_given_twice() -> None:
    x = fluid.layers.data("x", [2])

    fluid.layers.fc(x, 1, name="tower", bias_attr=False)
    fluid.layers.fc(x, 1, name="tower", bias_attr=False)

    names = [p.name for p in fluid.default_main_program().all_parameters()]
    assert names == ["tower.w_0", "tower_0.w_0"]


def test_the_seed_of_either_program_counts_for_what_is_built_behind_it() -> None:
    def weights(main_seed: int, startup_seed: int) -> np.ndarray:
        main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
        main.random_seed, startup.random_seed = main_seed, startup_seed
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            fluid.layers.fc(fluid.layers.data("x", [2]), 3)
        fluid.Executor().run(startup, scope=scope)
        return np.array(scope.find_var("fc_0.w_0").get_tensor())

    np.testing.assert_array_equal(weights(7, 0), weights(0, 7))
    assert (weights(7, 0) != weights(0, 0)).any()


def test_a_clone_for_test_computes_without_dropout_and_trains_nothing() -> None:
    x = fluid.layers.data("x", [4])
    out = fluid.layers.mean(fluid.layers.dropout(x, 0.5, dropout_implementation="upscale_in_train"))
    test = fluid.default_main_program().clone(for_test=True)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())

    value = exe.run(test, feed={"x": np.ones((8, 4), "f4")}, fetch_list=[out])[0]

    assert value.tolist() == [1.0]
    assert not test.graph.trained()


def test_a_program_is_looked_through_by_its_block() -> None:
    x = fluid.layers.data("x", [4])
    hidden = fluid.layers.fc(x, 3, act="relu")
    program = fluid.default_main_program()
    block = program.global_block()

    assert block.var("x") is x
    assert block.has_var(hidden.name)
    assert not block.has_var("y")
    assert (x.shape, x.dtype, x.lod_level) == ((-1, 4), "float32", 0)
    assert [op.type for op in block.ops] == ["fc"]
    assert [p.name for p in block.all_parameters()] == ["fc_0.w_0", "fc_0.b_0"]
    assert all(p.trainable for p in block.all_parameters())  # type: ignore[attr-defined]
    assert all(type(p) is fluid.framework.Parameter for p in block.all_parameters())
    assert program.num_blocks == 1
    assert str(program) == program.to_string(True) == program.graph.to_text()


def test_a_program_is_cut_down_to_what_its_targets_need() -> None:
    x, label = fluid.layers.data("x", [2]), fluid.layers.data("label", [1])
    predicted = fluid.layers.fc(x, 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(predicted, label))
    fluid.optimizer.SGD(0.1).minimize(loss)
    program = fluid.default_main_program()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    rows = np.array([[1.0, 2.0], [3.0, 4.0]], "f4")

    (before,) = exe.run(
        program.clone(for_test=True), {"x": rows, "label": rows[:, :1]}, [predicted.name]
    )
    cut = program.clone()._prune_with_input(feeded_var_names=["x"], targets=[predicted])

    assert "label" not in cut.global_block().vars
    assert {op.type for op in cut.global_block().ops} == {"fc"}
    np.testing.assert_array_equal(exe.run(cut, {"x": rows}, [predicted.name])[0], before)


def test_data_vars_that_are_declared_after_a_run_are_fed_in_the_next() -> None:
    exe = fluid.Executor()
    program = fluid.default_main_program()
    for name in ("first", "second"):
        fluid.layers.data(name, [1])
        fed = {var.name: np.ones((2, 1), "f4") for var in program.list_vars()}

        (found,) = exe.run(program, feed=fed, fetch_list=[name])

        assert found.tolist() == [[1], [1]]


def test_a_parameter_shows_what_it_was_given() -> None:
    decay, clip = fluid.regularizer.L2Decay(0.5), fluid.clip.GradientClipByNorm(2.0)
    attr = fluid.ParamAttr("w", None, 0.1, decay, gradient_clip=clip)
    fluid.layers.fc(fluid.layers.data("x", [2]), 1, param_attr=attr)

    weight, bias = fluid.default_main_program().all_parameters()

    assert isinstance(weight, fluid.framework.Parameter)
    assert isinstance(bias, fluid.framework.Parameter)
    assert (weight.regularizer, weight.gradient_clip_attr) == (decay, clip)
    assert (weight.optimize_attr, bias.optimize_attr) == (
        {"learning_rate": 0.1},
        {"learning_rate": 1.0},
    )
    assert (bias.regularizer, bias.gradient_clip_attr) == (None, None)


def test_a_var_that_does_not_exist_is_refused_with_the_nearest() -> None:
    fluid.layers.data("label", [1])

    with pytest.raises(ProgramError, match=r"no var labell\. Did you mean label\?"):
        fluid.default_main_program().global_block().var("labell")


X = np.array([[1.0, -2.0, 4.0]], "f4")
Y = np.array([[2.0, 4.0, -8.0]], "f4")

EXPRESSIONS = {
    "x + y": lambda x, y: x + y,
    "x - y": lambda x, y: x - y,
    "x * y": lambda x, y: x * y,
    "x / y": lambda x, y: x / y,
    "x + 1": lambda x, y: x + 1,
    "1 + x": lambda x, y: 1 + x,
    "x - 1": lambda x, y: x - 1,
    "1 - x": lambda x, y: 1 - x,
    "x * 2": lambda x, y: x * 2,
    "2 * x": lambda x, y: 2 * x,
    "x / 2": lambda x, y: x / 2,
    "2 / x": lambda x, y: 2 / x,
    "x ** 2": lambda x, y: x**2,
    "-x": lambda x, y: -x,
    "(1 - x) * y": lambda x, y: (1 - x) * y,
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_operators_compute_what_they_say(expression: str) -> None:
    compute = EXPRESSIONS[expression]
    x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [3])

    value = run(compute(x, y), x=X, y=Y)

    np.testing.assert_allclose(value, compute(X, Y), rtol=1e-6)


def test_a_variable_is_cast() -> None:
    x = fluid.layers.data("x", [3])

    assert run(x.astype("int64"), x=X).tolist() == [[1, -2, 4]]


def test_gradients_end_at_a_var_that_stops_them() -> None:
    x = fluid.layers.data("x", [3])
    hidden = fluid.layers.fc(x, 2)
    hidden.stop_gradient = True
    loss = fluid.layers.mean(fluid.layers.fc(hidden, 1))

    pairs = fluid.backward.append_backward(loss)

    assert x.stop_gradient
    assert hidden.stop_gradient
    assert [parameter.name for parameter, _ in pairs] == ["fc_1.w_0", "fc_1.b_0"]
    with pytest.raises(ProgramError, match=r"stop_gradient of the parameter fc_0\.w_0"):
        fluid.default_main_program().variable("fc_0.w_0").stop_gradient = True


def test_scalars_have_one_element_as_in_fluid() -> None:
    loss = fluid.layers.mean(fluid.layers.data("x", [3]))

    assert loss.shape == (1,)
    assert run(loss, x=X).shape == (1,)


# --- what a startup program fills ---


def test_a_startup_program_shows_an_op_for_each_value_that_it_fills() -> None:
    x = layers.data("x", [3])
    init = fluid.initializer
    draws = {"n": init.Normal(0.5, 2.0), "u": init.Uniform(-0.25, 0.5), "c": init.Constant(3.0)}
    draws["t"] = init.TruncatedNormal(0.0, 0.1)
    for name, initializer in draws.items():
        attr = fluid.ParamAttr(name=name, initializer=initializer)
        layers.fc(x, 2, param_attr=attr, bias_attr=False)
    layers.create_global_var([1], 7, "int64", persistable=True, name="steps")
    block = fluid.default_startup_program().global_block()

    shown = {op.output("Out")[0]: op for op in block.ops}

    assert {name: op.type for name, op in shown.items()} == {
        "n": "gaussian_random",
        "u": "uniform_random",
        "c": "fill_constant",
        "t": "truncated_gaussian_random",
        "steps": "fill_constant",
    }
    assert (shown["n"].attr("mean"), shown["n"].attr("std")) == (0.5, 2.0)
    assert (shown["u"].attr("min"), shown["u"].attr("max")) == (-0.25, 0.5)
    assert (shown["c"].attr("value"), shown["c"].attr("shape")) == (3.0, [3, 2])
    assert (shown["steps"].attr("value"), shown["steps"].attr("dtype")) == (7, "int64")
    assert shown["c"].input_arg_names == []
    assert sorted(block.vars) == ["c", "n", "steps", "t", "u"]
    assert block.has_var("c")
    assert not block.has_var("x")
    assert block.var("c").shape == (3, 2)
    assert all(var.persistable for var in fluid.default_startup_program().list_vars())
    with pytest.raises(ProgramError, match="has no var x"):
        block.var("x")


def test_what_is_fed_for_a_var_of_the_scope_stays_there() -> None:
    x = layers.data("x", [3])
    out = layers.fc(x, 1, param_attr="w", bias_attr=False)
    count = layers.create_global_var([1], 0, "int64", persistable=True, name="count")
    layers.increment(count)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    rows = np.ones((2, 3), "f4")

    found = exe.run(feed={"x": rows, "w": np.full((3, 1), 2.0), "count": [5]}, fetch_list=[out])
    again = exe.run(feed={"x": rows}, fetch_list=[out, count])

    assert found[0].reshape(-1).tolist() == [6, 6]
    assert (again[0].reshape(-1).tolist(), int(again[1])) == ([6, 6], 7)
    with pytest.raises(ProgramError, match=r"w of shape \(3, 1\) was fed an array of \(2,\)"):
        exe.run(feed={"x": rows, "w": np.ones(2)})


def test_a_parameter_that_pservers_hold_is_not_fed() -> None:
    loss = layers.mean(layers.fc(layers.data("x", [3]), 1, param_attr="w"))
    fluid.optimizer.SGD(0.1).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers="127.0.0.1:6170", trainers=1)

    with pytest.raises(ProgramError, match="w was fed, but pservers hold it"):
        fluid.Executor().run(transpiler.get_trainer_program(), feed={"w": np.ones((3, 1), "f4")})
