"""Rows by id, pooled, weighted and multiplied pairwise: against numpy, gradients, refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from psrt import Executor, Param, Ragged, Scope, layers, optimizer, program
from psrt.core.errors import ErrorCode, ProgramError
from psrt.core.types import Array
from psrt.graph.program import Var
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(23)
TABLE = RNG.normal(size=(6, 4)).astype(np.float32)
LISTS = [[1, 4, 4], [], [2], [5, 0]]
OTHERS = [[3], [0, 0], [], [5, 1, 2]]
WEIGHTS = [[0.5, -1.0, 2.0], [], [3.0], [1.0, -0.25]]
IDS = np.array([[1, 4], [4, 4], [0, 2], [5, 1]])
DENSE = RNG.normal(size=(4, 3)).astype(np.float32)
FEED: dict[str, Array | Ragged] = {
    "lists": Ragged.of(LISTS),
    "others": Ragged.of(OTHERS),
    "weights": Ragged.of(WEIGHTS, "float32"),
    "ids": IDS,
    "x": DENSE,
}
SIZE = (6, 4)
POOLS: dict[str, Callable[[Array], Array]] = {
    "sum": lambda rows: rows.sum(axis=0),
    "average": lambda rows: rows.mean(axis=0),
    "sqrt": lambda rows: np.asarray(rows.sum(axis=0) / np.sqrt(len(rows))),
    "max": lambda rows: rows.max(axis=0),
    "first": lambda rows: np.asarray(rows[0]),
    "last": lambda rows: np.asarray(rows[-1]),
}


def lists(name: str = "lists") -> Var:
    return layers.data(name, dtype="int64", ragged=True)


def ids() -> Var:
    return layers.data("ids", (2,), "int64")


def features(size: int) -> Var:
    return layers.fc(layers.data("x", (3,)), size, act="tanh", param="first")


def weighted(x: Var) -> Var:
    """A scalar in which every element of `x` counts differently."""
    return layers.reduce_sum(layers.fc(x, 1, param="last", bias=False))


def build_of(build: Callable[[], Var]) -> tuple[Callable[[], Var], dict[str, Array | Ragged]]:
    """With what of FEED it declares."""
    with program() as p:
        build()
    return build, {var.name: FEED[var.name] for var in p.data_vars()}


def compute(
    build: Callable[[], Var], feed: Mapping[str, Array | Ragged] | None = None
) -> Array | Ragged:
    with program() as p:
        out = build()
    scope = Scope()
    scope.init_parameters(p)
    if "t" in p.parameters:
        scope["t"] = np.resize(TABLE, p.parameters["t"].shape)
    executor = Executor(p, scope)
    fed = feed or {var.name: FEED[var.name] for var in p.data_vars()}
    return executor.run(fed, [out], roles=("forward",))[0]


# --- embedding ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 1), (4, 2), (4, 3, 2), (4,)])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_embedding_of_ids_of_any_shape(shape: tuple[int, ...], is_sparse: bool) -> None:
    fed = RNG.integers(0, 6, shape)

    found = compute(
        lambda: layers.embedding(
            layers.data("i", shape[1:], "int64"), SIZE, is_sparse, padding_idx=4, param="t"
        ),
        {"i": fed},
    )

    np.testing.assert_array_equal(found, TABLE[fed] * (fed != 4)[..., None])


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_negative_padding_counts_from_the_end_and_is_not_trained(is_sparse: bool) -> None:
    with program() as p:
        rows = layers.embedding(ids(), SIZE, is_sparse, padding_idx=-2, param="t")
        optimizer.Sgd(1.0).minimize(layers.reduce_sum(rows))
    scope = Scope()
    scope.init_parameters(p)
    before = scope["t"].copy()

    Executor(p, scope).run({"ids": IDS}, roles=("forward", "backward", "optimize"))

    assert p.parameters["t"].padding_id == p.ops[0].attrs["padding_id"] == 4
    assert not scope["t"][4].any()
    assert (scope["t"][[0, 1, 2, 5]] != before[[0, 1, 2, 5]]).all()


def test_any_id_may_be_the_padding_of_a_distributed_table() -> None:
    with program() as p:
        layers.embedding(ids(), SIZE, is_distributed=True, padding_idx=-1, param="t")

    assert p.parameters["t"].padding_id == -1


def test_gradient_of_embedding_of_three_dimensions() -> None:
    def build() -> Var:
        found = layers.embedding(layers.data("i", (3, 2), "int64"), SIZE)
        return weighted(layers.tanh(layers.flatten(found)))

    check_gradients(build, {"i": RNG.integers(0, 6, (4, 3, 2))})


def test_gradient_of_embedding_beside_other_features() -> None:
    """Rows come as columns of the gradient of all features, and stay there."""

    def build() -> Var:
        found = layers.embedding(layers.data("i", (3, 2), "int64"), SIZE)
        dense = layers.tanh(layers.data("x", (3,)))
        beside = [dense, layers.reshape(found, (-1, 6 * SIZE[1])), dense]
        return weighted(layers.concat(beside, axis=1))

    check_gradients(build, {"i": RNG.integers(0, 6, (4, 3, 2)), "x": DENSE})


def test_gradient_of_what_is_reshaped_beside_other_features() -> None:
    """The part of a wider gradient is used in place, with its strides."""

    def build() -> Var:
        x = layers.data("x", (3,))
        cubes = layers.reshape(layers.fc(x, 8, act="tanh"), (-1, 2, 2, 2))
        flat = layers.reshape(layers.tanh(cubes), (-1, 8))
        return weighted(layers.concat([layers.fc(x, 2, param="other"), flat], axis=1))

    check_gradients(build, {"x": DENSE})


def test_embedding_of_computed_ids_of_a_dense_table() -> None:
    build, feed = build_of(lambda: weighted(layers.embedding(layers.reshape(ids(), (-1, 1)), SIZE)))

    check_gradients(build, feed)


# --- slots ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("pool", POOLS)
def test_slots_of_any_kind_lie_side_by_side(pool: str, is_sparse: bool) -> None:
    found = compute(
        lambda: layers.slot_embeddings(
            [lists(), ids(), lists("others")], SIZE, pool, is_sparse, False, param="t"
        )
    )

    slots = [LISTS, IDS.tolist(), OTHERS]
    expected = [
        [POOLS[pool](TABLE[row]) if row else np.zeros(4) for row in example]
        for example in zip(*slots, strict=True)
    ]
    np.testing.assert_allclose(found, np.reshape(expected, (4, 12)), rtol=1e-6)


@pytest.mark.parametrize("padding", [None, 4])
@pytest.mark.parametrize("pool", POOLS)
def test_gradient_of_slots(pool: str, padding: int | None) -> None:
    build, feed = build_of(
        lambda: weighted(
            layers.slot_embeddings(
                [lists(), ids(), lists("others")], SIZE, pool, True, False, padding
            )
        )
    )

    check_gradients(build, feed)


@pytest.mark.parametrize("pool", POOLS)
def test_slots_without_any_id_are_zeros(pool: str) -> None:
    nothing = Ragged.of([[], [], []])

    found = compute(
        lambda: layers.slot_embeddings(
            [lists(), lists("others")], SIZE, pool, is_distributed=False, param="t"
        ),
        {"lists": nothing, "others": nothing},
    )

    np.testing.assert_array_equal(found, np.zeros((3, 8)))


def test_slots_of_width_one_are_a_linear_model() -> None:
    found = compute(
        lambda: layers.slot_embeddings([lists()], (6, 1), is_distributed=False, param="t")
    )

    weights = np.resize(TABLE, (6, 1))
    np.testing.assert_allclose(found, [weights[row].sum(axis=0) for row in LISTS], rtol=1e-6)


def test_steps_of_other_sizes_follow_each_other() -> None:
    """Joined indexes lie in kept memory; a shorter batch sees nothing of a longer one."""
    with program() as p:
        slots = [lists(), ids(), lists("others")]
        out = layers.slot_embeddings(slots, SIZE, is_distributed=False, param="t")
    scope = Scope()
    scope.init_parameters(p)
    executor = Executor(p, scope)

    for rows in (4, 2, 3, 1, 4):
        fed: dict[str, Array | Ragged] = {
            "lists": Ragged.of(LISTS[:rows]),
            "others": Ragged.of(OTHERS[:rows]),
            "ids": IDS[:rows],
        }
        (found,) = executor.run(fed, [out], roles=("forward",))
        (alone,) = Executor(p, scope).run(fed, [out], roles=("forward",))
        np.testing.assert_array_equal(found, alone)


# --- weighted rows --------------------------------------------------------------------------------


def values() -> Var:
    return layers.data("weights", ragged=True)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_weighted_embedding_sums_value_times_row(is_sparse: bool) -> None:
    found = compute(
        lambda: layers.weighted_embedding(lists(), values(), SIZE, is_sparse, param="t")
    )

    pairs = zip(LISTS, WEIGHTS, strict=True)
    expected = [
        sum((w * TABLE[i] for i, w in zip(*pair, strict=True)), np.zeros(4)) for pair in pairs
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("padding", [None, 4])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_gradient_of_weighted_embedding(is_sparse: bool, padding: int | None, width: int) -> None:
    build, feed = build_of(
        lambda: weighted(
            layers.tanh(
                layers.weighted_embedding(
                    lists(), values(), (6, width), is_sparse, padding_idx=padding
                )
            )
        )
    )

    check_gradients(build, feed)


def with_computed_values(table: Param) -> Var:
    """Values of ragged ids and of (rows, k) ids, both computed from parameters."""
    others = layers.data("others", dtype="int64", ragged=True)
    scores = layers.embedding(others, (6, 1), param="scores")
    by_list = layers.weighted_embedding(others, scores, SIZE, param=table)
    by_ids = layers.weighted_embedding(ids(), features(2), SIZE, param=table)
    return weighted(layers.concat([by_list, by_ids]))


@pytest.mark.parametrize("trains_table", [True, False])
def test_gradient_of_weighted_embedding_reaches_computed_values(trains_table: bool) -> None:
    build, feed = build_of(lambda: with_computed_values(Param("t", trainable=trains_table)))

    check_gradients(build, feed)


# --- interactions ---------------------------------------------------------------------------------

FIELDS = RNG.normal(size=(4, 5, 3)).astype(np.float32)


def products_of_pairs(fields: Array) -> Array:
    """Σ over i < j of v_i · v_j by column."""
    pairs = [fields[:, i] * fields[:, j] for i in range(5) for j in range(i)]
    return np.asarray(np.sum(pairs, axis=0))


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("is_flat", [False, True])
def test_fm_interaction_sums_the_products_of_all_pairs(is_flat: bool, by_column: bool) -> None:
    shape = (15,) if is_flat else (5, 3)

    found = compute(
        lambda: layers.fm_interaction(layers.data("v", shape), 3, by_column),
        {"v": FIELDS.reshape(4, *shape)},
    )

    expected = products_of_pairs(FIELDS)
    expected = expected if by_column else expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("by_column", [False, True])
def test_gradient_of_fm_interaction(by_column: bool, width: int) -> None:
    build, feed = build_of(
        lambda: weighted(layers.tanh(layers.fm_interaction(features(4 * width), width, by_column)))
    )

    check_gradients(build, feed)


def test_cosine_of_rows_and_zero_beside_a_zero_row() -> None:
    a, b = DENSE.copy(), DENSE[::-1].copy()
    a[0] = 0

    found = compute(
        lambda: layers.cos_sim(layers.data("a", (3,)), layers.data("b", (3,))), {"a": a, "b": b}
    )

    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    expected = (a * b).sum(axis=1) / np.where(norms, norms, 1)
    np.testing.assert_allclose(found, expected[:, None], rtol=1e-5)


def test_gradient_of_cosine() -> None:
    def build() -> Var:
        x = features(4)
        return weighted(layers.cos_sim(x, layers.fc(x, 4, act="tanh")))

    check_gradients(build, {"x": DENSE})


def test_gradient_of_the_cosine_of_ragged_rows() -> None:
    def build() -> Var:
        rows = layers.embedding(lists(), (6, 4), param="t")
        users = layers.sequence_expand(features(4), rows)
        return weighted(layers.sequence_pool(layers.cos_sim(rows, users)))

    check_gradients(build, {"lists": FEED["lists"], "x": DENSE})


# --- refusals -------------------------------------------------------------------------------------


def x(*shape: int, name: str = "x") -> Var:
    return layers.data(name, shape)


REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "ids that are floats": (
        lambda: layers.embedding(x(3), SIZE),
        r"layers.embedding.*argument input must hold int64 ids, not float32 \(-1, 3\)",
    ),
    "a table of another dtype": (
        lambda: layers.embedding(ids(), SIZE, dtype="float64"),
        "argument dtype is 'float64'",
    ),
    "a padding that is no row": (
        lambda: layers.embedding(ids(), SIZE, padding_idx=6),
        "argument padding_idx is 6, which is no row of a table of 6 rows",
    ),
    "a padding before the first row": (
        lambda: layers.slot_embeddings([ids()], SIZE, is_distributed=False, padding_idx=-7),
        "argument padding_idx is -7, which is no row of a table of 6 rows",
    ),
    "a padding that is a fraction": (
        lambda: layers.embedding(ids(), SIZE, padding_idx=1.5),  # type: ignore[arg-type]
        "argument padding_idx is 1.5, not a whole number",
    ),
    "slots of three dimensions": (
        lambda: layers.slot_embeddings([layers.data("i", (2, 2), "int64")], SIZE),
        r"argument input must be \(batch, k\) ids, not int64 \(-1, 2, 2\)",
    ),
    "weights that are ids": (
        lambda: layers.weighted_embedding(ids(), layers.data("v", (2,), "int64"), SIZE),
        r"argument values must hold floats, not int64 \(-1, 2\)",
    ),
    "weights of another shape": (
        lambda: layers.weighted_embedding(ids(), x(3), SIZE),
        r"argument values is float32 \(-1, 3\), argument input is int64 \(-1, 2\)",
    ),
    "ordinary weights of ragged ids": (
        lambda: layers.weighted_embedding(lists(), x(1), SIZE),
        r"argument values is float32 \(-1, 1\), argument input is ragged int64 \(-1,\)",
    ),
    "fields of a width that does not divide": (
        lambda: layers.fm_interaction(x(10), 3),
        r"argument width 3 does not divide argument input of shape \(-1, 10\)",
    ),
    "fields of no width": (
        lambda: layers.fm_interaction(x(10)),
        r"argument width None does not divide",
    ),
    "fields that are ids": (
        lambda: layers.fm_interaction(layers.data("i", (2, 3), "int64")),
        "argument input must hold floats",
    ),
    "cosine of rows that differ": (
        lambda: layers.cos_sim(x(3), x(4, name="y")),
        r"argument y is float32 \(-1, 4\), argument x is float32 \(-1, 3\)",
    ),
    "cosine of cubes": (
        lambda: layers.cos_sim(x(3, 2), x(3, 2, name="y")),
        r"argument x must have 2 dimensions, not float32 \(-1, 3, 2\)",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = REFUSALS[case]

    with program(), pytest.raises(ProgramError, match=complaint) as refused:
        call()

    assert refused.value.code in (ErrorCode.SHAPE_MISMATCH, ErrorCode.PROGRAM_INVALID)
