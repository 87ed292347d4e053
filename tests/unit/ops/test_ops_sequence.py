"""Ops over the elements of each example: against lists, gradients, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from psrt import Executor, Ragged, Scope, layers, program
from psrt.core.errors import ErrorCode, ProgramError
from psrt.core.types import Array
from psrt.graph.program import Var
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(17)
TABLE = RNG.normal(size=(6, 3)).astype(np.float32)
LISTS = [[1, 4, 4], [], [2], [5, 0]]
OTHERS = [[3], [0, 0], [], [5, 1, 2]]
NOTHING: list[list[int]] = [[], [], [], []]
DENSE = RNG.normal(size=(4, 3)).astype(np.float32)
COUNTS = np.array([[2], [0], [1], [3]])


def rows_of(lists: list[list[int]]) -> list[Array]:
    return [TABLE[row] for row in lists]


def ragged_rows(name: str = "lists", act: bool = False) -> Var:
    """The rows of a table, one for each element; `act` so that gradients depend on them."""
    found = layers.embedding(layers.data(name, dtype="int64", ragged=True), (6, 3), param="t")
    return layers.tanh(found) if act else found


def numbers(name: str = "lists") -> Var:
    """One trained number an element, (n, 1)."""
    ids = layers.data(name, dtype="int64", ragged=True)
    return layers.embedding(ids, (6, 1), param="scores")


def features(size: int = 3) -> Var:
    return layers.fc(layers.data("x", (3,)), size, act="tanh", param="first")


def weighted(x: Var) -> Var:
    """A scalar in which every element of `x` (rows, …) counts differently."""
    return layers.reduce_sum(layers.fc(x, 1, param="last", bias=False))


def pooled(x: Var) -> Var:
    """A scalar of ragged rows in which neither elements nor their order cancel."""
    parts = [layers.sequence_pool(layers.tanh(x), pool) for pool in ("sum", "first", "last", "max")]
    return weighted(layers.concat(parts))


def run(
    build: Callable[[], Var | list[Var]],
    feed: Mapping[str, Array | Ragged],
    parameters: Mapping[str, Array] | None = None,
) -> list[Array | Ragged]:
    with program() as p:
        built = build()
    outs = built if isinstance(built, list) else [built]
    scope = Scope()
    scope.init_parameters(p)
    for name, value in ({"t": TABLE} | dict(parameters or {})).items():
        if name in p.parameters:
            scope[name] = value.astype(np.float32)
    executor = Executor(p, scope)
    executor.run(feed, outs, roles=("forward",))
    return executor.run(feed, outs, roles=("forward",))


def feed_of(lists: list[list[int]]) -> dict[str, Array | Ragged]:
    return {"lists": Ragged.of(lists)}


def by_example(found: Array | Ragged) -> list[Array]:
    assert isinstance(found, Ragged)
    return np.split(found.values, found.offsets[1:-1])


# --- pooling --------------------------------------------------------------------------------------

POOLS: dict[str, Callable[[Array], Array]] = {
    "sum": lambda rows: rows.sum(axis=0),
    "average": lambda rows: rows.mean(axis=0),
    "sqrt": lambda rows: np.asarray(rows.sum(axis=0) / np.sqrt(len(rows))),
    "max": lambda rows: rows.max(axis=0),
    "first": lambda rows: np.asarray(rows[0]),
    "last": lambda rows: np.asarray(rows[-1]),
}


@pytest.mark.parametrize("lists", [LISTS, NOTHING])
@pytest.mark.parametrize("pool", POOLS)
def test_pool_reduces_each_example_and_an_empty_one_to_zeros(
    pool: str, lists: list[list[int]]
) -> None:
    (found,) = run(lambda: layers.sequence_pool(ragged_rows(), pool), feed_of(lists))

    expected = [POOLS[pool](rows) if len(rows) else np.zeros(3) for rows in rows_of(lists)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_pool_of_fed_numbers_has_one_column() -> None:
    values = Ragged.of([[1.0, 2.0], [], [5.0]], "float32")

    (found,) = run(
        lambda: layers.sequence_pool(layers.data("v", ragged=True), "average"), {"v": values}
    )

    np.testing.assert_allclose(found, [[1.5], [0], [5]])


@pytest.mark.parametrize("pool", POOLS)
def test_gradient_of_pool(pool: str) -> None:
    check_gradients(lambda: weighted(layers.sequence_pool(ragged_rows(act=True), pool)), FEED)


def test_first_and_last_step_are_pools() -> None:
    steps = [layers.sequence_first_step, layers.sequence_last_step]

    found = run(lambda: [step(x) for x in [ragged_rows()] for step in steps], feed_of(LISTS))

    for each, pool in zip(found, ("first", "last"), strict=True):
        expected = [POOLS[pool](rows) if len(rows) else np.zeros(3) for rows in rows_of(LISTS)]
        np.testing.assert_array_equal(each, expected)


# --- elements that move ---------------------------------------------------------------------------

Case = tuple[Callable[[], Var], dict[str, Array | Ragged], list[Array]]
FEED: dict[str, Array | Ragged] = {"lists": Ragged.of(LISTS)}
BOTH: dict[str, Array | Ragged] = FEED | {"others": Ragged.of(OTHERS)}
SLICES: dict[str, Array | Ragged] = FEED | {
    "offset": np.array([[1], [0], [0], [1]]),
    "length": np.array([[2], [0], [0], [1]]),
}


def sliced(x: Var) -> Var:
    bounds = [layers.data(name, (1,), "int64") for name in ("offset", "length")]
    return layers.sequence_slice(x, *bounds)


def ids(name: str) -> Var:
    return layers.data(name, dtype="int64", ragged=True)


MOVES: dict[str, Case] = {
    "reverse": (
        lambda: layers.sequence_reverse(ragged_rows()),
        FEED,
        [rows[::-1] for rows in rows_of(LISTS)],
    ),
    "reverse ids": (
        lambda: layers.sequence_reverse(ids("lists")),
        FEED,
        [np.array(row[::-1]) for row in LISTS],
    ),
    "reverse nothing": (
        lambda: layers.sequence_reverse(ragged_rows()),
        feed_of(NOTHING),
        rows_of(NOTHING),
    ),
    "concat": (
        lambda: layers.sequence_concat([ragged_rows(), ragged_rows("others")]),
        BOTH,
        rows_of([a + b for a, b in zip(LISTS, OTHERS, strict=True)]),
    ),
    "concat of ids, one of them twice": (
        lambda: layers.sequence_concat([x for x in [ids("lists")] for _ in "ab"] + [ids("others")]),
        BOTH,
        [np.array(a + a + b) for a, b in zip(LISTS, OTHERS, strict=True)],
    ),
    "concat of nothing and something": (
        lambda: layers.sequence_concat([ragged_rows(), ragged_rows("others")]),
        BOTH | feed_of(NOTHING),
        rows_of(OTHERS),
    ),
    "expand": (
        lambda: layers.sequence_expand(layers.data("x", (3,)), ids("lists")),
        FEED | {"x": DENSE},
        [np.repeat(DENSE[i : i + 1], len(row), axis=0) for i, row in enumerate(LISTS)],
    ),
    "expand by nothing": (
        lambda: layers.sequence_expand(layers.data("x", (3,)), ids("lists")),
        feed_of(NOTHING) | {"x": DENSE},
        rows_of(NOTHING),
    ),
    "slice": (lambda: sliced(ragged_rows()), SLICES, rows_of([[4, 4], [], [], [0]])),
    "softmax": (
        lambda: layers.sequence_softmax(layers.data("v", ragged=True)),
        {"v": Ragged.of([[1.0, 2.0], [], [7.0], [0.0, 0.0]], "float32")},
        [
            np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum(),
            np.zeros(0),
            np.ones(1),
            np.array([0.5, 0.5]),
        ],
    ),
    "pad and unpad": (
        lambda: layers.sequence_unpad(*layers.sequence_pad(ragged_rows(), 9.0, 5)),
        FEED,
        rows_of(LISTS),
    ),
    "unpad of what was cut": (
        lambda: layers.sequence_unpad(*layers.sequence_pad(ragged_rows(), 9.0, 2)),
        FEED,
        [rows[:2] for rows in rows_of(LISTS)],
    ),
}


@pytest.mark.parametrize("case", MOVES)
def test_elements_go_where_lists_say(case: str) -> None:
    build, feed, expected = MOVES[case]

    (found,) = run(build, feed)

    for mine, theirs in zip(by_example(found), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


@pytest.mark.parametrize("maxlen", [2, 4])
@pytest.mark.parametrize("lists", [LISTS, NOTHING])
def test_pad_ends_short_examples_and_cuts_long_ones(lists: list[list[int]], maxlen: int) -> None:
    out, length = run(lambda: list(layers.sequence_pad(ragged_rows(), 9.0, maxlen)), feed_of(lists))

    expected = np.full((4, maxlen, 3), 9.0)
    for padded, rows in zip(expected, rows_of(lists), strict=True):
        padded[: len(rows)] = rows[:maxlen]
    np.testing.assert_allclose(out, expected)
    np.testing.assert_array_equal(length, [[min(len(row), maxlen)] for row in lists])


def test_pad_of_ids_stays_ids() -> None:
    out, _ = run(lambda: list(layers.sequence_pad(ids("lists"), -1, 3)), FEED)

    np.testing.assert_array_equal(out, [[1, 4, 4], [-1, -1, -1], [2, -1, -1], [5, 0, -1]])


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_mask_marks_the_elements(dtype: str) -> None:
    lengths = {"n": COUNTS}

    (mask,) = run(lambda: layers.sequence_mask(layers.data("n", (1,), "int64"), 3, dtype), lengths)

    assert isinstance(mask, np.ndarray)
    assert mask.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 0], [1, 1, 1]]
    assert mask.dtype == dtype


def test_steps_of_other_sizes_follow_each_other() -> None:
    """Memory is kept between steps; nothing of a longer batch may show in a shorter one."""
    with program() as p:
        x = ragged_rows()
        outs = [layers.sequence_reverse(x), layers.sequence_pool(x, "average")]
        outs += list(layers.sequence_pad(x, 0.0, 3))
    scope = Scope()
    scope.init_parameters(p)
    scope["t"] = TABLE
    executor = Executor(p, scope)

    for lists in ([[1, 2, 3], [4], [5, 0]], [[3]], [[], []], [[0] * 9] * 7):
        found = executor.run(feed_of(lists), outs, roles=("forward",))
        alone = Executor(p, scope).run(feed_of(lists), outs, roles=("forward",))
        for mine, theirs in zip(found, alone, strict=True):
            for a, b in ((mine, theirs),):
                np.testing.assert_array_equal(
                    a.values if isinstance(a, Ragged) else a,
                    b.values if isinstance(b, Ragged) else b,
                )


# --- gradients ------------------------------------------------------------------------------------


def attention() -> Var:
    """Softmax weights over rows expanded from features: pooled rows (rows, 3)."""
    share = layers.sequence_softmax(numbers())
    return layers.sequence_pool(layers.sequence_concat([share, numbers("others")]), "sqrt")


GRADIENTS: dict[str, tuple[Callable[[], Var], dict[str, Array | Ragged]]] = {
    "softmax": (attention, BOTH),
    "expand": (
        lambda: pooled(layers.sequence_expand(features(), ids("lists"))),
        FEED | {"x": DENSE},
    ),
    "concat": (
        lambda: pooled(layers.sequence_concat([ragged_rows(act=True), ragged_rows("others")])),
        BOTH,
    ),
    "reverse": (lambda: pooled(layers.sequence_reverse(ragged_rows())), FEED),
    "slice": (lambda: pooled(sliced(ragged_rows())), SLICES),
    "pad": (lambda: weighted(layers.tanh(layers.sequence_pad(ragged_rows(), 0.3, 4)[0])), FEED),
    "pad that cuts": (
        lambda: weighted(layers.tanh(layers.sequence_pad(ragged_rows(), 0.3, 2)[0])),
        FEED,
    ),
    "unpad": (
        lambda: pooled(
            layers.sequence_unpad(
                layers.reshape(features(12), (-1, 4, 3)), layers.data("n", (1,), "int64")
            )
        ),
        {"x": DENSE, "n": COUNTS},
    ),
    "a ragged var that two ops read": (
        lambda: pooled(layers.sequence_concat([x for x in [ragged_rows(act=True)] for _ in "ab"])),
        FEED,
    ),
}


@pytest.mark.parametrize("case", GRADIENTS)
def test_gradient(case: str) -> None:
    build, feed = GRADIENTS[case]

    check_gradients(lambda: scalar(build()), feed)


@pytest.mark.parametrize("case", ["reverse", "pad", "expand"])
def test_gradient_of_a_batch_without_elements_is_zero(case: str) -> None:
    build, feed = GRADIENTS[case]

    check_gradients(lambda: scalar(build()), feed | feed_of(NOTHING))


def scalar(x: Var) -> Var:
    return x if x.shape == () else weighted(layers.tanh(x))


# --- refusals -------------------------------------------------------------------------------------


def x(size: int = 3, name: str = "x") -> Var:
    return layers.data(name, (size,))


REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "pool of ordinary rows": (
        lambda: layers.sequence_pool(x()),
        r"argument input must be ragged rows of floats, not float32 \(-1, 3\)",
    ),
    "pool of ids": (
        lambda: layers.sequence_pool(ids("lists")),
        r"argument input must be ragged rows of floats, not ragged int64 \(-1,\)",
    ),
    "an unknown pool": (
        lambda: layers.sequence_pool(ragged_rows(), "median"),
        "pool 'median' is not one of sum, average, sqrt, max, first, last",
    ),
    "softmax of rows": (
        lambda: layers.sequence_softmax(ragged_rows()),
        r"layers.sequence_softmax.*argument input must hold one float an element.*\(-1, 3\)",
    ),
    "softmax of ordinary numbers": (
        lambda: layers.sequence_softmax(x(1)),
        r"argument input must be ragged, not float32 \(-1, 1\)",
    ),
    "expand by an ordinary var": (
        lambda: layers.sequence_expand(x(), x(2, "y")),
        r"argument y must be ragged, not float32 \(-1, 2\)",
    ),
    "expand of something without rows": (
        lambda: layers.sequence_expand(layers.create_parameter((2, 3)), ids("lists")),
        r"argument x must have a row for each example, not float32 \(2, 3\)",
    ),
    "concat of rows that differ": (
        lambda: layers.sequence_concat([ragged_rows(), numbers("others")]),
        r"parts of different types: ragged float32 \(-1, 3\) and ragged float32 \(-1, 1\)",
    ),
    "reverse of ordinary rows": (
        lambda: layers.sequence_reverse(x()),
        r"argument x must be ragged, not float32 \(-1, 3\)",
    ),
    "slice by floats": (
        lambda: layers.sequence_slice(ragged_rows(), x(1), x(1, "y")),
        r"argument offset must be int64 \(-1, 1\), not float32 \(-1, 1\)",
    ),
    "pad to no length": (
        lambda: layers.sequence_pad(ragged_rows(), 0.0, 0),
        "argument maxlen is 0",
    ),
    "pad of ordinary rows": (
        lambda: layers.sequence_pad(x(), 0.0, 4),
        r"argument x must be ragged, not float32 \(-1, 3\)",
    ),
    "unpad of rows without places": (
        lambda: layers.sequence_unpad(layers.data("y", ()), layers.data("n", (1,), "int64")),
        r"argument x must be \(batch, maxlen, …\), not float32 \(-1,\)",
    ),
    "mask of floats": (
        lambda: layers.sequence_mask(x(1), 3),
        r"argument x must be int64 \(-1, 1\), not float32 \(-1, 1\)",
    ),
    "mask of another dtype": (
        lambda: layers.sequence_mask(layers.data("n", (1,), "int64"), 3, "bool"),
        "argument dtype is 'bool'",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = REFUSALS[case]

    with program(), pytest.raises(ProgramError, match=complaint) as refused:
        call()

    assert refused.value.code is ErrorCode.SHAPE_MISMATCH


def test_slice_outside_of_its_example_fails_the_step() -> None:
    feed = SLICES | {"length": np.array([[2], [0], [2], [1]])}

    with pytest.raises(ProgramError, match="Example 2 has 1 elements, but the slice has 2 from"):
        run(lambda: sliced(ragged_rows()), feed)


def test_unpad_of_more_than_there_is_fails_the_step() -> None:
    feed = {"x": DENSE, "n": COUNTS + 1}

    with pytest.raises(ProgramError, match="Example 3 has 3 elements, but the slice has 4 from"):
        run(lambda: layers.sequence_unpad(x(), layers.data("n", (1,), "int64")), feed)


# --- neighbours, other widths, plain rows ---------------------------------------------------------


def joined(rows: Array, start: int, length: int, hole: float = 0.0) -> Array:
    """Each row and its neighbours, side by side."""
    outside = np.full(rows.shape[1:], hole)
    places = [[at + start + k for k in range(length)] for at in range(len(rows))]
    return np.array(
        [np.concatenate([rows[p] if 0 <= p < len(rows) else outside for p in ps]) for ps in places],
        rows.dtype,
    ).reshape(len(rows), length * rows.shape[1])


@pytest.mark.parametrize(("size", "start"), [(3, None), (2, None), (2, 1), (1, 0), (5, -4)])
def test_sequence_conv_reads_the_neighbours_of_an_element_within_its_example(
    size: int, start: int | None
) -> None:
    weight = RNG.normal(size=(3 * size, 4)).astype(np.float32)

    (found,) = run(
        lambda: layers.sequence_conv(ragged_rows(), 4, size, start, bias=False, param="conv"),
        feed_of(LISTS),
        {"conv": weight},
    )

    first = -(size // 2) if start is None else start
    for rows, result in zip(rows_of(LISTS), by_example(found), strict=True):
        np.testing.assert_allclose(result, joined(rows, first, size) @ weight, rtol=1e-5, atol=1e-6)


def test_gradient_of_sequence_conv() -> None:
    def build() -> Var:
        return pooled(layers.sequence_conv(ragged_rows(act=True), 2, 3, act="tanh"))

    check_gradients(build, FEED)


def test_ids_are_enumerated_in_windows_of_their_example() -> None:
    def build() -> Var:
        return layers.sequence_enumerate(layers.data("lists", dtype="int64", ragged=True), 2, 9)

    (found,) = run(build, feed_of(LISTS))

    assert [part.tolist() for part in by_example(found)] == [
        [[1, 4], [4, 4], [4, 9]],
        [],
        [[2, 9]],
        [[5, 0], [0, 9]],
    ]


def test_numbers_of_an_example_are_put_into_rows_of_another_width() -> None:
    (found,) = run(lambda: layers.sequence_reshape(ragged_rows(), 1), feed_of(LISTS))

    for rows, result in zip(rows_of(LISTS), by_example(found), strict=True):
        np.testing.assert_array_equal(result, rows.reshape(-1, 1))
    check_gradients(lambda: pooled(layers.sequence_reshape(ragged_rows(act=True), 1)), FEED)
    with pytest.raises(Exception, match=r"Example 0 of .* do not fill rows of 2"):
        run(lambda: layers.sequence_reshape(ragged_rows(), 2), feed_of(LISTS))


def test_lists_of_one_element_are_rows_of_examples() -> None:
    ones = [[1], [4], [2], [5]]

    (found,) = run(lambda: layers.sequence_rows(ragged_rows()), feed_of(ones))

    np.testing.assert_array_equal(found, TABLE[[1, 4, 2, 5]])
    feed = {"lists": Ragged.of(ones), "x": DENSE}
    check_gradients(
        lambda: weighted(layers.concat([layers.sequence_rows(ragged_rows(act=True)), features()])),
        feed,
    )
    with pytest.raises(Exception, match=r"Example 0 of .* has 3 elements; .* needs one of each"):
        run(lambda: layers.sequence_rows(ragged_rows()), feed_of(LISTS))


def test_padding_and_masks_are_as_long_as_the_longest_example() -> None:
    def build() -> list[Var]:
        padded, lengths = layers.sequence_pad(ragged_rows(), 7.0)
        return [padded, lengths, layers.sequence_mask(lengths)]

    padded, lengths, mask = run(build, feed_of(LISTS))

    assert lengths.tolist() == [[3], [0], [1], [2]]  # type: ignore[union-attr]
    assert mask.tolist() == [[1, 1, 1], [0, 0, 0], [1, 0, 0], [1, 1, 0]]  # type: ignore[union-attr]
    for rows, result in zip(rows_of(LISTS), padded, strict=True):  # type: ignore[arg-type]
        np.testing.assert_array_equal(result[: len(rows)], rows)
        assert (result[len(rows) :] == 7).all()


def test_rows_are_put_into_lists_of_other_lengths() -> None:
    lists, x = Ragged.of([[1, 4], [], [2], [5]]), RNG.normal(size=(4, 2)).astype(np.float32)

    def build() -> list[Var]:
        rows, ids = layers.data("x", (2,)), layers.data("ids", (1,), "int64", ragged=True)
        begins = layers.cast(layers.data("begins", ()), "int64")
        return [
            layers.sequence_regroup(rows, ids),
            layers.sequence_regroup(rows, offsets=[0, 3, 4]),
            layers.sequence_regroup(layers.sequence_regroup(rows, ids), begins),
        ]

    found = run(build, {"x": x, "ids": lists, "begins": np.array([0, 1, 1, 4], "f4")})

    for part, offsets in zip(found, ([0, 2, 2, 3, 4], [0, 3, 4], [0, 1, 1, 4]), strict=True):
        np.testing.assert_array_equal(part.offsets, offsets)
        np.testing.assert_array_equal(part.values, x)


def test_gradient_of_other_lists() -> None:
    def build() -> Var:
        rows = layers.fc(layers.data("x", (2,)), 2, act="tanh")
        firsts = layers.sequence_first_step(layers.sequence_regroup(rows, offsets=[0, 3, 4]))
        return layers.reduce_sum(firsts * firsts)

    check_gradients(build, {"x": RNG.normal(size=(4, 2))})


def test_lists_that_do_not_hold_the_rows_are_refused() -> None:
    def build() -> list[Var]:
        return [layers.sequence_regroup(layers.data("x", (2,)), offsets=[0, 2])]

    with pytest.raises(Exception, match="has 3 rows, which lists that begin at 0, 2 do not hold"):
        run(build, {"x": np.ones((3, 2), "f4")})
    with program(), pytest.raises(ProgramError, match="y or offsets, and not both"):
        layers.sequence_regroup(layers.data("x", (2,)))
