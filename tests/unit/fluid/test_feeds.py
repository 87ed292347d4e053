"""Feeds: errors in Fluid's words, arrays without examples beside batches, and shapes of rows."""

from __future__ import annotations

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import DataError, PsrtError

layers = fluid.layers
PLACE = fluid.CPUPlace()
RNG = np.random.default_rng(3)


def test_a_shape_that_does_not_fit_is_refused_in_fluids_words() -> None:
    x = fluid.data("x", [None, 3, 8], "float32")
    layers.data("ids", shape=[1], dtype="int64")
    exe = fluid.Executor(PLACE)
    ids = np.zeros((10, 1), "int64")

    with pytest.raises(ValueError, match="feeded Variable 'x' should") as refused:
        exe.run(feed={"x": np.ones((10, 3, 5), "float32"), "ids": ids}, fetch_list=[x])

    assert isinstance(refused.value, DataError)
    assert str(refused.value).endswith(
        "should have dimensions = 3, shape = (-1, 3, 8), but received feeded shape [10, 3, 5] on "
        "each device"
    )
    with pytest.raises(
        ValueError, match=r"data type of feeded Variable 'ids' must be 'int64', .* 'float64'"
    ):
        exe.run(feed={"x": np.ones((10, 3, 8), "float32"), "ids": ids / 2}, fetch_list=[x])


def test_replicas_are_each_told_their_shape() -> None:
    x = fluid.data("x", [None, 8], "float32")
    loss = layers.mean(layers.fc(x, 2))
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    compiled.with_data_parallel(loss.name, places=fluid.cpu_places(4))

    with pytest.raises(ValueError, match=r"received feeded shape \[10, 5\] on each device"):
        exe.run(compiled, feed={"x": np.ones((40, 5), "float32")}, fetch_list=[loss])


@pytest.mark.parametrize("replicas", [0, 2])
def test_a_fixed_shape_beside_an_open_batch_is_one_array_for_all_examples(replicas: int) -> None:
    a = layers.data("a", shape=[6])
    b = layers.data("b", shape=[6, 5], append_batch_size=False)
    out = layers.mul(a, b)
    loss = layers.mean(layers.square(out))
    program = fluid.default_main_program()
    ran = program
    if replicas:
        ran = fluid.CompiledProgram(program)
        ran.with_data_parallel(loss.name, places=fluid.cpu_places(replicas))
    feed = {
        "a": RNG.normal(size=(4, 6)).astype("float32"),
        "b": RNG.normal(size=(6, 5)).astype("float32"),
    }

    found, mean = fluid.Executor(PLACE).run(ran, feed=feed, fetch_list=[out, loss])

    assert b.shape == (6, 5)
    np.testing.assert_allclose(found, feed["a"] @ feed["b"], rtol=1e-5)
    assert mean.shape == (max(1, replicas),)
    np.testing.assert_allclose(mean.mean(), np.square(feed["a"] @ feed["b"]).mean(), rtol=1e-5)
    with pytest.raises(ValueError, match=r"shape = \(6, 5\), but received feeded shape"):
        fluid.Executor(PLACE).run(feed=feed | {"b": feed["a"]}, fetch_list=[out])


def test_parts_of_a_feed_share_what_has_no_examples() -> None:
    a, b = layers.data("a", shape=[2]), fluid.data("b", [2, 3])
    out = layers.mul(a, b)
    both = np.arange(6, dtype="float32").reshape(2, 3)
    parts = [{"a": np.full((1, 2), n, "float32"), "b": both} for n in (1, 2)]

    (found,) = fluid.Executor(PLACE).run(feed=parts, fetch_list=[out])

    np.testing.assert_array_equal(found, [[3, 5, 7], [6, 10, 14]])


def numbered() -> tuple[fluid.CompiledProgram, list[fluid.Variable]]:
    """Examples multiplied by one number, on four replicas."""
    x, factor = fluid.data("x", [None, 2]), fluid.data("factor", [1])
    fetched = [layers.elementwise_mul(x, factor), layers.scale(factor, 1.0)]
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    return compiled.with_data_parallel(places=fluid.cpu_places(4)), fetched


@pytest.mark.parametrize("examples", [3, 4, 8])
def test_one_number_is_fed_beside_a_batch_or_for_each_replica(examples: int) -> None:
    compiled, fetched = numbered()
    exe, ones = fluid.Executor(PLACE), np.ones((examples, 2), "float32")
    shares = min(examples, 4)
    factors = np.arange(1, shares + 1, dtype="float32")

    same, seen = exe.run(compiled, {"x": ones, "factor": factors[:1]}, fetched)
    apart, each = exe.run(compiled, {"x": ones, "factor": factors}, fetched)
    (alone,) = exe.run(feed={"x": ones, "factor": factors[:1]}, fetch_list=fetched[:1])

    np.testing.assert_array_equal(same, ones)
    np.testing.assert_array_equal(alone, ones)
    np.testing.assert_array_equal(seen, np.ones(shares))
    np.testing.assert_array_equal(each, factors)
    np.testing.assert_array_equal(apart[:, 0], np.repeat(factors, examples // shares))


def test_one_number_may_be_declared_before_the_batch() -> None:
    factor, x = fluid.data("factor", [1]), fluid.data("x", [None, 2])
    out = layers.elementwise_mul(x, factor)

    (found,) = fluid.Executor(PLACE).run(
        feed={"x": np.ones((3, 2), "float32"), "factor": np.array([4], "float32")}, fetch_list=[out]
    )

    np.testing.assert_array_equal(found, np.full((3, 2), 4))


@pytest.mark.parametrize("shape", [[3], [3, 2]])
def test_a_constant_in_the_shape_of_a_fixed_batch_has_its_examples(shape: list[int]) -> None:
    x = fluid.data("x", shape)
    added = layers.sums([x, layers.fill_constant(shape, "float32", 2.0)])
    other = layers.fill_constant([2, *shape[1:]], "float32", 2.0)
    given = RNG.normal(size=shape).astype("float32")

    found, twos = fluid.Executor(PLACE).run(feed={"x": given}, fetch_list=[added, other])

    np.testing.assert_allclose(found, given + 2, rtol=1e-6)
    np.testing.assert_array_equal(twos, np.full([2, *shape[1:]], 2))


def test_parts_of_a_feed_may_have_a_number_each() -> None:
    compiled, fetched = numbered()
    parts = [{"x": np.ones((1, 2), "float32"), "factor": np.array([n], "float32")} for n in (2, 3)]

    multiplied, each = fluid.Executor(PLACE).run(compiled, parts, fetched)

    np.testing.assert_array_equal(multiplied, [[2, 2], [3, 3]])
    np.testing.assert_array_equal(each, [2, 3])


def test_a_constant_is_an_array_of_any_numbers() -> None:
    x = layers.data("x", shape=[3])
    made = layers.assign(np.array([1, -2, 3], "float32"))
    nothing = layers.assign(np.array([], "int32"))

    sums, empty = fluid.Executor(PLACE).run(
        feed={"x": np.ones((2, 3), "float32")}, fetch_list=[x + made, nothing]
    )

    np.testing.assert_array_equal(sums, [[2, -1, 4]] * 2)
    assert empty.shape == (0,)
    assert made.shape == (3,)


def test_steps_come_first_between_two_transpositions() -> None:
    steps = fluid.data("steps", [None, -1, 3], "float32")
    last = layers.data("last", shape=[3])
    bias = layers.create_parameter([3], default_initializer=fluid.initializer.Constant(0.5))
    turned = layers.elementwise_add(layers.transpose(steps, [1, 0, 2]), last)
    turned = layers.sigmoid(layers.elementwise_add(turned, bias))
    back = layers.transpose(turned, [1, 0, 2])
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    feed = {
        "steps": RNG.normal(size=(2, 4, 3)).astype("float32"),
        "last": RNG.normal(size=(2, 3)).astype("float32"),
    }

    (found,) = exe.run(feed=feed, fetch_list=[back])

    expected = 1 / (1 + np.exp(-(feed["steps"] + feed["last"][:, None] + 0.5)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert turned.shape == (-1, -1, 3)


def test_rows_are_a_batch_of_a_fixed_size_again() -> None:
    x = fluid.data("x", [4, -1, 6], "float32")
    rows = layers.fc(layers.reshape(x, [4, -1, 6]), 2, num_flatten_dims=2)
    again = layers.reshape(layers.tanh(layers.reshape(rows, [-1, 2])), [4, -1, 2])
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    feed = {"x": RNG.normal(size=(4, 3, 6)).astype("float32")}

    found, before = exe.run(feed=feed, fetch_list=[again, rows])

    assert again.shape == (-1, -1, 2)
    np.testing.assert_allclose(found, np.tanh(before), rtol=1e-6)


def test_lists_of_equally_many_ids_become_rows() -> None:
    ids = layers.data("ids", shape=[1], dtype="int64", lod_level=1)
    values = layers.data("values", shape=[3])
    rows = fluid.embedding(ids, size=[9, 2], param_attr="table")
    fields = layers.reshape(rows, [-1, 3, 2]) * layers.reshape(values, [-1, 3, 1])
    numbers = layers.reshape(ids, [-1, 3])
    loss = layers.mean(layers.reduce_sum(fields, dim=1))
    fluid.optimizer.SGD(1.0).minimize(loss)
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    table = fluid.global_scope()["table"].copy()
    feed = {
        "ids": fluid.create_lod_tensor(np.array([[1], [2], [3], [1], [0], [8]]), [[3, 3]], PLACE),
        "values": RNG.normal(size=(2, 3)).astype("float32"),
    }

    found, seen = exe.run(feed=feed, fetch_list=[fields, numbers])

    np.testing.assert_array_equal(seen, [[1, 2, 3], [1, 0, 8]])
    np.testing.assert_allclose(found, table[seen] * feed["values"][:, :, None], rtol=1e-6)
    moved = table - fluid.global_scope()["table"]
    np.testing.assert_allclose(moved[8], np.full(2, feed["values"][1, 2] / 4), rtol=1e-4)
    uneven = fluid.create_lod_tensor(np.array([[1], [2], [3], [1], [0], [8]]), [[6, 0]], PLACE)
    with pytest.raises(PsrtError):
        exe.run(feed=feed | {"ids": uneven}, fetch_list=[fields])


def test_rows_of_lists_have_a_dimension_of_their_own() -> None:
    ids = [layers.data(name, shape=[1], dtype="int64", lod_level=1) for name in "ab"]
    label = layers.data("label", shape=[1], dtype="int64", lod_level=1)
    rows = [fluid.embedding(each, size=[9, 4], param_attr="table") for each in ids]
    both = layers.concat(rows, axis=1)
    means = layers.reduce_mean(both, dim=-1)
    halves = layers.split(both, 2, dim=1)
    plain = layers.concat([layers.embedding(ids[0], [9, 4], param_attr="table")] * 2, axis=1)
    area, _, _ = layers.auc(layers.fc(both, 1, act="sigmoid"), label)
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    table = fluid.global_scope()["table"]
    feed = {name: lists_of([1, 2]) for name in ("a", "label")} | {"b": lists_of([5, 6])}

    outs = [both, means, halves[1], plain]
    found = [np.array(each) for each in exe.run(feed=feed, fetch_list=outs, return_numpy=False)]

    expected = table[[[1, 5], [2, 6]]]
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_allclose(found[1], expected.mean(axis=-1), rtol=1e-5)
    np.testing.assert_array_equal(found[2], expected[:, 1:])
    assert found[3].shape == (2, 8)
    assert area.dtype == "float64"


def test_a_loss_of_lists_takes_numbers_beside_rows_of_one() -> None:
    x, label = (layers.data(name, [1], lod_level=1) for name in ("x", "label"))
    chances = layers.fc(layers.reshape(x, [-1, 1]), 1, act="sigmoid", bias_attr=False)
    loss = layers.mean(layers.log_loss(chances, label))
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    fed = np.array([[1.0], [-2.0], [0.5]], "f4")
    feed = {"x": (fed, [[1, 2]]), "label": (np.array([[1.0], [0.0], [1.0]], "f4"), [[1, 2]])}
    feed = {name: fluid.create_lod_tensor(*each, PLACE) for name, each in feed.items()}

    found, p = exe.run(feed=feed, fetch_list=[loss, chances], return_numpy=False)

    p, labels = np.array(p)[:, 0], np.array([1.0, 0.0, 1.0])
    expected = -labels * np.log(p + 1e-4) - (1 - labels) * np.log(1 - p + 1e-4)
    np.testing.assert_allclose(np.array(found), expected.mean(), rtol=1e-5)


@pytest.mark.parametrize("name", ["sigmoid_cross_entropy_with_logits", "square_error_cost"])
def test_lists_of_one_element_have_the_losses_of_rows(name: str) -> None:
    ids = layers.data("ids", [1], dtype="int64", lod_level=1)
    table = fluid.ParamAttr("table", initializer=fluid.initializer.Normal(seed=3))
    logits = layers.reduce_sum(layers.embedding(ids, [9, 4], param_attr=table), 1, keep_dim=True)
    ones = layers.fill_constant_batch_size_like(logits, [-1, 1], "float32", 1.0)
    loss = layers.mean(getattr(layers, name)(logits, ones))
    fluid.optimizer.SGD(1.0).minimize(loss)
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    x = fluid.global_scope()["table"][[1, 5]].sum(axis=1)
    one_each = fluid.create_lod_tensor(np.array([[1], [5]]), [[1, 1]], PLACE)

    (found,) = exe.run(feed={"ids": one_each}, fetch_list=[loss])

    expected = (x - 1) ** 2 if name == "square_error_cost" else np.log1p(np.exp(-x))
    np.testing.assert_allclose(found, expected.mean(), rtol=1e-5)


def test_an_activation_follows_a_reshaping() -> None:
    x = layers.data("x", [2, 2])
    fed = RNG.normal(size=(3, 2, 2)).astype("f4")

    (found,) = fluid.Executor(PLACE).run(
        feed={"x": fed}, fetch_list=[layers.reshape(x, [-1, 4], act="tanh")]
    )

    np.testing.assert_allclose(found, np.tanh(fed.reshape(3, 4)), rtol=1e-6)


def test_joined_lists_of_rows_have_a_dimension_of_their_own() -> None:
    ids = [layers.data(name, shape=[1], dtype="int64", lod_level=1) for name in "ab"]
    rows = [fluid.embedding(each, size=[9, 4], param_attr="table") for each in ids]
    sums = [layers.reduce_sum(layers.sequence_concat(each), dim=1) for each in (rows, rows[::-1])]
    both = layers.concat(sums, axis=1)
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    table = fluid.global_scope()["table"]

    (found,) = exe.run(
        feed={"a": lists_of([1, 2]), "b": lists_of([5, 6])}, fetch_list=[both], return_numpy=False
    )

    expected = np.concatenate([table[[1, 5, 2, 6]], table[[5, 1, 6, 2]]], axis=1)
    np.testing.assert_array_equal(np.array(found), expected)


def lists_of(ids: list[int]) -> fluid.LoDTensor:
    made: fluid.LoDTensor = fluid.create_lod_tensor(np.array(ids)[:, None], [[1] * len(ids)], PLACE)
    return made


def test_batches_are_stacked_as_steps() -> None:
    x = layers.data("x", shape=[3])
    steps = layers.stack([x, x * 2.0], axis=0)
    back = layers.transpose(steps, [1, 0, 2])
    feed = {"x": np.array([[1, 2, 3], [4, 5, 6]], "float32")}

    (found,) = fluid.Executor(PLACE).run(feed=feed, fetch_list=[back])

    assert steps.shape == (2, -1, 3)
    np.testing.assert_array_equal(found, np.stack([feed["x"], feed["x"] * 2], axis=1))


def test_a_schedule_of_ones_own_begins_with_a_counter() -> None:
    step = fluid.layers.learning_rate_scheduler._decay_step_counter(1)
    with fluid.default_main_program()._lr_schedule_guard():
        rate = 1.0 / step
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())

    found = [float(exe.run(fetch_list=[rate])[0]) for _ in range(3)]

    np.testing.assert_allclose(found, [1, 1 / 2, 1 / 3])
