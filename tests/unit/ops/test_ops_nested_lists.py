"""Lists of lists: cut from longer lists, and whole lists repeated; against lists, gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from psrt import Executor, Ragged, Scope, layers, program
from psrt.core.errors import DataError, ProgramError
from psrt.core.types import Array
from psrt.graph.derived import outer_lists
from psrt.graph.program import Var
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(5)
LENGTHS = [[2, 0], [], [1, 3]]
SIZES = [2, 0, 4]
ROWS = RNG.normal(size=(6, 3))


def nested_feed() -> dict[str, Array | Ragged]:
    ends = np.cumsum([0, *SIZES])
    return {"x": Ragged(ROWS.astype("f4"), ends), "lengths": Ragged.of(LENGTHS)}


def nested() -> Var:
    x = layers.data("x", (3,), ragged=True)
    return layers.sequence_nest(x, layers.data("lengths", dtype="int64", ragged=True))


def run(build: Callable[[], Var], feed: Mapping[str, Array | Ragged]) -> Array | Ragged:
    with program() as p:
        out = build()
    scope = Scope()
    scope.init_parameters(p)
    return Executor(p, scope).run(feed, [out], roles=("forward",))[0]


def test_elements_of_an_example_are_cut_into_lists() -> None:
    found = run(nested, nested_feed())

    assert isinstance(found, Ragged)
    np.testing.assert_array_equal(found.offsets, [0, 2, 2, 3, 6])
    np.testing.assert_array_equal(found.values, ROWS.astype("f4"))


def test_lengths_that_do_not_add_up_are_refused() -> None:
    feed = nested_feed() | {"lengths": Ragged.of([[2, 1], [], [3]])}

    with pytest.raises(DataError, match=r"The lengths lengths of the lists of x .* to \[3, 0, 3\]"):
        run(nested, feed)


def test_the_outer_lists_are_found_through_layers_that_keep_lists() -> None:
    with program() as p:
        lists = nested()
        kept = layers.tanh(layers.fc(lists, 2))
        pooled = layers.sequence_pool(kept)
        regrouped = layers.sequence_regroup(pooled, p.vars["lengths"])
        again = layers.sequence_regroup(pooled, kept)

    assert [outer_lists(p, var.name) for var in (lists, kept, again)] == ["lengths"] * 3
    assert [outer_lists(p, name) for name in ("x", regrouped.name, "lengths")] == ["", "", ""]


def test_gradient_of_lists_that_are_cut() -> None:
    def build() -> Var:
        x = layers.fc(layers.data("x", (3,), ragged=True), 2, act="tanh")
        lists = layers.sequence_nest(x, layers.data("lengths", dtype="int64", ragged=True))
        lasts = layers.sequence_last_step(lists)
        return layers.reduce_sum(lasts * lasts)

    check_gradients(build, nested_feed())


@pytest.mark.parametrize(
    ("lists", "times", "expected"),
    [  # the two cases of Fluid's documentation, and lists that are repeated never
        ([2, 2], [2, 2], [[0, 1], [0, 1], [2, 3], [2, 3]]),
        ([1, 3], [2, 2], [[0], [0], [1, 2, 3], [1, 2, 3]]),
        ([3, 0, 1], [0, 2, 1], [[], [], [3]]),
    ],
)
def test_whole_lists_are_repeated(
    lists: list[int], times: list[int], expected: list[list[int]]
) -> None:
    def build() -> Var:
        x = layers.data("x", (3,), ragged=True)
        return layers.sequence_repeat(x, layers.data("y", dtype="int64", ragged=True))

    y = Ragged(np.zeros(sum(times), np.int64), np.cumsum([0, *times]))
    values = ROWS[: sum(lists)].astype("f4")
    found = run(build, {"x": Ragged(values, np.cumsum([0, *lists])), "y": y})

    assert isinstance(found, Ragged)
    parts = np.split(found.values, found.offsets[1:-1])
    for part, places in zip(parts, expected, strict=True):
        np.testing.assert_array_equal(part, values[places])


def test_gradient_of_repeated_lists() -> None:
    def build() -> Var:
        x = layers.fc(layers.data("x", (3,), ragged=True), 2, act="tanh")
        many = layers.sequence_repeat(x, layers.data("y", dtype="int64", ragged=True))
        lasts = layers.sequence_last_step(many)
        return layers.reduce_sum(lasts * layers.sequence_pool(many, "sum"))

    y = Ragged.of([[1, 1, 1], [1], []])
    check_gradients(build, {"x": Ragged(ROWS, np.array([0, 2, 3, 6])), "y": y})


def test_repeating_by_another_number_of_lists_is_refused() -> None:
    def build() -> Var:
        x = layers.data("x", (3,), ragged=True)
        short = layers.sequence_regroup(layers.data("z", (1,)), offsets=[0, 1])
        return layers.sequence_repeat(x, short)

    feed = {"x": Ragged(ROWS.astype("f4"), np.array([0, 2, 6])), "z": np.ones((2, 1), "f4")}
    with pytest.raises(Exception, match=r"x has 2 lists|which lists that begin at 0, 1"):
        run(build, feed)
    with program():
        rows, y = layers.data("x", (3,)), layers.data("y", dtype="int64", ragged=True)
        with pytest.raises(ProgramError, match="argument x must be ragged"):
            layers.sequence_repeat(rows, y)
