"""Small programs with the calls of Fluid's book and model zoo, each trained for some steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError

layers = fluid.layers
PLACE = fluid.CPUPlace()


def lists(*rows: Sequence[int]) -> fluid.LoDTensor:
    flat = np.concatenate([np.array(row) for row in rows])[:, None]
    made: fluid.LoDTensor = fluid.create_lod_tensor(flat, [[len(row) for row in rows]], PLACE)
    return made


SOURCE, TARGET = lists([1, 2, 3], [4, 5]), lists([1, 2], [3, 4, 5])


def losses(loss: fluid.Variable, feed: dict[str, Any], optimizer: Any = None) -> list[float]:
    (optimizer or fluid.optimizer.Adagrad(learning_rate=0.1)).minimize(loss)
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    return [float(exe.run(feed=feed, fetch_list=[loss])[0]) for _ in range(8)]


def ids(name: str, lod_level: int = 1) -> fluid.Variable:
    made: fluid.Variable = layers.data(name, shape=[1], dtype="int64", lod_level=lod_level)
    return made


def test_an_encoder_and_a_decoder_learn_a_translation() -> None:
    encoded = layers.fc(layers.embedding(ids("source"), size=[9, 8]), size=16, act="tanh")
    forward, _ = layers.dynamic_lstm(input=encoded, size=16, use_peepholes=False)
    back, _ = layers.dynamic_lstm(input=encoded, size=16, is_reverse=True, use_peepholes=False)
    ends = [layers.sequence_last_step(input=forward), layers.sequence_first_step(input=back)]
    context = layers.concat(input=ends, axis=1)
    boot = layers.fc(input=ends[1], size=8, bias_attr=False, act="tanh")
    zeros = layers.fill_constant_batch_size_like(boot, shape=[-1, 8], dtype="float32", value=0.0)
    zeros.stop_gradient = False
    words = layers.embedding(ids("target"), size=[9, 8])
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, seen = rnn.step_input(words), rnn.static_input(context)
        hidden = rnn.memory(init=boot, need_reorder=True)
        cell = rnn.memory(init=zeros)
        x = layers.concat(input=[seen, word], axis=1)
        new_hidden, new_cell = layers.lstm_unit(x, hidden, cell)
        rnn.update_memory(hidden, new_hidden)
        rnn.update_memory(cell, new_cell)
        rnn.output(layers.fc(input=new_hidden, size=9, bias_attr=True, act="softmax"))
    loss = layers.mean(layers.cross_entropy(input=rnn(), label=ids("next")))

    found = losses(loss, {"source": SOURCE, "target": TARGET, "next": TARGET})

    assert found[-1] < found[0] / 2


def test_a_model_of_sessions_has_a_loss_and_an_accuracy_for_each_element() -> None:
    rows = layers.embedding(ids("seen"), size=[9, 8], is_sparse=True)
    states = layers.dynamic_gru(input=layers.fc(input=rows, size=24), size=8)
    scores = layers.fc(input=states, size=9, act="softmax")
    label = ids("next")
    accuracy = layers.accuracy(input=scores, label=label, k=3)
    logits = layers.fc(input=states, size=9)
    both = layers.mean(layers.cross_entropy(input=scores, label=label))
    both = both + layers.mean(layers.softmax_with_cross_entropy(logits=logits, label=label))

    found = losses(both, {"seen": SOURCE, "next": SOURCE})

    assert found[-1] < found[0]
    exe, feed = fluid.Executor(PLACE), {"seen": SOURCE, "next": SOURCE}
    (share,) = exe.run(feed=feed, fetch_list=[accuracy])
    assert 0 < float(share) <= 1


def test_experts_share_what_their_gates_choose() -> None:
    x, label = layers.data("x", [6]), layers.data("label", [2])
    experts = [layers.fc(x, 4, act="relu", name=f"expert_{i}") for i in range(3)]
    stacked = layers.reshape(layers.concat(experts, axis=1), [-1, 3, 4])
    gate = layers.fc(x, 3, act="softmax")
    mixed = layers.reduce_sum(layers.elementwise_mul(stacked, gate, axis=0), dim=1)
    out = layers.clip(layers.fc(mixed, 2, act="softmax"), min=1e-15, max=1 - 1e-15)
    click = layers.cast(layers.slice(label, axes=[1], starts=[1], ends=[2]), "int64")
    layers.auc(input=out, label=click)
    loss = layers.mean(layers.cross_entropy(input=out, label=label, soft_label=True))
    feed = {"x": np.eye(4, 6, dtype="f4"), "label": np.eye(2, dtype="f4")[[0, 1, 0, 1]]}

    found = losses(loss, feed, fluid.optimizer.Adam(learning_rate=0.05))

    assert found[-1] < found[0]


def test_words_are_trained_against_noise_with_a_rate_that_decays() -> None:
    word, other = ids("word", 0), ids("other", 0)
    noise = layers.data("noise", [5], dtype="int64")
    table = {"is_sparse": True, "size": [20, 8]}
    rows = layers.embedding(input=word, param_attr=fluid.ParamAttr(name="in"), **table)
    true = layers.embedding(input=other, param_attr=fluid.ParamAttr(name="out"), **table)
    flat = layers.reshape(noise, shape=[-1, 1])
    flat.stop_gradient = True
    drawn = layers.embedding(flat, param_attr=fluid.ParamAttr(name="out"), **table)
    drawn = layers.reshape(drawn, shape=[-1, 5, 8])
    right = layers.reduce_sum(layers.elementwise_mul(rows, true), dim=1, keep_dim=True)
    wrong = layers.matmul(layers.reshape(rows, shape=[-1, 1, 8]), drawn, transpose_y=True)
    wrong = layers.reshape(wrong, shape=[-1, 5])
    ones = layers.fill_constant_batch_size_like(right, [-1, 1], "float32", 1.0)
    none = layers.fill_constant_batch_size_like(right, [-1, 5], "float32", 0.0)
    costs = [
        layers.reduce_sum(layers.sigmoid_cross_entropy_with_logits(x, y), dim=1)
        for x, y in ((right, ones), (wrong, none))
    ]
    loss = layers.reduce_mean(layers.elementwise_add(*costs))
    rate = layers.exponential_decay(0.5, decay_steps=4, decay_rate=0.9, staircase=True)
    feed = {"word": np.array([[1], [2]]), "other": np.array([[3], [4]])}

    found = losses(
        loss, feed | {"noise": np.arange(5, 15).reshape(2, 5)}, fluid.optimizer.SGD(rate)
    )

    assert found[-1] < found[0]


def test_gradients_are_applied_in_two_calls_as_in_one() -> None:
    loss = layers.mean(layers.square(layers.fc(layers.data("x", [3]), 2)))
    optimizer = fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1))
    pairs = optimizer.backward(loss)
    updates = optimizer.apply_gradients(pairs)

    assert [p.name for p, _ in pairs] == ["fc_0.w_0", "fc_0.b_0"]
    assert [op.role for op in updates] == ["optimize"] * 2
    kinds = [op.role for op in fluid.default_main_program().global_block().ops]
    assert kinds == sorted(kinds, key=["forward", "backward", "clip_and_decay", "optimize"].index)
    with pytest.raises(ProgramError, match="no parameter"):
        optimizer.apply_gradients([])


def test_gradients_of_any_var_are_fetched() -> None:
    x, other = layers.data("x", [2]), layers.data("other", [2])
    squares = layers.square(x)
    targets = [layers.reduce_sum(squares), layers.reduce_sum(x * 3.0)]

    found = fluid.gradients(targets, [x, squares, other])
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    feed = {"x": np.array([[1.0, -2.0]], "f4"), "other": np.zeros((1, 2), "f4")}
    values = exe.run(feed=feed, fetch_list=found[:2])

    assert found[2] is None
    assert [value.tolist() for value in values] == [[[5.0, -1.0]], [[1.0, 1.0]]]


def test_a_batch_of_a_fixed_size_is_a_batch() -> None:
    x = layers.data("x", shape=[8, 3], append_batch_size=False)

    assert x.shape == (-1, 3)


def test_means_and_shares_are_summed_in_python() -> None:
    mean = fluid.average.WeightedAverage()
    with pytest.raises(ProgramError, match="before the first"):
        mean.eval()
    mean.add(value=np.array([1.0, 3.0]), weight=1)
    mean.add(value=np.array([4.0, 0.0]), weight=2)
    scores, labels = np.array([[0.9], [0.8], [0.2], [0.7]]), np.array([[1], [0], [1], [1]])
    both = fluid.metrics.CompositeMetric()
    both.add_metric(fluid.metrics.Precision())
    both.add_metric(fluid.metrics.Recall())

    both.update(scores, labels)

    assert mean.eval().tolist() == [3.0, 1.0]
    assert both.eval() == [2 / 3, 2 / 3]
    both.reset()
    assert both.eval() == [0.0, 0.0]


# --- programs as data ---


def test_an_op_shows_its_vars_and_attributes() -> None:
    layers.fc(layers.data("x", [4]), 2, act="relu")

    (op,) = fluid.default_main_program().global_block().ops

    assert (op.type, op.input_names, op.output_names) == ("fc", ["x", "w", "bias"], ["out"])
    assert op.input_arg_names == ["x", "fc_0.w_0", "fc_0.b_0"]
    assert (op.input("X"), op.output("Out")) == (["x"], op.output_arg_names)
    assert op.has_attr("activation")
    assert op.attr("activation") == "relu"
    assert op.attr_names == [*op.all_attrs()]
    with pytest.raises(ProgramError, match="no slot Y"):
        op.input("Y")
    with pytest.raises(ProgramError, match="Did you mean activation"):
        op.attr("activations")


def test_ops_are_appended_by_fluids_types() -> None:
    x, w = layers.data("x", [3]), layers.create_parameter([3, 2], name="w")
    block = fluid.default_main_program().global_block()
    product, out = block.create_var(name="product"), block.create_var(dtype="float32")
    sides = {"x_num_col_dims": 1, "y_num_col_dims": 1}
    block.append_op(type="mul", inputs={"X": x, "Y": [w]}, outputs={"Out": product}, attrs=sides)
    block.append_op("scale", {"X": product}, {"Out": [out]}, {"scale": 2.0, "bias": 1.0})
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())

    fed = np.ones((2, 3), "f4")
    values, weights = exe.run(feed={"x": fed}, fetch_list=[out, w])

    np.testing.assert_allclose(values, fed @ weights * 2 + 1, rtol=1e-6)
    with pytest.raises(ProgramError, match="an op roi_pool, which psrt does not have"):
        block.append_op("roi_pool", {}, {})


def test_a_var_of_a_shape_is_fed_unless_an_op_writes_it() -> None:
    block = fluid.Program().global_block()
    x = block.create_var(name="x", shape=[-1, 3], dtype="float32")
    w = block.create_parameter("w", [3, 2], initializer=fluid.initializer.Constant(2.0))
    out = block.create_var(name="out", shape=[-1, 2], dtype="float32")
    unused = block.create_var(name="unused", shape=[4], dtype="float64")
    assert (x.shape, repr(x)) == ((-1, 3), "Variable(x: not written yet)")

    block.append_op("mul", inputs={"X": [x], "Y": [w]}, outputs={"Out": [out]})
    exe, program = fluid.Executor(PLACE), block.program
    exe.run(fluid.default_startup_program())
    (found,) = exe.run(program, feed={"x": np.ones((2, 3), "f4")}, fetch_list=[out])

    np.testing.assert_array_equal(found, np.full((2, 2), 6))
    assert x.is_data
    assert unused.dtype == fluid.core.VarDesc.VarType.FP64 != x.dtype
    assert block.create_var(name="unused") is unused
    with pytest.raises(ValueError, match=r"is there already, so none of shape \[5\] was created"):
        block.create_var(name="unused", shape=[5])


def test_a_program_is_bytes_and_back() -> None:
    layers.fc(layers.data("x", [4]), 2)
    program = fluid.default_main_program()

    again = fluid.Program.parse_from_string(program.desc.serialize_to_string())

    assert str(again) == str(program)
    with pytest.raises(ProgramError, match="given no program"):
        fluid.Program.parse_from_string(b"\xff")


def test_a_directory_of_values_is_a_state(tmp_path: Any) -> None:
    layers.fc(layers.data("x", [4]), 2)
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    fluid.io.save_params(exe, str(tmp_path))

    state = fluid.load_program_state(str(tmp_path))

    assert {name: values.shape for name, values in state.items()} == {
        "fc_0.b_0": (2,),
        "fc_0.w_0": (4, 2),
    }


def test_a_tensor_is_true_once_it_holds_an_array() -> None:
    scope, name = fluid.Scope(), "counts"

    assert not scope.var(name).get_tensor()
    scope.var(name).get_tensor().set(np.zeros((2, 3)), PLACE)

    assert scope.var(name).get_tensor()
    assert scope.var(name).get_tensor()._get_dims() == [2, 3]
    assert not fluid.LoDTensor()


def test_losses_of_one_element_are_joined_and_stacked_as_arrays_of_one() -> None:
    weight = layers.create_parameter([4], name="w")
    squares = [layers.reduce_sum(layers.square(weight)), layers.reduce_sum(weight)]
    joined, stacked = layers.concat(squares, axis=-1), layers.stack(squares)

    assert (joined.shape, stacked.shape) == ((2,), (2, 1))
    assert layers.unsqueeze(squares[0], [0]).shape == (1, 1)
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    both, columns, *parts = exe.run(fetch_list=[joined, stacked, *squares])
    assert both.tolist() == columns[:, 0].tolist() == [part.item() for part in parts]


def test_gradients_that_a_program_clips_itself_are_clipped_once() -> None:
    def trained(by_hand: bool) -> Any:
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.scope_guard(fluid.Scope()),
            fluid.unique_name.guard(),
        ):
            loss = layers.mean(layers.fc(layers.data("x", [4]), 3))
            clip, adam = fluid.clip.GradientClipByGlobalNorm(0.01), fluid.optimizer.SGD(1.0)
            if by_hand:
                pairs = fluid.backward.append_backward(loss)
                fluid.clip.set_gradient_clip(clip)
                adam.apply_gradients(fluid.clip.append_gradient_clip_ops(pairs))
            else:
                fluid.clip.set_gradient_clip(clip)
                adam.minimize(loss)
            exe = fluid.Executor(PLACE)
            exe.run(fluid.default_startup_program())
            exe.run(feed={"x": np.ones((2, 4), "float32")})
            return np.array(fluid.global_scope().find_var("fc_0.b_0").get_tensor())

    assert trained(by_hand=True).tolist() == trained(by_hand=False).tolist()
    assert 0 < np.abs(trained(by_hand=True)).max() < 0.01


def test_what_a_strategy_is_to_dump_is_kept_and_a_warning_tells_that_nothing_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (  # noqa: E501
        StrategyFactory,
    )

    strategy = StrategyFactory.create_async_strategy()
    strategy.set_debug_opt({"dump_fields": ["fc_0.tmp_0"]})

    assert strategy.get_debug_opt() == {"dump_fields": ["fc_0.tmp_0"]}
    assert "nothing is dumped (dump_fields)" in caplog.text
