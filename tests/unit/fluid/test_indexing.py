"""Parts of variables by index, and sizes that are taken from other variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError

layers = fluid.layers
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def run(*fetches: Any) -> list[Any]:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe.run(feed={"x": X}, fetch_list=list(fetches))


@pytest.mark.parametrize(
    "index",
    [
        (slice(None), 1),
        (slice(None), slice(1, 3)),
        (slice(None), slice(None, -1), slice(-2, None)),
        (Ellipsis, -1),
        (slice(None), Ellipsis, slice(2)),
        (slice(None), -1, 0),
        slice(None),
    ],
)
def test_a_part_is_that_of_numpy(index: Any) -> None:
    part = layers.data("x", [3, 4])[index]

    (found,) = run(part)

    assert part.shape == (-1, *X[index].shape[1:])
    np.testing.assert_array_equal(found, X[index])


def test_positions_may_be_variables() -> None:
    x = layers.data("x", [-1, -1, 4], append_batch_size=False)
    start, sizes = layers.zeros([1], "int32"), layers.shape(x)
    first, rest = x[:, start : sizes[1] - 1, :], x[:, start + 1 : sizes[1], 2:]
    one, last = x[:, start + 2], x[:, -1, :]

    found = run(first, rest, one, last)

    assert first.shape == (*rest.shape[:2], 4) == (-1, -1, 4)
    expected = [X[:, :-1], X[:, 1:, 2:], X[:, 2], X[:, -1]]
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_gradients_reach_the_elements_of_a_part_alone() -> None:
    weight = layers.create_parameter([3, 4], name="w")
    loss = layers.reduce_sum(weight[1, 1:3]) + layers.reduce_sum(layers.data("x", [3, 4]))
    fluid.optimizer.SGD(1.0).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    tensor = fluid.global_scope().find_var("w").get_tensor()
    before = np.array(tensor)

    exe.run(feed={"x": X})

    expected = np.zeros((3, 4))
    expected[1, 1:3] = -1
    np.testing.assert_allclose(np.array(tensor) - before, expected, rtol=1e-6)


def test_the_only_element_of_a_loss_has_an_index() -> None:
    total = layers.reduce_sum(layers.data("x", [3, 4]))

    assert run(total[0])[0].item() == X.sum()


@pytest.mark.parametrize(
    ("index", "what"),
    [
        ((0, 0, 0, 0), "more dimensions than shape"),
        ((slice(None), slice(0, 3, 2)), "was indexed with slice"),
        ((slice(None), "first"), "was indexed with 'first'"),
        (0, "has no rows"),
    ],
)
def test_other_indices_are_refused(index: Any, what: str) -> None:
    x = layers.data("x", [3, 4])

    with pytest.raises(ProgramError, match=what):
        x[index]


def test_a_variable_is_no_list() -> None:
    with pytest.raises(TypeError, match=r"layers\.unstack gives its parts"):
        list(layers.data("x", [3, 4]))


# --- sizes ---


def test_sizes_are_those_of_another_variable() -> None:
    x = layers.data("x", [3, 4])
    sizes = layers.shape(x)
    made = [
        layers.fill_constant([sizes[0], 2], "float32", 0.5),
        layers.ones([sizes[0], sizes[2]], "int64"),
        layers.zeros([sizes[1], 2], "float32"),
        layers.fill_constant(sizes, "float32", 3.0),
        layers.reshape(x, [sizes[0], 4, 3]),
    ]

    found = run(*made)

    assert [part.shape for part in found] == [(2, 2), (2, 4), (3, 2), (2, 3, 4), (2, 4, 3)]
    assert [part.flat[0] for part in found] == [0.5, 1, 0, 3.0, 0.0]


def test_a_size_that_ops_compute_is_refused() -> None:
    sizes = layers.shape(layers.data("x", [3, 4]))

    with pytest.raises(ProgramError, match=r"fill_constant was given the size .*computed by ops"):
        layers.fill_constant([sizes[0] + sizes[1], 1], "float32", 0.0)


# --- random numbers ---


def test_numbers_are_drawn_anew_in_every_run_unless_they_have_a_seed() -> None:
    x = layers.data("x", [3, 4])
    rows = layers.shape(x)[0]
    numbers = [
        layers.uniform_random([rows, 500], min=2.0, max=3.0),
        layers.uniform_random_batch_size_like(x, [-1, 500], seed=7),
        layers.gaussian_random([2, 500], mean=5.0, std=0.1),
        layers.gaussian_random_batch_size_like(x, [-1, 500], seed=7),
    ]
    exe = fluid.Executor()

    first, second = (exe.run(feed={"x": X}, fetch_list=numbers) for _ in range(2))

    assert [np.array_equal(a, b) for a, b in zip(first, second, strict=True)] == [
        False,
        True,
        False,
        True,
    ]
    assert 2.0 <= first[0].min() < 2.05 < 2.95 < first[0].max() <= 3.0
    assert first[1].min() < -0.9 < 0.9 < first[1].max()
    assert first[2].mean() == pytest.approx(5.0, abs=0.02)
    assert first[2].std() == pytest.approx(0.1, abs=0.02)
    assert not np.array_equal(first[3][0], first[3][1])


# --- other values ---


def test_one_hot_rows_come_behind_the_dimensions_of_the_ids() -> None:
    ids = layers.data("ids", [1], dtype="int64")
    rows = fluid.one_hot(ids, depth=4)

    (found,) = fluid.Executor().run(feed={"ids": np.array([[2], [0]])}, fetch_list=[rows])

    assert rows.shape == (-1, 1, 4)
    assert found.tolist() == [[[0, 0, 1, 0]], [[1, 0, 0, 0]]]


def test_a_dry_run_needs_no_feed_and_computes_nothing() -> None:
    loss = layers.reduce_sum(layers.data("x", [3, 4]))
    strategy = fluid.ExecutionStrategy()
    strategy._dry_run = True
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    compiled.with_data_parallel(loss.name, exec_strategy=strategy, places=2)

    assert fluid.Executor().run(compiled, fetch_list=[loss]) == []
    assert compiled._program is fluid.default_main_program()
