"""Rows of tables that are looked up in the block of a loop, and trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError

layers = fluid.layers
RNG = np.random.default_rng(3)
TABLE = RNG.normal(size=(5, 2)).astype("f4")
LISTS = fluid.create_lod_tensor(np.array([[1], [4], [1], [3], [0]]), [[3, 0, 2]], None)


def started(**values: Any) -> fluid.Executor:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for name, value in values.items():
        fluid.global_scope().find_var(name).get_tensor().set(value, None)
    return exe


def table() -> Any:
    return np.array(fluid.global_scope().find_var("table").get_tensor())


def recurrence(inside: bool, padding: int | None) -> tuple[fluid.Variable, fluid.Variable]:
    """The loss and the states of a recurrence over words, looked up in a step or before it."""
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    options = {"param_attr": "table", "padding_idx": padding}
    given = words if inside else layers.embedding(words, [5, 2], **options)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(given)
        word = layers.embedding(word, [5, 2], **options) if inside else word
        before = rnn.memory(shape=[2])
        both = layers.concat([word, before], 1)
        after = layers.fc(both, 2, act="tanh", bias_attr=False, param_attr="w")
        rnn.update_memory(before, after)
        rnn.output(after)
    states = rnn()
    loss = layers.reduce_sum(layers.sequence_last_step(states) * layers.data("d", [2]))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss, states


@pytest.mark.parametrize("padding", [None, 1])
def test_a_recurrence_trains_the_rows_that_its_steps_look_up(padding: int | None) -> None:
    found = []
    feed = {"words": LISTS, "d": np.array([[1, 2], [3, 4], [-1, 5]], "f4")}
    for inside in (False, True):
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.scope_guard(fluid.Scope()),
        ):
            loss, states = recurrence(inside, padding)
            first = TABLE.copy()
            if padding is not None:
                first[padding] = 0
            exe = started(table=first, w=np.eye(4, 2, dtype="f4") - 0.5)
            values = [exe.run(feed=feed, fetch_list=[loss, states]) for _ in range(3)]
            found.append(([v[0].item() for v in values], values[-1][1].values, table()))

    for outside, within in zip(*found, strict=True):
        np.testing.assert_allclose(within, outside, rtol=1e-5, atol=1e-6)


def walk() -> fluid.Variable:
    """The sum of rows on a walk of three steps, in which a row decides how far it goes."""
    at = layers.data("at", [1], dtype="int64")
    step, longest = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 3)
    place, total = (
        layers.assign(at),
        layers.fill_constant_batch_size_like(at, [-1, 2], "float32", 0),
    )
    going = layers.less_than(step, longest)
    with layers.While(going).block():
        row = layers.embedding(place, [5, 2], param_attr="table", is_sparse=True)
        layers.assign(layers.tanh(total + row), total)
        layers.increment(step)
        layers.assign((place + 2) - layers.cast(place + 2 > 4, "int64") * 5, place)
        layers.less_than(step, longest, cond=going)
    return layers.reduce_sum(total * total)


def test_gradients_of_rows_looked_up_in_turns_are_those_of_finite_differences() -> None:
    loss = walk()
    (gradient,) = fluid.gradients(
        [loss], [fluid.default_main_program().global_block().var("table")]
    )
    exe = started(table=TABLE)
    feed = {"at": np.array([[0], [3], [0]])}

    (found,) = exe.run(feed=feed, fetch_list=[gradient])

    scope, size = fluid.global_scope(), 1e-2
    expected = np.zeros_like(TABLE)
    for place in np.ndindex(*TABLE.shape):
        ends = []
        for sign in (1, -1):
            moved = TABLE.copy()
            moved[place] += sign * size
            scope.find_var("table").get_tensor().set(moved, None)
            ends.append(exe.run(feed=feed, fetch_list=[loss])[0].item())
        expected[place] = (ends[0] - ends[1]) / (2 * size)
    assert abs(expected[1]).max() > 0 or abs(expected[2]).max() > 0
    np.testing.assert_allclose(found, expected, atol=5e-3)


def test_rows_of_sparse_tables_are_not_looked_up_in_loops() -> None:
    ids = layers.data("ids", [1], dtype="int64", lod_level=1)
    layers.embedding(ids, [5, 2], is_sparse=True, param_attr="table")
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(ids)
        with pytest.raises(ProgramError, match="looks table up in a loop") as refused:
            layers.embedding(word, [5, 2], param_attr="table")
        assert "before the loop" in refused.value.hint
        with pytest.raises(ProgramError, match="looks a table up in a loop"):
            layers.embedding(word, [5, 2], is_distributed=True)
        rnn.update_memory(*[rnn.memory(shape=[1])] * 2)
        rnn.output(layers.cast(word, "float32"))
