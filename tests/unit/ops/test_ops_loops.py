"""Loops and arrays of tensors against loops in plain numpy, and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from psrt import Executor, Ragged, Scope, layers, program
from psrt.core.errors import ProgramError
from psrt.core.types import Array
from psrt.graph.program import Program, Var
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(7)
X = RNG.normal(size=(3, 2))


def number(value: int) -> Var:
    return layers.fill_constant((1,), "int64", value)


def powers(x: Var, turns: Var) -> tuple[Var, Var]:
    """x after some turns through one layer, and an array of it before each turn."""

    def body(i: Var, x: Var, seen: Var) -> list[Var]:
        after = layers.fc(x, 2, act="tanh", param="w", bias="b") * 0.5 + x
        return [i + 1, after, layers.array_write(x, i, seen)]

    first = [number(0), x, layers.create_array((-1, 2))]
    _, last, seen = layers.while_loop(lambda i, *_: layers.less_than(i, turns), body, first)
    return last, seen


def weight(width: int, name: str) -> Var:
    return layers.create_parameter((width,), param=name)


def test_a_turn_is_repeated_while_its_condition_holds() -> None:
    with program() as built:
        turns, x = layers.data("turns", ()), layers.data("x", (2,))
        count = layers.cast(layers.reduce_sum(turns), "int64")
        last, seen = powers(x, layers.reshape(count, (1,)))
        length = layers.array_length(seen)
    scope = Scope()
    scope.init_parameters(built)
    w, b = scope["w"], scope["b"]
    w[:], b[:] = RNG.normal(size=w.shape), 0.25
    executor = Executor(built, scope)

    for turns_now in (4, 0, 1):
        feed = {"x": X.astype("f4"), "turns": np.array([turns_now, 0, 0], "f4")}
        found = executor.run(feed, [last, seen, length], roles=("forward",))
        states = [X.astype("f4")]
        for _ in range(turns_now):
            states.append(np.tanh(states[-1] @ w + b) * 0.5 + states[-1])
        np.testing.assert_allclose(found[0], states[-1], rtol=1e-5)
        assert found[2].tolist() == [turns_now]
        if turns_now:
            np.testing.assert_allclose(found[1], np.stack(states[:-1], 1), rtol=1e-5)


def test_gradients_through_turns_and_arrays_are_those_of_finite_differences() -> None:
    def build() -> Var:
        x = layers.fc(layers.data("x", (2,)), 2, param="in")
        last, seen = powers(x, number(3))
        third = layers.array_read(seen, number(2))
        return layers.reduce_sum((last + third * third) * weight(2, "last"))

    check_gradients(build, {"x": X})


def test_gradients_of_loops_in_loops_are_those_of_finite_differences() -> None:
    def build() -> Var:
        x = layers.fc(layers.data("x", (2,)), 2, param="in")

        def outer(i: Var, total: Var) -> list[Var]:
            last, _ = powers(total * weight(2, "scale"), i)
            return [i + 1, last + x]

        under = number(3)
        _, total = layers.while_loop(lambda i, _: layers.less_than(i, under), outer, [number(1), x])
        return layers.reduce_sum(total)

    check_gradients(build, {"x": X}, spread=0.6)


def test_gradients_reach_lists_that_a_turn_reads() -> None:
    def build() -> Var:
        words = layers.fc(layers.data("x", (2,), ragged=True), 2, param="in")
        total = layers.fill_constant((), "float32", 1.0)

        def body(total: Var) -> Var:
            return total + layers.reduce_sum(layers.sequence_pool(words * total)) * 0.1 + 1.0

        limit = layers.fill_constant((), "float32", 3.0)
        (total,) = layers.while_loop(lambda t: layers.less_than(t, limit), body, [total])
        return total

    rows = np.array([[1.0, 2.0], [0.5, 1.0], [0.1, 0.2]], "f4")
    check_gradients(build, {"x": Ragged(rows, np.array([0, 2, 3]))}, spread=0.3)


def test_an_element_is_replaced_appended_or_put_behind_a_gap() -> None:
    with program() as built:
        rows = layers.data("x", (2,))
        array = layers.create_array((2,))
        for at, value in ((0, 1.0), (3, 2.0), (0, 3.0)):
            array = layers.array_write(
                layers.fill_constant((2,), "float32", value), number(at), array
            )
        by_rows = layers.array_write(rows, number(1), layers.create_array((-1, 2)))
        read = layers.array_read(by_rows, number(1))

    found, of_rows, element = Executor(built, Scope()).run(
        {"x": X.astype("f4")}, [array, by_rows, read], roles=("forward",)
    )

    np.testing.assert_array_equal(found[:, 0], [3, 0, 0, 2])
    np.testing.assert_array_equal(of_rows, np.stack([np.zeros((3, 2)), X], 1).astype("f4"))
    np.testing.assert_array_equal(element, X.astype("f4"))


@pytest.mark.parametrize("written", [True, False])
def test_gradients_of_a_write_under_a_condition(written: bool) -> None:
    def build() -> Var:
        old, new = weight(2, "old"), weight(2, "new")
        array = layers.array_write(old, number(0), layers.create_array((2,)))
        array = layers.array_write(old * old, number(1), array)
        one = layers.fill_constant((), "float32", 1.0)
        holds = layers.less_than(one, layers.fill_constant((), "float32", 2.0 if written else 0.0))
        array = layers.array_write(new * new, number(1), array, holds)
        both = layers.array_read(array, number(0)) + layers.array_read(array, number(1))
        return layers.reduce_sum(both) + 0.1 * layers.reduce_sum(new)

    check_gradients(build, {})


def read_at(at: int) -> Array:
    with program() as built:
        array = layers.array_write(number(5), number(0), layers.create_array((1,), "int64"))
        read = layers.array_read(array, number(at))
    (found,) = Executor(built, Scope()).run({}, [read], roles=("forward",))
    return found


@pytest.mark.parametrize(("at", "what"), [(1, "Element 1 of an array of 1"), (-1, "element -1")])
def test_an_element_that_does_not_exist_is_an_error(at: int, what: str) -> None:
    assert read_at(0).tolist() == [5]
    with pytest.raises(ProgramError, match=what):
        read_at(at)


def test_a_program_with_a_loop_has_a_text_and_a_clone() -> None:
    with program() as built:
        last, _ = powers(layers.data("x", (2,)), number(3))
    scope = Scope()
    scope.init_parameters(built)
    feed = {"x": X.astype("f4")}
    values = [
        Executor(each, scope).run(feed, [last.name], roles=("forward",))[0]
        for each in (built, Program.from_text(built.to_text()), built.clone(for_test=True))
    ]

    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[0], values[2])


def test_what_a_loop_cannot_carry_is_refused() -> None:
    with program():
        x = layers.data("x", (2,))
        forever = layers.less_than(number(0), number(1))
        with pytest.raises(ProgramError, match=r"float32 \(-1, 2\) before a turn, and .*-1, 3"):
            layers.while_loop(lambda _: forever, lambda x: layers.fc(x, 3), [x])
        with pytest.raises(ProgramError, match="returned 1 vars, of 2"):
            layers.while_loop(lambda *_: forever, lambda a, _: a, [x, x])
        with pytest.raises(ProgramError, match="not one bool"):
            layers.while_loop(layers.reduce_sum, lambda x: x, [x])
        ids = layers.data("ids", (1,), "int64")
        with pytest.raises(ProgramError, match="is in the loop"):
            layers.while_loop(lambda _: forever, lambda x: layers.embedding(ids, (4, 2)) + x, [x])
        with pytest.raises(ProgramError, match=r"op batch_norm .* is in the loop.*statistics"):
            layers.while_loop(lambda _: forever, layers.batch_norm, [x])
        with pytest.raises(ProgramError, match="has other elements"):
            layers.array_write(x, number(0), layers.create_array((2,)))
        with pytest.raises(ProgramError, match="not one of array_write"):
            layers.array_length(x)
