"""Branches and recurrences by Fluid's names: values, gradients, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError
from psrt.fluid import Variable

layers = fluid.layers
RNG = np.random.default_rng(5)


def started() -> fluid.Executor:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe


def array(name: str) -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


# --- branches ---


def test_one_of_two_branches_is_taken_by_a_condition_of_the_batch() -> None:
    x = layers.data("x", [2])
    total = layers.reduce_sum(x)
    zero = layers.fill_constant([1], "float32", 0.0)
    out = layers.cond(layers.less_than(total, zero), lambda: x * 2.0, lambda: x + 10.0)
    three = layers.case([(total < 0.0, lambda: x), (total < 100.0, lambda: x * 3.0)], lambda: -x)
    number = layers.cast(layers.reshape(total, [1]), "int64")
    picked = layers.switch_case(number, {1: lambda: x, 3: lambda: x * 5.0}, lambda: x * 0.0)
    exe = started()

    def run(*row: float) -> list[list[float]]:
        feed = {"x": np.array([row], "f4")}
        return [v[0].tolist() for v in exe.run(feed=feed, fetch_list=[out, three, picked])]

    assert run(-3, 1) == [[-6, 2], [-3, 1], [0, 0]]
    assert run(2, 1) == [[12, 11], [6, 3], [10, 5]]
    assert run(200, 1) == [[210, 11], [-200, -1], [0, 0]]


def test_the_first_case_that_holds_writes_vars() -> None:
    step = layers.autoincreased_step_counter(begin=1)
    rate = layers.create_global_var([1], 0.5, "float32", persistable=True, name="rate")
    seen = layers.create_global_var([1], 0, "int64", persistable=True, name="seen")
    with layers.Switch() as switch:
        with switch.case(step < 3):
            layers.assign(layers.fill_constant([1], "float32", 0.1), rate)
        with switch.case(step < 4):
            layers.assign(layers.fill_constant([1], "float32", 0.2), rate)
            layers.increment(seen)
        with switch.default():
            layers.assign(layers.cast(step, "float32"), rate)
    exe = started()

    rates = [float(exe.run(fetch_list=[rate])[0]) for _ in range(5)]

    np.testing.assert_allclose(rates, [0.1, 0.1, 0.2, 4, 5])
    assert array("seen").tolist() == [1]


def test_examples_take_one_of_two_blocks_and_gradients_follow() -> None:
    x = layers.data("x", [1])
    branch = layers.IfElse(layers.less_than(x, layers.fill_constant([1], "float32", 0.0)))
    with branch.true_block():
        branch.output(layers.fc(branch.input(x), 1, bias_attr=False, param_attr="low"))
    with branch.false_block():
        branch.output(layers.fc(branch.input(x), 1, bias_attr=False, param_attr="high"))
    (out,) = branch()
    grads = fluid.backward.append_backward(layers.reduce_sum(out))
    exe = started()

    feed = {"x": np.array([[-1.0], [2.0], [3.0]], "f4")}
    value, low, high = exe.run(feed=feed, fetch_list=[out, *(g for _, g in grads)])

    w_low, w_high = array("low")[0, 0], array("high")[0, 0]
    np.testing.assert_allclose(value[:, 0], [-w_low, 2 * w_high, 3 * w_high], rtol=1e-6)
    assert (low.item(), high.item()) == (-1.0, 5.0)


WRONG_BRANCHES: dict[str, Callable[[Variable, Variable], Any]] = {
    "cond": lambda yes, x: layers.cond(yes, x, lambda: x),
    "cond, else": lambda yes, x: layers.cond(yes, lambda: x, 3),
    "case of no pairs": lambda yes, x: layers.case(1),
    "case of a number": lambda yes, x: layers.case([1]),
    "case of a pair that is none": lambda yes, x: layers.case([(yes, lambda: x, 3)]),
    "case of a plain condition": lambda yes, x: layers.case([(True, lambda: x)]),
    "case of no function": lambda yes, x: layers.case([(yes, x)]),
    "case, default": lambda yes, x: layers.case([(yes, lambda: x)], x),
    "switch by a number": lambda yes, x: layers.switch_case(1, [lambda: x]),
    "switch by a float": lambda yes, x: layers.switch_case(x, [lambda: x]),
    "switch without branches": lambda yes, x: layers.switch_case(number(), 1),
    "switch of no function": lambda yes, x: layers.switch_case(number(), {1: x}),
    "switch of a fraction": lambda yes, x: layers.switch_case(number(), [(0.5, lambda: x)]),
    "switch, default": lambda yes, x: layers.switch_case(number(), [lambda: x], x),
}


def number() -> Variable:
    return layers.fill_constant([1], "int64", 1)


@pytest.mark.parametrize("name", WRONG_BRANCHES)
def test_a_branch_that_is_no_function_is_a_type_error(name: str) -> None:
    x = layers.data("x", [2])

    with pytest.raises(TypeError, match=r"cond|case"):
        WRONG_BRANCHES[name](layers.less_than(number(), number()), x)


def test_equal_elements_decide_and_variables_stay_keys() -> None:
    x, y = layers.data("x", [2]), layers.data("y", [2])
    one = layers.fill_constant([1], "int64", 1)
    chosen = layers.case([(one == 2, lambda: x), (one == one, lambda: y)], lambda: x)
    fed = {"x": np.array([[1.0, 2.0]], "f4"), "y": np.array([[1.0, 3.0]], "f4")}

    outs = [x == y, x == 2, x != 2.0, chosen]
    found = started().run(feed=fed, fetch_list=outs)

    expected = [[[True, False]], [[False, True]], [[True, False]], [[1.0, 3.0]]]
    assert [value.tolist() for value in found] == expected
    assert {x: 1, y: 2}[y] == 2
    assert (x == None, x != "x") == (False, True)  # noqa: E711


def test_branches_return_structures_of_vars_that_differ_in_type() -> None:
    x = layers.data("x", [2], dtype="uint8")
    total = layers.cast(layers.reduce_sum(layers.cast(x, "float32")), "uint8")
    is_odd = total % 2 == 1
    made = layers.cond(
        is_odd,
        lambda: {"a": layers.fill_constant([2, 3], "int32", 2), "b": (x, None)},
        lambda: {"a": layers.fill_constant([3], "float32", 0.5), "b": (x * 2.0, None)},
    )
    of_three = layers.switch_case(total, {1: lambda: x, 2: lambda: x + 5.0}, lambda: x * 0.0)
    nothing = layers.cond(is_odd, lambda: None, None)
    exe = started()

    def run(*row: int) -> list[Any]:
        feed = {"x": np.array([row], "uint8")}
        outs = [made["a"], made["b"][0], of_three]
        return [value.tolist() for value in exe.run(feed=feed, fetch_list=outs)]

    assert run(1, 0) == [[[2, 2, 2], [2, 2, 2]], [[1, 0]], [[1, 0]]]
    assert run(1, 1) == [[[0.5, 0.5, 0.5]], [[2, 2]], [[6, 6]]]
    assert (made["b"][1], nothing) == (None, None)


def test_a_branch_that_is_not_taken_changes_no_gradient() -> None:
    i = fluid.data("i", [1], dtype="float32")
    a = i * 2.0
    out = layers.cond(i < 8.0, lambda: a * a, lambda: a / (i - i))
    fluid.backward.append_backward(layers.mean(out))
    exe = started()

    for number in (0.0, 3.0):
        found = exe.run(feed={"i": np.array([number], "f4")}, fetch_list=[out, a.grad_name])
        np.testing.assert_allclose(np.ravel(found), [4 * number**2, 4 * number])


def test_vars_that_are_said_to_have_gradients_get_them_beside_parameters() -> None:
    image = layers.data("image", [3])
    image.stop_gradient = False
    i = fluid.data("i", [1], dtype="int32")
    hidden = layers.batch_norm(layers.fc(image, 4, param_attr="w"))
    loss = layers.cond(
        i % 2 == 0,
        lambda: layers.reduce_sum(layers.fc(image, 1, param_attr="v", bias_attr=False)),
        lambda: layers.mean(layers.dropout(hidden, 0.0) * 0.0),
    )
    fluid.optimizer.SGD(0.0).minimize(loss)
    exe = started()
    batch = {"image": np.ones((1, 3), "f4"), "i": np.array([2], "i4")}

    (even,) = exe.run(feed=batch, fetch_list=[image.grad_name])
    (odd,) = exe.run(feed=batch | {"i": np.array([1], "i4")}, fetch_list=[image.grad_name])

    assert not image.stop_gradient
    np.testing.assert_allclose(even, array("v").T)
    assert not odd.any()


def test_a_branch_with_statistics_is_chosen_by_one_bool() -> None:
    i, x = fluid.data("i", [1], dtype="int32"), layers.data("x", [2])
    loss = layers.cond(
        i == 0, lambda: layers.mean(layers.batch_norm(x)) + 7.0, lambda: layers.mean(x)
    )
    feed = {"x": np.array([[1.0, 3.0]], "f4"), "i": np.array([0])}

    found = [started().run(feed=feed | {"i": np.array([at])}, fetch_list=[loss]) for at in (0, 1)]

    np.testing.assert_allclose(np.ravel(found), [7, 2], atol=1e-5)


@pytest.mark.parametrize("nested", [False, True])
def test_statistics_move_only_in_the_branch_that_is_taken(nested: bool) -> None:
    x = layers.data("x", [2])
    low, big = layers.reduce_sum(x) < 0.0, layers.reduce_sum(x) > -100.0

    def normed() -> Variable:
        return layers.batch_norm(x, momentum=0.5, moving_mean_name="mean")

    inner = (lambda: layers.cond(big, normed, lambda: x)) if nested else normed
    out = layers.cond(low, inner, lambda: x * 3.0)
    exe = started()

    (found,) = exe.run(feed={"x": np.array([[1, 2], [3, 4]], "f4")}, fetch_list=[out])
    assert found.tolist() == [[3, 6], [9, 12]]
    assert array("mean").tolist() == [0, 0]

    (found,) = exe.run(feed={"x": np.array([[-1, -2], [-3, -4]], "f4")}, fetch_list=[out])
    np.testing.assert_allclose(found, [[1, 1], [-1, -1]], atol=1e-4)
    assert array("mean").tolist() == [-1, -1.5]


def test_a_metric_of_a_branch_is_refused_since_it_would_count_every_batch() -> None:
    scores, label = layers.data("x", [1]), layers.data("y", [1], dtype="int64")
    low = layers.reduce_sum(scores) < 0.0

    with pytest.raises(ProgramError, match=r"op auc .* in a branch.*layers.auc outside"):
        layers.cond(low, lambda: layers.auc(scores, label)[0], lambda: layers.mean(scores))


def test_print_shows_what_fluid_shows_in_the_branch_that_is_taken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    x = layers.data("x", [2])
    layers.Print(x, message="seen", summarize=1)
    yes = layers.reduce_sum(x) > 0.0
    layers.cond(yes, lambda: layers.Print(x, message="low") * 2.0, lambda: layers.Print(x))

    started().run(feed={"x": np.array([[-1.5, 1.0]], "f4")})

    about = (
        "  - lod: {}\n  - place: CPUPlace\n  - shape: [1, 2]\n  - layout: NCHW\n  - dtype: float\n"
    )
    assert capsys.readouterr().out == (
        f"Variable: x\n  - message: seen\n{about}  - data: [-1.5]\n"
        f"Variable: x\n{about}  - data: [-1.5 1]\n"
    )


def test_two_branches_of_one_number_are_refused() -> None:
    with pytest.raises(ValueError, match="Two branches of switch_case have the number 2"):
        layers.switch_case(number(), [(2, number), (2, number)])


def test_branches_that_differ_are_refused() -> None:
    x = layers.data("x", [2])
    yes = layers.less_than(layers.reduce_sum(x), layers.reduce_mean(x))

    with pytest.raises(ProgramError, match="Incompatible return values of true_fn"):
        layers.cond(yes, lambda: x, lambda: [x, x])
    branch = layers.IfElse(yes)
    with branch.true_block():
        branch.output(x)
    with pytest.raises(ProgramError, match="1 and 0 outputs"):
        branch()


# --- recurrences ---


def test_a_dynamic_recurrence_is_trained_through_its_steps() -> None:
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    label = layers.data("label", [1], dtype="int64")
    rows = layers.embedding(words, [20, 8])
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(rows)
        before = rnn.memory(shape=[8], value=0.0)
        gates = layers.fc(input=[word, before], size=8, act="sigmoid")
        after = layers.elementwise_mul(gates, layers.fc([word, before], 8, act="tanh")) + before
        rnn.update_memory(before, after)
        rnn.output(after)
    last = layers.sequence_last_step(rnn())
    prediction = layers.fc(last, 2, act="softmax")
    loss = layers.mean(layers.cross_entropy(prediction, label))
    fluid.optimizer.Adam(0.02).minimize(loss)
    exe = started()

    def batch() -> dict[str, Any]:
        lists = [RNG.integers(0, 20, RNG.integers(1, 6)) for _ in range(32)]
        # The label is whether the first word is one of the upper half: it must be remembered.
        labels = np.array([[int(line[0] >= 10)] for line in lists])
        lengths = [[len(line) for line in lists]]
        flat = np.concatenate(lists)[:, None]
        return {"words": fluid.create_lod_tensor(flat, lengths), "label": labels}

    losses = [float(exe.run(feed=batch(), fetch_list=[loss])[0]) for _ in range(60)]

    assert np.mean(losses[-5:]) < 0.25 < 0.6 < np.mean(losses[:5])


@pytest.mark.parametrize("declared", [3, -1])
def test_a_static_recurrence_adds_up_its_steps_in_order(declared: int) -> None:
    x = layers.data("x", [-1, declared, 2], append_batch_size=False)  # batch, steps, size
    start = layers.data("start", [2])
    rnn = layers.StaticRNN()
    with rnn.step():
        part = rnn.step_input(layers.transpose(x, perm=[1, 0, 2]))
        before = rnn.memory(init=start)
        counted = rnn.memory(shape=[-1, 2], batch_ref=part, init_value=1.0)
        after = before * 2.0 + part
        rnn.update_memory(before, after)
        rnn.update_memory(counted, counted + 1.0)
        rnn.step_output(after)
        rnn.step_output(counted)
    sums, counts = rnn()
    assert sums.shape == (declared, -1, 2)
    out = layers.transpose(sums, perm=[1, 0, 2])
    steps = layers.transpose(counts, [1, 0, 2])
    fed, first = RNG.normal(size=(4, 3, 2)).astype("f4"), RNG.normal(size=(4, 2)).astype("f4")

    found, numbers = started().run(feed={"x": fed, "start": first}, fetch_list=[out, steps])

    expected, state = [], first
    for t in range(3):
        state = state * 2 + fed[:, t]
        expected.append(state)
    np.testing.assert_allclose(found, np.stack(expected, 1), rtol=1e-6)
    assert numbers[0, :, 0].tolist() == [1, 2, 3]


def test_vars_with_the_steps_first_are_joined() -> None:
    x = layers.data("x", [3, 2])
    turned = layers.transpose(x, [1, 0, 2])
    wide, long = layers.concat([turned] * 2, axis=2), layers.concat([turned, turned], axis=0)
    fed = RNG.normal(size=(4, 3, 2)).astype("f4")

    outs = [layers.transpose(var, [1, 0, 2]) for var in (wide, long)]
    found = started().run(feed={"x": fed}, fetch_list=outs)

    assert (wide.shape, long.shape) == ((3, -1, 4), (6, -1, 2))
    np.testing.assert_array_equal(found[0], np.concatenate([fed, fed], axis=2))
    np.testing.assert_array_equal(found[1], np.concatenate([fed, fed], axis=1))


def test_what_a_step_cannot_read_is_refused() -> None:
    x = layers.data("x", [3, 2])
    rnn = layers.StaticRNN()
    with pytest.raises(ProgramError, match="outside of its block"):
        rnn.update_memory(x, x)
    with pytest.raises(ProgramError, match="Exchange batch and steps"), rnn.step():
        rnn.step_input(x)


def test_a_cell_of_one_step_is_that_of_the_whole_recurrence() -> None:
    size = 3
    x = layers.data("x", [size * 3], lod_level=1)
    whole = layers.dynamic_gru(x, size, param_attr="w", bias_attr="b")
    rnn = layers.DynamicRNN()
    with rnn.block():
        gates, before = rnn.step_input(x), rnn.memory(shape=[size])
        after, _, _ = layers.gru_unit(gates, before, 3 * size, param_attr="w", bias_attr="b")
        rnn.update_memory(before, after)
        rnn.output(after)
    fed = fluid.create_lod_tensor(RNG.normal(size=(5, 9)).astype("f4"), [[2, 3]])

    at_once, by_step = started().run(feed={"x": fed}, fetch_list=[whole, rnn()])

    np.testing.assert_allclose(at_once.values, by_step.values, rtol=1e-5)


def test_activations_made_of_others_have_fluids_formulas() -> None:
    x = layers.data("x", [4])
    values = RNG.normal(size=(3, 4)).astype("f4") * 4
    outs = [
        layers.brelu(x, 0.0, 2.0),
        layers.soft_relu(x),
        layers.stanh(x),
        layers.tanh_shrink(x),
        layers.hard_swish(x),
        layers.prelu(x, "all"),
        layers.label_smooth(x),
        layers.mse_loss(x, layers.zeros_like(x)),
    ]

    found = started().run(feed={"x": values}, fetch_list=outs)

    expected = [
        values.clip(0, 2),
        np.log1p(np.exp(values)),
        1.7159 * np.tanh(0.67 * values),
        values - np.tanh(values),
        values * (values + 3).clip(0, 6) / 6,
        np.where(values > 0, values, 0.25 * values),
        values * 0.9 + 0.1 / 4,
        np.mean(values**2)[None],
    ]
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


# --- chains of tags ---


def test_tags_are_learned_as_chains_and_decoded() -> None:
    """The tag of an element is the number of the word before it, of lists and of filled rows."""
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    tags = layers.data("tags", [1], dtype="int64", lod_level=1)
    scores = layers.fc(layers.embedding(words, [3, 8]), 3)
    crf = fluid.ParamAttr(name="crfw", learning_rate=0.5)
    loss = layers.mean(layers.linear_chain_crf(scores, tags, param_attr=crf))
    decoded = layers.crf_decoding(scores, param_attr=fluid.ParamAttr(name="crfw"))
    right = layers.crf_decoding(scores, fluid.ParamAttr(name="crfw"), label=tags)
    length = layers.sequence_pool(layers.cast(words * 0 + 1, "float32"), "sum")
    filled, _ = layers.sequence_pad(scores, layers.fill_constant([1], "float32", 0.0))
    same = layers.crf_decoding(filled, "crfw", length=layers.cast(length, "int64"))
    fluid.optimizer.Adam(0.1).minimize(loss)
    exe, place = started(), fluid.CPUPlace()
    rows = RNG.integers(0, 3, size=(40, 1))
    lengths = [[8, 4, 12, 16]]
    given = [fluid.create_lod_tensor(x, lengths, place) for x in (rows, (rows + 1) % 3)]
    feed = {"words": given[0], "tags": given[1]}

    losses = [float(exe.run(feed=feed, fetch_list=[loss])[0]) for _ in range(30)]
    path, agree, rows_of = exe.run(feed=feed, fetch_list=[decoded, right, same])

    assert losses[-1] < losses[0] / 10
    assert agree.values.mean() > 0.95
    np.testing.assert_array_equal(path.values[:8, 0], rows_of[0, :8])
    assert rows_of.shape == (4, 16)
    with pytest.raises(ProgramError, match="no name of its weights"):
        layers.crf_decoding(scores, None)
