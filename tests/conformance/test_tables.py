"""The contract of every table, for each optimizer and several numbers of stripes.

The oracle is the published formula in float64, one row at a time, in a dictionary.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import ErrorCode, TableError
from psrt.kernels.tables.initialize import fill_block, fill_rows
from psrt.pserver.tables.dense_table import DenseTable
from psrt.pserver.tables.helper_threads import HelperThreads, Task
from psrt.pserver.tables.sparse_table import LARGE_ROWS, SparseTable
from psrt.pserver.tables.two_part_table import TwoPartTable
from tests.support.optimizer_formulas import EAGER, ELEMENT_WISE, LAZY, OPTIMIZERS, Published

WIDTH = 5
RATE = 0.1
STRANGE_IDS = np.array([0, -1, 1, 2**63 - 1, -(2**63), 977, -977, 12345678901], np.int64)


def over(optimizers: dict[str, specs.Optimizer]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("optimizer", optimizers.values(), ids=optimizers)


every_optimizer = over(OPTIMIZERS)
every_stripes = pytest.mark.parametrize("stripes", [1, 2, 7])


def table_of(optimizer: specs.Optimizer, stripes: int = 2, **changes: Any) -> SparseTable:
    return SparseTable(spec_of(optimizer, **changes), stripes)


def spec_of(optimizer: specs.Optimizer, **changes: Any) -> specs.SparseTableSpec:
    fields = {
        "name": "emb",
        "width": WIDTH,
        "initializer": specs.Uniform(-0.5, 0.5),
        "optimizer": optimizer,
        "learning_rate": specs.ConstantRate(RATE),
        "seed": 7,
    }
    return specs.SparseTableSpec(**{**fields, **changes})


def read(table: SparseTable, ids: np.ndarray) -> np.ndarray:
    out = np.full((len(ids), table.spec.width), np.nan, np.float32)
    table.read(table.route(ids), out)
    return out


def apply(table: SparseTable, ids: np.ndarray, gradients: np.ndarray) -> None:
    table.apply(table.route(ids), gradients, RATE)


def initial_rows(ids: np.ndarray) -> np.ndarray:
    out = np.empty((len(ids), WIDTH), np.float32)
    fill_rows(specs.Uniform(-0.5, 0.5), 7, ids, out)
    return out


def batches(seed: int, count: int, ids: int = 400, batch: int = 150) -> list[Any]:
    """Pairs of distinct ids and gradients."""
    rng = np.random.default_rng(seed)
    known = rng.integers(-(2**63), 2**63 - 1, ids, np.int64)
    return [
        (rng.choice(known, batch, replace=False), rng.standard_normal((batch, WIDTH), np.float32))
        for _ in range(count)
    ]


# --- sparse tables ---------------------------------------------------------------------------


@over(LAZY)
@every_stripes
def test_rows_follow_the_formula_of_their_optimizer(
    optimizer: specs.Optimizer, stripes: int
) -> None:
    table = table_of(optimizer, stripes)
    oracles: dict[int, Published] = {}
    for ids, gradients in batches(seed=1, count=12):
        apply(table, ids, gradients)
        for row_id, gradient in zip(ids.tolist(), gradients, strict=True):
            if row_id not in oracles:
                oracles[row_id] = Published(optimizer, initial_rows(np.array([row_id]))[0])
            oracles[row_id].apply(gradient, RATE)

    rows = read(table, np.array(list(oracles), np.int64))

    np.testing.assert_allclose(rows, [oracle.w for oracle in oracles.values()], atol=2e-5)
    assert table.rows == len(oracles)


@over(EAGER)
@every_stripes
def test_an_optimizer_that_is_not_lazy_moves_rows_without_a_gradient_as_published(
    optimizer: specs.Optimizer, stripes: int
) -> None:
    table = table_of(optimizer, stripes)
    (known, _), *rest = batches(seed=9, count=6, ids=40, batch=30)
    whole = Published(optimizer, initial_rows(known))
    for ids, gradients in [(known, np.ones((30, WIDTH), np.float32)), *rest]:
        mine = np.isin(ids, known)
        apply(table, ids, gradients)
        at = [known.tolist().index(row_id) for row_id in ids[mine]]
        dense = np.zeros((30, WIDTH))
        dense[at] = gradients[mine]
        whole.apply(dense, RATE)

    np.testing.assert_allclose(read(table, known), whole.w, atol=2e-5)


@every_optimizer
def test_the_number_of_stripes_changes_no_bit(optimizer: specs.Optimizer) -> None:
    tables = [table_of(optimizer, stripes) for stripes in (1, 3, 8)]
    for ids, gradients in batches(seed=2, count=6):
        for table in tables:
            apply(table, ids, gradients)

    ids = np.unique(np.concatenate([ids for ids, _ in batches(seed=2, count=6)]))
    one, three, eight = (read(table, ids).tobytes() for table in tables)

    assert one == three == eight


@over(LAZY)
def test_two_pservers_hold_the_bits_of_one_table(optimizer: specs.Optimizer) -> None:
    whole = table_of(optimizer)
    low, high = table_of(optimizer, last_shard=300), table_of(optimizer, first_shard=300)
    for ids, gradients in batches(seed=3, count=5):
        is_low = np.array([holds(low, row_id) for row_id in ids])
        apply(whole, ids, gradients)
        apply(low, ids[is_low], np.ascontiguousarray(gradients[is_low]))
        apply(high, ids[~is_low], np.ascontiguousarray(gradients[~is_low]))

    pages = [table.export(0, 10_000) for table in (low, high)]

    assert low.rows + high.rows == whole.rows
    assert all(read(whole, ids).tobytes() == rows.tobytes() for ids, rows, _ in pages)


def holds(table: SparseTable, row_id: np.int64) -> bool:
    try:
        table.route(np.array([row_id]))
    except TableError:
        return False
    return True


@every_stripes
def test_reading_an_untouched_row_gives_its_initial_value_and_creates_nothing(stripes: int) -> None:
    table = table_of(specs.Sgd(), stripes)

    rows = read(table, STRANGE_IDS)

    assert rows.tobytes() == initial_rows(STRANGE_IDS).tobytes()
    assert table.rows == 0
    assert table.version == 0


def test_every_int64_is_a_legal_id_and_an_id_may_be_read_twice() -> None:
    table = table_of(specs.Sgd())
    twice = np.concatenate([STRANGE_IDS, STRANGE_IDS])
    apply(table, STRANGE_IDS, np.ones((len(STRANGE_IDS), WIDTH), np.float32))

    rows = read(table, twice)

    expected = initial_rows(twice) - np.float32(RATE)
    np.testing.assert_array_equal(rows, expected)
    assert table.rows == len(STRANGE_IDS)


@every_optimizer
def test_the_padding_id_reads_as_zeros_and_ignores_gradients(optimizer: specs.Optimizer) -> None:
    table = table_of(optimizer, padding_id=0)
    ids = np.array([3, 0, 4], np.int64)

    apply(table, ids, np.ones((3, WIDTH), np.float32))
    rows = read(table, ids)

    assert not rows[1].any()
    assert rows[[0, 2]].all()
    assert table.rows == 2


def test_an_id_of_another_pserver_is_refused_and_nothing_is_changed() -> None:
    table = table_of(specs.Sgd(), first_shard=0, last_shard=1)
    ids = np.arange(100, dtype=np.int64)

    with pytest.raises(TableError, match="holds shards 0 to 0") as refused:
        apply(table, ids, np.ones((100, WIDTH), np.float32))

    assert refused.value.code is ErrorCode.TABLE_SHAPE
    assert table.rows == 0


@over(LAZY)
def test_a_table_grows_far_beyond_its_first_memory_and_keeps_every_row(
    optimizer: specs.Optimizer,
) -> None:
    table = table_of(optimizer, stripes=2)
    ids = np.arange(50_000, dtype=np.int64) * 1_000_003
    first = np.ones((1000, WIDTH), np.float32)
    for start in range(0, len(ids), 1000):
        apply(table, ids[start : start + 1000], first)

    rows = read(table, ids)

    expected = Published(optimizer, initial_rows(ids))
    expected.apply(np.ones((len(ids), WIDTH)), RATE)
    assert table.rows == len(ids)
    np.testing.assert_allclose(rows, expected.w, atol=1e-6)


def test_a_row_of_sixteen_weights_costs_at_most_95_bytes_by_sgd() -> None:
    table = table_of(specs.Sgd(), stripes=4, width=16)
    ids = np.arange(100_000, dtype=np.int64)

    table.apply(table.route(ids), np.ones((len(ids), 16), np.float32), RATE)

    assert table.nbytes / table.rows <= 95


@every_stripes
@pytest.mark.parametrize("page", [1, 7, 64, 100_000])
def test_export_pages_hold_every_row_once(stripes: int, page: int) -> None:
    table = table_of(specs.Adagrad(), stripes)
    ids, gradients = batches(seed=4, count=1)[0]
    apply(table, ids, gradients)

    seen: list[int] = []
    cursor, pages = 0, 0
    while pages == 0 or cursor:
        page_ids, rows, cursor = table.export(cursor, page)
        assert rows.tobytes() == read(table, page_ids).tobytes()
        seen += page_ids.tolist()
        pages += 1

    assert sorted(seen) == sorted(ids.tolist())
    assert pages <= math.ceil(len(ids) / page) + 1


def test_an_empty_table_exports_one_empty_page() -> None:
    ids, rows, cursor = table_of(specs.Sgd()).export(0, 10)

    assert (ids.shape, rows.shape, cursor) == ((0,), (0, WIDTH), 0)


def test_trainers_side_by_side_lose_no_update_and_no_row() -> None:
    # Whole numbers and a rate of 1/8 make float32 sums exact, so the order must not matter.
    table = table_of(specs.Sgd(), stripes=2, initializer=specs.Constant(0.0))
    ids = np.arange(3000, dtype=np.int64)
    gradients = np.full((len(ids), WIDTH), 8.0, np.float32)
    start = threading.Barrier(4)

    def push() -> None:
        start.wait(10.0)
        for first in range(0, 3000, 100):
            part = slice(first, first + 100)
            table.apply(table.route(ids[part]), gradients[part], 0.125)
            read(table, ids[part])

    threads = [threading.Thread(target=push) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)

    assert table.rows == len(ids)
    np.testing.assert_array_equal(read(table, ids), -4.0)


# --- large batches, by several threads ---


class TwoTogether(HelperThreads):
    """Two threads run the first two tasks of each run at once; `runs` counts tasks by run."""

    def __init__(self) -> None:
        super().__init__(1)
        self.runs: list[int] = []

    def run(self, tasks: Sequence[Task]) -> None:
        self.runs.append(len(tasks))
        meet = threading.Barrier(min(2, len(tasks)))

        def after_meeting(task: Task) -> None:
            meet.wait(30.0)
            task()

        super().run([partial(after_meeting, task) for task in tasks[:2]] + list(tasks[2:]))


@pytest.fixture
def together() -> Iterator[TwoTogether]:
    helpers = TwoTogether()
    yield helpers
    helpers.close()


LARGE_BATCHES: dict[str, dict[str, Any]] = {
    "plain": {"optimizer": specs.Adagrad()},
    "decaying": {"optimizer": specs.Adam(), "regularizer": specs.L2Decay(0.1)},
    "of all rows": {"optimizer": specs.Adam(lazy=False), "regularizer": specs.L1Decay(0.1)},
    "in halves": {"optimizer": specs.Adagrad(), "storage": "bfloat16"},
    "admitted": {"optimizer": specs.Sgd(), "admission": specs.CountFilter(2)},
}


def large_batches(count: int = 3) -> list[Any]:
    """Ids, some of them twice and many the padding id 0, and gradients."""
    rng = np.random.default_rng(12)
    ids = rng.integers(0, 2 * LARGE_ROWS, (count, LARGE_ROWS), np.int64)
    ids[:, ::7] = 0
    return [(row, rng.standard_normal((LARGE_ROWS, WIDTH), np.float32)) for row in ids]


@pytest.mark.parametrize("options", LARGE_BATCHES.values(), ids=LARGE_BATCHES)
def test_large_batches_give_the_same_bits_by_several_threads(
    options: dict[str, Any], together: TwoTogether
) -> None:
    spec = spec_of(**options, padding_id=0)
    alone, shared = SparseTable(spec, 3), SparseTable(spec, 3, helpers=together)
    for ids, gradients in large_batches():
        apply(alone, ids, gradients)
        apply(shared, ids, gradients)

        assert read(shared, ids).tobytes() == read(alone, ids).tobytes()

    everything = np.arange(2 * LARGE_ROWS)
    assert read(shared, everything).tobytes() == read(alone, everything).tobytes()
    assert (shared.rows, shared.refused) == (alone.rows, alone.refused)
    assert together.runs == [3] * 7


def test_large_batches_of_growing_rows_give_the_same_bits_by_several_threads(
    together: TwoTogether,
) -> None:
    spec = spec_of(specs.Adagrad(), growth=specs.Growth(2, 3.0), padding_id=0)
    alone, shared = TwoPartTable(spec, 3), TwoPartTable(spec, 3, helpers=together)
    counts = np.repeat(np.float32([[4, 4], [4, 0]]), LARGE_ROWS // 2, axis=0)
    for ids, gradients in large_batches():
        for table in (alone, shared):
            table.apply(table.route(ids), gradients, RATE, counts)

    rows = [np.empty((LARGE_ROWS, WIDTH), np.float32) for _ in range(2)]
    for table, out in zip((alone, shared), rows, strict=True):
        table.read(table.route(ids), out)

    assert rows[0].tobytes() == rows[1].tobytes()
    assert shared.describe()["grown_rows"] == alone.describe()["grown_rows"] > 0
    assert set(together.runs) == {3}


def test_small_batches_and_single_stripes_are_done_by_the_caller(together: TwoTogether) -> None:
    small, single = (SparseTable(spec_of(specs.Sgd()), n, helpers=together) for n in (3, 1))
    ids, gradients = large_batches(1)[0]

    apply(small, ids[1:], gradients[1:])
    read(small, ids[1:])
    assert not together.runs

    apply(single, ids, gradients)
    read(single, ids)
    assert together.runs == [1, 1]


def test_a_small_batch_that_moves_all_rows_of_a_large_table_is_a_large_one(
    together: TwoTogether,
) -> None:
    table = SparseTable(spec_of(specs.Adam(lazy=False)), 3, helpers=together)
    ids, few = np.arange(LARGE_ROWS - 1), np.arange(LARGE_ROWS, LARGE_ROWS + 10)
    gradients = np.ones((LARGE_ROWS, WIDTH), np.float32)

    apply(table, ids, gradients[1:])
    apply(table, few, gradients[:10])
    assert not together.runs
    apply(table, few, gradients[:10])
    assert together.runs == [3]


# --- dense tables ----------------------------------------------------------------------------


def block_of(optimizer: specs.Optimizer, offset: int = 0, size: int = 40) -> DenseTable:
    return DenseTable(
        specs.DenseTableSpec(
            name="w.block0",
            parameter="w",
            shape=(10, 4),
            offset=offset,
            size=size,
            initializer=specs.Normal(0.0, 0.1),
            optimizer=optimizer,
            learning_rate=specs.ConstantRate(RATE),
            seed=11,
        )
    )


@every_optimizer
def test_a_block_follows_the_formula_of_its_optimizer(optimizer: specs.Optimizer) -> None:
    table = block_of(optimizer)
    initial = np.empty(40, np.float32)
    fill_block(specs.Normal(0.0, 0.1), 11, 0, initial)
    oracle = Published(optimizer, initial)
    for gradient in np.random.default_rng(5).standard_normal((9, 40), np.float32):
        table.apply(gradient, RATE)
        oracle.apply(gradient, RATE)

    values, version = table.read()

    np.testing.assert_allclose(values, oracle.w, atol=2e-5)
    assert version == 9


@over(ELEMENT_WISE)
def test_blocks_of_a_parameter_hold_the_same_bits_as_the_whole(optimizer: specs.Optimizer) -> None:
    whole = block_of(optimizer)
    blocks = [block_of(optimizer, 0, 12), block_of(optimizer, 12, 20), block_of(optimizer, 32, 8)]
    for gradient in np.random.default_rng(6).standard_normal((4, 40), np.float32):
        whole.apply(gradient, RATE)
        for block in blocks:
            part = slice(block.spec.offset, block.spec.offset + block.spec.size)
            block.apply(gradient[part], RATE)

    joined = np.concatenate([block.read()[0] for block in blocks])

    assert joined.tobytes() == whole.read()[0].tobytes()


def test_a_snapshot_stays_what_it_was_and_is_shared_until_the_next_update() -> None:
    table = block_of(specs.Sgd())
    before, _ = table.read()
    kept = before.copy()
    shared = table.read()[0] is before

    table.apply(np.ones(40, np.float32), RATE)
    after, version = table.read()

    assert shared
    np.testing.assert_array_equal(before, kept)
    np.testing.assert_array_equal(after, kept - np.float32(RATE))
    assert version == 1
    assert not before.flags.writeable


def test_the_mean_of_trainers_is_their_sum_in_order_times_one_over_their_number() -> None:
    table = block_of(specs.Sgd())
    before = table.read()[0]
    gradients = list(np.random.default_rng(8).standard_normal((3, 40), np.float32))

    table.apply_mean(gradients, 3, RATE)

    mean = ((gradients[0] + gradients[1]) + gradients[2]) * np.float32(1 / 3)
    np.testing.assert_array_equal(table.read()[0], before - np.float32(RATE) * mean)
