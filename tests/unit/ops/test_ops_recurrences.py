"""Recurrences against loops in plain numpy, element by element, and finite differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from psrt import Executor, Ragged, Scope, layers, program
from psrt.core.errors import ProgramError
from psrt.core.types import Array
from psrt.graph.program import Var
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(31)
SIZE = 3
LENGTHS = [2, 0, 4, 1]
FIRST = RNG.normal(size=(4, SIZE)).astype(np.float32)
ACTS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "identity": lambda x: x,
}


def fed(width: int) -> Ragged:
    values = RNG.normal(size=(sum(LENGTHS), width)).astype(np.float32)
    return Ragged(values, np.cumsum([0, *LENGTHS], dtype=np.int64))


def parts(x: Array, count: int) -> list[Array]:
    return np.split(x, count, axis=-1)


def lstm_by_hand(
    x: Array, w: Array, b: Array, h: Array, c: Array, acts: tuple[str, str, str], peep: bool
) -> tuple[list[Array], list[Array]]:
    gate, cell, candidate = (ACTS[name] for name in acts)
    wi, wf, wo = parts(b[4 * SIZE :], 3) if peep else (0, 0, 0)
    hidden, cells = [], []
    for row in x:
        a, i, f, o = parts(row + h @ w + b[: 4 * SIZE], 4)
        i, f = gate(i + wi * c), gate(f + wf * c)
        c = f * c + i * candidate(a)
        h = gate(o + wo * c) * cell(c)
        hidden.append(h)
        cells.append(c)
    return hidden, cells


def gru_by_hand(x: Array, w: Array, b: Array, h: Array, origin: bool) -> list[Array]:
    flat = w.reshape(-1)
    wg, wc = flat[: 2 * SIZE**2].reshape(SIZE, -1), flat[2 * SIZE**2 :].reshape(SIZE, SIZE)
    hidden = []
    for row in x:
        of_gates, of_candidate = (row + b)[: 2 * SIZE], (row + b)[2 * SIZE :]
        u, r = parts(ACTS["sigmoid"](of_gates + h @ wg), 2)
        new = np.tanh(of_candidate + (r * h) @ wc)
        h = u * h + (1 - u) * new if origin else (1 - u) * h + u * new
        hidden.append(h)
    return hidden


def run(
    build: Callable[[], list[Var]], feed: dict[str, Array | Ragged]
) -> tuple[list[Array], Scope]:
    with program() as p:
        outs = build()
    scope = Scope()
    for name, parameter in p.parameters.items():
        scope[name] = RNG.normal(size=parameter.shape).astype(np.float32)
    found = Executor(p, scope).run(feed, outs, roles=("forward",))
    return [each.values if isinstance(each, Ragged) else each for each in found], scope


@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize(
    ("acts", "peep", "first"),
    [
        (("sigmoid", "tanh", "tanh"), True, False),
        (("sigmoid", "tanh", "tanh"), False, True),
        (("tanh", "identity", "relu"), True, True),
    ],
)
def test_lstm_is_that_of_a_loop(
    acts: tuple[str, str, str], peep: bool, first: bool, is_reverse: bool
) -> None:
    x = fed(4 * SIZE)

    def build() -> list[Var]:
        h, c = (layers.data(name, (SIZE,)) if first else None for name in ("h", "c"))
        lists = layers.data("x", (4 * SIZE,), ragged=True)
        made = layers.dynamic_lstm(
            lists, 4 * SIZE, h, c, "w", "b", peep, is_reverse, acts[0], acts[1], acts[2]
        )
        return [made.hidden, made.cell]

    feed: dict[str, Array | Ragged] = {"x": x} | ({"h": FIRST, "c": -FIRST} if first else {})
    (hidden, cells), scope = run(build, feed)

    turn = -1 if is_reverse else 1
    for i, (start, end) in enumerate(zip(x.offsets, x.offsets[1:], strict=False)):
        h = FIRST[i] if first else np.zeros(SIZE)
        by_hand = lstm_by_hand(
            x.values[start:end][::turn], scope["w"], scope["b"], h, -h, acts, peep
        )
        for found, expected in zip((hidden, cells), by_hand, strict=True):
            rows = found[start:end][::turn]
            np.testing.assert_allclose(rows, np.reshape(expected, rows.shape), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize(("origin", "first"), [(False, False), (True, True)])
def test_gru_is_that_of_a_loop(origin: bool, first: bool, is_reverse: bool) -> None:
    x = fed(3 * SIZE)

    def build() -> list[Var]:
        start = layers.data("h", (SIZE,)) if first else None
        lists = layers.data("x", (3 * SIZE,), ragged=True)
        made = layers.dynamic_gru(lists, SIZE, "w", "b", is_reverse, h_0=start, origin_mode=origin)
        return [made]

    feed: dict[str, Array | Ragged] = {"x": x} | ({"h": FIRST} if first else {})
    (hidden,), scope = run(build, feed)

    turn = -1 if is_reverse else 1
    for i, (start, end) in enumerate(zip(x.offsets, x.offsets[1:], strict=False)):
        h = FIRST[i] if first else np.zeros(SIZE)
        expected = gru_by_hand(x.values[start:end][::turn], scope["w"], scope["b"], h, origin)
        rows = hidden[start:end][::turn]
        np.testing.assert_allclose(rows, np.reshape(expected, rows.shape), rtol=1e-4, atol=1e-5)


def scalar(x: Var) -> Var:
    """A scalar in which every element and its place count."""
    pooled = [layers.sequence_pool(layers.square(x), pool) for pool in ("sum", "first", "last")]
    return layers.reduce_sum(layers.fc(layers.concat(pooled), 1, bias=False))


def projected(width: int) -> Var:
    lists = layers.data("lists", dtype="int64", ragged=True)
    return layers.tanh(layers.embedding(lists, (6, width), param="t"))


def start(name: str) -> Var:
    return layers.fc(layers.data(f"x_{name}", (2,)), SIZE, act="tanh", param=name, bias=False)


FEED = {
    "lists": Ragged.of([[1, 4, 4], [], [2], [5, 0]]),
    "x_h": RNG.normal(size=(4, 2)).astype(np.float32),
    "x_c": RNG.normal(size=(4, 2)).astype(np.float32),
}


@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("peep", [False, True])
def test_gradient_of_lstm(peep: bool, is_reverse: bool) -> None:
    def build() -> Var:
        states = layers.dynamic_lstm(
            projected(4 * SIZE), 4 * SIZE, start("h"), start("c"), None, None, peep, is_reverse
        )
        return layers.sums([scalar(states.hidden), scalar(states.cell)])

    check_gradients(build, FEED)


def test_gradient_of_lstm_whose_cells_are_not_used() -> None:
    def build() -> Var:
        return scalar(layers.dynamic_lstm(projected(4 * SIZE), 4 * SIZE).hidden)

    check_gradients(build, {"lists": FEED["lists"]})


@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("origin", [False, True])
def test_gradient_of_gru(origin: bool, is_reverse: bool) -> None:
    def build() -> Var:
        return scalar(
            layers.dynamic_gru(
                projected(3 * SIZE),
                SIZE,
                None,
                None,
                is_reverse,
                h_0=start("h"),
                origin_mode=origin,
            )
        )

    check_gradients(build, {name: FEED[name] for name in ("lists", "x_h")})


def test_a_batch_of_empty_lists_has_no_states() -> None:
    x = Ragged(np.empty((0, 3 * SIZE), np.float32), np.zeros(3, np.int64))

    def build() -> list[Var]:
        return [layers.dynamic_gru(layers.data("x", (3 * SIZE,), ragged=True), SIZE)]

    assert run(build, {"x": x})[0][0].shape == (0, SIZE)


def test_what_does_not_fit_is_refused() -> None:
    with program(), pytest.raises(ProgramError, match=r"ragged floats of 3 × 5 columns"):
        layers.dynamic_gru(layers.data("x", (12,), ragged=True), 5)
    with program(), pytest.raises(ProgramError, match="not a multiple of 4"):
        layers.dynamic_lstm(layers.data("x", (12,), ragged=True), 10)
    with program(), pytest.raises(ProgramError, match="gate_activation is 'swish'"):
        layers.dynamic_gru(layers.data("x", (12,), ragged=True), 4, gate_activation="swish")


# --- a step that is written with layers -----------------------------------------------------------


def own_step(words: Var, first: Var, bias: Var) -> list[Var]:
    """Two states, one that begins with `first` and one with 0.5; the second sums the first."""
    with layers.Recurrence() as loop:
        word, offset = loop.element(words), loop.static(bias)
        before, total = loop.state(first), loop.state(size=SIZE, value=0.5)
        after = layers.fc([word, before], SIZE, act="tanh", bias="b") + offset
        loop.update(before, after)
        loop.update(total, total + after)
        loop.output(after, total + after)
    return loop.outputs()


def own_build() -> Var:
    words = layers.fc(layers.data("x", (2,), ragged=True), SIZE, param="in")
    first = layers.fc(layers.data("h", (SIZE,)), SIZE, param="first")
    bias = layers.fc(layers.data("c", (2,)), SIZE, param="static")
    outs = own_step(words, first, bias)
    weights = layers.fc(layers.concat(outs, axis=1), 1, param="last", bias=False)
    return layers.reduce_sum(layers.sequence_pool(weights))


def test_gradients_of_a_step_that_is_written_with_layers_are_those_of_finite_differences() -> None:
    rows = {"h": FIRST.astype(np.float64), "c": RNG.normal(size=(4, 2))}

    check_gradients(own_build, {"x": fed(2), **rows}, spread=0.7)


def test_a_step_that_is_written_with_layers_sees_each_element_in_order() -> None:
    with program() as built:
        numbers = layers.data("x", (1,), ragged=True)
        with layers.Recurrence() as loop:
            number, total = loop.element(numbers), loop.state(size=1)
            after = total + number
            loop.update(total, after)
            loop.output(after)
        (sums,) = loop.outputs()
    x = Ragged(np.arange(1.0, 7.0, dtype=np.float32), np.array([0, 3, 3, 6]))

    (found,) = Executor(built, Scope()).run({"x": x}, [sums], roles=("forward",))

    np.testing.assert_array_equal(found.values[:, 0], [1, 3, 6, 4, 9, 15])


def test_a_step_reads_examples_only_by_name() -> None:
    with program():
        words, row = layers.data("x", (2,), ragged=True), layers.data("c", (2,))
        loop = layers.Recurrence()
        loop.begin()
        state = loop.state(size=2)
        loop.update(state, loop.element(words) + row)
        loop.output(state)

        with pytest.raises(ProgramError, match="the step reads c"):
            loop.end()
