"""Branches of which one is computed: values, gradients, types, and what cannot wait."""

from __future__ import annotations

import numpy as np
import pytest

from psrt import Executor, Scope, layers, program
from psrt.core.errors import DataError, ProgramError
from psrt.core.types import Array
from psrt.graph.backward import append_backward, append_gradients
from psrt.graph.program import Program, Var
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(3)
X = RNG.normal(size=(4, 3))


def is_less(x: Var, limit: float) -> Var:
    return layers.less_than(x, layers.fill_constant((), "float32", limit))


def computed(built: Program, feed: dict[str, Array], *fetches: Var) -> list[Array]:
    scope = Scope()
    scope.init_parameters(built)
    return Executor(built, scope).run(feed, list(fetches), roles=("forward", "backward"))


@pytest.mark.parametrize("limit", [-100.0, 100.0])
def test_gradients_of_the_branch_that_is_taken_are_those_of_finite_differences(
    limit: float,
) -> None:
    def build() -> Var:
        x = layers.fc(layers.data("x", (3,)), 3, param="in")
        low = is_less(layers.reduce_sum(x), limit)

        def inner() -> Var:
            below = is_less(layers.reduce_mean(x), limit / 2)
            made = layers.cond(below, lambda: layers.square(x), lambda: x)
            assert isinstance(made, Var)
            return made

        rows = layers.cond(low, lambda: layers.fc(x, 3, act="tanh", param="w"), inner)
        assert isinstance(rows, Var)
        return layers.reduce_sum(layers.elementwise_mul(rows, x))

    check_gradients(build, {"x": X})


def test_a_branch_that_is_not_taken_has_gradients_of_zero_where_it_has_no_value() -> None:
    with program() as built:
        x = layers.data("x", (2,))
        positive = layers.greater_than(
            layers.reduce_sum(x), layers.fill_constant((), "float32", 0.0)
        )
        safe = layers.cond(positive, lambda: layers.log(x), lambda: x * 3.0)
        assert isinstance(safe, Var)
        grads = append_gradients(built, layers.reduce_sum(safe), ["x"])

    taken = computed(built, {"x": np.ones((1, 2), "f4")}, safe, built.vars[grads["x"]])
    other = computed(built, {"x": np.zeros((1, 2), "f4")}, safe, built.vars[grads["x"]])

    assert [value.tolist() for value in taken] == [[[0, 0]], [[1, 1]]]
    assert [value.tolist() for value in other] == [[[0, 0]], [[3, 3]]]


def test_results_of_several_types_get_one() -> None:
    with program() as built:
        x = layers.data("x", ())
        yes = is_less(layers.reduce_sum(x), 0.0)
        made = layers.cond(
            yes,
            lambda: [layers.fill_constant((2, 3), "float32", 1), x],
            lambda: [layers.fill_constant((4,), "int64", 2), layers.fill_constant((1,), "bool", 1)],
        )
        assert isinstance(made, list)

    low = computed(built, {"x": np.array([-1, -2], "f4")}, *made)
    high = computed(built, {"x": np.array([1, 2], "f4")}, *made)

    assert [str(var.type) for var in made] == ["float32 (-2, -2)", "float32 (-1,)"]
    assert (low[0].shape, low[1].tolist()) == ((2, 3), [-1, -2])
    assert (high[0].tolist(), high[1].tolist()) == ([[2, 2, 2, 2]], [1])


def test_one_of_many_branches_is_computed() -> None:
    with program() as built:
        x = layers.data("x", ())
        numbers = [layers.fill_constant((1,), "float32", value) for value in range(4)]
        branches = layers.Branches([layers.equal(x, number) for number in numbers])
        results = []
        for number in numbers:
            branches.begin()
            results.append([number * 10.0])
        assert branches.can_wait([var for alike in results for var in alike])
        (made,) = branches.end(results)

    found = [computed(built, {"x": np.array([at], "f4")}, made)[0].item() for at in range(4)]

    assert found == [0, 10, 20, 30]


def test_a_condition_of_several_examples_fails_the_step() -> None:
    with program() as built:
        x = layers.data("x", ())
        made = layers.cond(is_less(x, 0.0), lambda: x, lambda: x * 2.0)
        assert isinstance(made, Var)

    assert computed(built, {"x": np.array([3], "f4")}, made)[0].tolist() == [6]
    with pytest.raises(DataError, match="A condition has 2 elements"):
        computed(built, {"x": np.array([3, 4], "f4")}, made)


def test_what_cannot_wait_is_refused() -> None:
    with program():
        ids, x = layers.data("ids", (), "int64"), layers.data("x", (2,))
        yes = is_less(layers.reduce_sum(x), 0.0)
        with pytest.raises(ProgramError, match="looks up rows of a table"):
            layers.cond(yes, lambda: layers.embedding(ids, (4, 2)), lambda: x)
        with pytest.raises(ProgramError, match="return 1 and 2 vars"):
            layers.cond(yes, lambda: x, lambda: [x, x])


def test_gradients_of_data_are_made_beside_those_of_parameters() -> None:
    with program() as built:
        x = layers.data("x", (3,))
        loss = layers.reduce_sum(layers.square(layers.fc(x, 1, param="w", bias=False)))
        made = append_backward(built, loss, ["x"])
    feed = {"x": X.astype("f4")}

    of_x, of_w, w = computed(
        built, feed, built.vars["x@GRAD"], built.vars[made["w"]], built.vars["w"]
    )

    assert list(made) == ["w"]
    np.testing.assert_allclose(of_x, 2 * (X @ w) @ w.T, rtol=1e-4)
    np.testing.assert_allclose(of_w, 2 * X.T @ (X @ w), rtol=1e-4)


def test_open_sizes_are_those_of_the_value() -> None:
    def build() -> Var:
        x = layers.fc(layers.data("x", (3,)), 3, param="in")
        yes = is_less(layers.reduce_sum(x), 100.0)
        of_one = layers.fill_constant((1, 2), "float32", 1.0)
        rows = layers.cond(yes, lambda: x * x, lambda: of_one)
        assert isinstance(rows, Var)
        return layers.reduce_sum(rows)

    check_gradients(build, {"x": X})
