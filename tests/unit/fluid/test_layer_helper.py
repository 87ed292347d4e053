"""Layers that users write with a LayerHelper."""

from __future__ import annotations

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError
from psrt.fluid.layer_helper import LayerHelper
from psrt.fluid.parameters.initializer import Constant, Normal

layers = fluid.layers


def scaled(input: fluid.Variable, factor: float, act: str | None = None) -> fluid.Variable:
    helper = LayerHelper("scaled", **locals())
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    inputs, outputs = {"X": [helper.input()]}, {"Out": [out]}
    helper.append_op("scale", inputs, outputs, {"scale": factor, "bias": 0.0})
    return helper.append_activation(helper.append_bias_op(out))


def counted(helper: LayerHelper, label: fluid.Variable) -> fluid.Variable:
    count, is_new = helper.create_or_get_global_variable("examples", shape=[1], dtype="float32")
    if is_new:
        helper.set_variable_initializer(count, Constant(2.0, force_cpu=True))
    ones = layers.fill_constant(layers.shape(label), "float32", 1.0)
    inputs = {"X": [count], "Y": [layers.reduce_sum(ones)]}
    helper.append_op(type="elementwise_add", inputs=inputs, outputs={"Out": [count]})
    return count


def test_a_layer_of_ones_own_is_trained() -> None:
    x = layers.data("x", shape=[3])
    out = scaled(x, -2.0, "relu")
    loss = layers.mean(out)
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.array([[-1, 2, -3]], "float32")}

    found, before = exe.run(feed=feed, fetch_list=[out, loss])
    (after,) = exe.run(feed=feed, fetch_list=[loss])

    np.testing.assert_array_equal(found, [[2, 0, 6]])
    assert float(after) < float(before)


def test_a_metric_counts_in_a_var_that_outlives_steps() -> None:
    x = layers.data("x", shape=[1])
    helper = LayerHelper("metric", input=x)
    count = counted(helper, x)
    assert helper.create_or_get_global_variable("examples", shape=[1]) == (count, False)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())

    found = [
        float(exe.run(feed={"x": np.ones((3, 1), "f4")}, fetch_list=[count])[0]) for _ in range(2)
    ]

    assert found == [5, 8]


def test_what_a_helper_cannot_do_is_refused() -> None:
    x, ids = layers.data("x", shape=[1]), layers.data("ids", shape=[1], dtype="int64")
    helper = LayerHelper("both", input=[x, ids], bias_attr=False)

    assert helper.append_bias_op(x) is x
    assert isinstance(x, layers.tensor.Variable)
    with pytest.raises(ProgramError, match="both was given 2 vars, but takes one"):
        helper.input()
    with pytest.raises(ProgramError, match=r"vars of \['float32', 'int64'\]"):
        helper.input_dtype()
    with pytest.raises(ProgramError, match="it begins with a constant"):
        helper.set_variable_initializer(helper.create_global_variable(), Normal())


def test_an_operator_computes_in_the_dtype_of_its_left_side() -> None:
    x, ids = layers.data("x", shape=[1]), layers.data("ids", shape=[1], dtype="int64")
    made = [x * ids, ids + x, x < ids]
    feed = {"x": np.array([[1.5]], "float32"), "ids": np.array([[2]])}

    product, total, less = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=made)

    assert (product.dtype, product.tolist()) == (np.float32, [[3.0]])
    assert (total.dtype, total.tolist()) == (np.int64, [[3]])
    assert less.all()


def test_the_output_of_a_layer_has_fluids_name_too() -> None:
    x = layers.data("x", shape=[2])
    layers.mean(layers.fc(x, 2, act="relu"))
    exe, block = fluid.Executor(fluid.CPUPlace()), fluid.default_main_program().global_block()
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((1, 2), "float32")}

    ours, theirs = exe.run(feed=feed, fetch_list=["mean_0.out", "mean_0.tmp_0"])

    assert ours == theirs
    assert block.vars["mean_0.tmp_0"] is block.var("mean_0.tmp_0") is block.var("mean_0.out")
    assert "mean_0.tmp_0" in block.vars
    assert block.has_var("mean_0.tmp_0")
    assert "fc_0.tmp_0" not in block.vars
    with pytest.raises(KeyError):
        block.vars["mean_1.tmp_0"]


@pytest.mark.parametrize(
    ("name", "made", "also"),
    [
        ("both.tmp_4", "both.out", None),  # two products, sum, bias, relu
        ("fc_0.tmp_1", "fc_0.out_1", "fc_0.tmp_0"),  # product, softmax; the product is there too
        ("conv2d_0.tmp_1", "conv2d_0.out", None),
        ("elementwise_add_0.tmp_1", "elementwise_add_0.out_1", "elementwise_add_0.tmp_0"),
    ],
)
def test_outputs_have_the_numbers_of_fluids_vars(name: str, made: str, also: str | None) -> None:
    x, y = layers.data("x", [4]), layers.data("y", [3])
    both = layers.fc([x, y], 4, act="relu", name="both")
    layers.elementwise_add(layers.fc(both, 4, act="softmax", bias_attr=False), both, act="tanh")
    layers.conv2d(layers.data("image", [1, 2, 2]), 2, 1)
    block = fluid.default_main_program().global_block()

    assert block.var(name).name == made
    layer = name.partition(".")[0]
    known = {f"{layer}.tmp_{n}" for n in range(6) if block.has_var(f"{layer}.tmp_{n}")}
    assert known == {name} | ({also} if also else set())


def test_whole_numbers_are_divided_towards_zero() -> None:
    x = layers.data("x", [1], dtype="int64")
    numbers = np.array([[3], [-13], [49], [98]])

    (found,) = fluid.Executor().run(feed={"x": numbers}, fetch_list=[x / 49])

    assert (found.dtype, found.ravel().tolist()) == (np.int64, [0, 0, 1, 2])
