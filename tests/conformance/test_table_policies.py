"""Every optimizer, admission, lifecycle and storage of a sparse table works with every other.

All pairs of options are walked (all combinations of a few values each). The oracle keeps rows in a
dictionary: the published formula for those that were admitted, and the ids that were dropped.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.kernels.tables.initialize import fill_rows
from psrt.pserver.eviction.policies import Dropped, EvictionPolicy, by_shrink
from psrt.pserver.eviction.sweeping import sweep
from psrt.pserver.tables.sparse_table import SparseTable
from psrt.pserver.tables.two_part_table import RowsTable, TwoPartTable
from tests.support.optimizer_formulas import CTR, OPTIMIZERS, Published

WIDTH, RATE, HOUR = 4, 0.1, 480_000
EVERY = OPTIMIZERS | CTR
ADMISSIONS: dict[str, specs.Admission | None] = {
    "all": None,
    "counted": specs.CountFilter(3),
    "drawn": specs.Probability(0.5),
    "scored": specs.ShowClick("show", "click", 0.25),
}
LIVES: dict[str, specs.Lifecycle | None] = {
    "for_ever": None,
    "rounds": specs.Lifecycle(ttl_rounds=3),
    "days": specs.Lifecycle(ttl_days=1),
    "score": specs.Lifecycle(delete_score=0.35, decay=0.5),
}
GROWTHS: dict[str, specs.Growth | None] = {"whole": None, "grown": specs.Growth(1, 0.25)}
TOLERANCE = {"float32": 2e-5, "float16": 2e-2, "bfloat16": 1e-1}
# A row moves only with its gradients: what a table of all rows does to the others has its own test.
LAZY = [name for name, spec in EVERY.items() if getattr(spec, "lazy", True)]


def pairs(*options: list[str]) -> list[tuple[str, ...]]:
    """Few combinations of options in which each two values of two options meet (greedy cover)."""
    missing = {
        (i, a, j, b)
        for (i, one), (j, other) in itertools.combinations(enumerate(options), 2)
        for a, b in itertools.product(one, other)
    }
    met = {
        row: {(i, a, j, b) for (i, a), (j, b) in itertools.combinations(enumerate(row), 2)}
        for row in itertools.product(*options)
    }
    chosen = []
    while missing:
        best = max(met, key=lambda row: len(met[row] & missing))
        chosen.append(best)
        missing -= met[best]
    return chosen


COMBINATIONS = pairs(LAZY, list(ADMISSIONS), list(LIVES), list(TOLERANCE), list(GROWTHS))


def spec_of(optimizer: specs.Optimizer, **changes: Any) -> specs.SparseTableSpec:
    spec = specs.SparseTableSpec(
        *("emb", WIDTH, specs.Uniform(-0.5, 0.5), optimizer, specs.ConstantRate(RATE), 7)
    )
    return replace(spec, **changes)


def table_of(spec: specs.SparseTableSpec, hours: Any = lambda: HOUR) -> RowsTable:
    if spec.growth is not None:
        return TwoPartTable(spec, 2, hours)
    return SparseTable(spec, 2, None, hours)


def read(table: RowsTable, ids: np.ndarray) -> np.ndarray:
    out = np.full((len(ids), WIDTH), np.nan, np.float32)
    table.read(table.route(ids), out)
    return out


def begins(spec: specs.SparseTableSpec, ids: np.ndarray) -> np.ndarray:
    """The initial values of rows as stored: reads of ids without pushes."""
    width = WIDTH if spec.growth is None else spec.growth.embed_width
    out = np.zeros((len(ids), WIDTH), np.float32)
    part = np.empty((len(ids), width), np.float32)
    fill_rows(spec.initializer, spec.seed, ids, part)
    out[:, :width] = part
    return out


class Oracle:
    """Rows by id; of a growing table only the short parts are followed."""

    def __init__(self, spec: specs.SparseTableSpec, admitted: set[int]) -> None:
        self.spec, self._drawn = spec, admitted
        self.width = WIDTH if spec.growth is None else spec.growth.embed_width
        self.rows: dict[int, Published] = {}
        self.shows: Counter[int] = Counter()
        self.pushed: dict[int, int] = {}

    def push(self, version: int, ids: np.ndarray, gradients: np.ndarray) -> None:
        for row_id, gradient in zip(ids.tolist(), gradients, strict=True):
            self.shows[row_id] += 1
            if row_id in self.rows or self._lets(row_id):
                first = begins(self.spec, np.array([row_id]))[0, : self.width]
                row = self.rows.setdefault(row_id, Published(self.spec.optimizer, first))
                row.apply(gradient[: self.width], RATE)
                self.pushed[row_id] = version

    def _lets(self, row_id: int) -> bool:
        match self.spec.admission:
            case specs.CountFilter() | specs.ShowClick():  # 3 shows of 0.1 are a score of 0.3
                return self.shows[row_id] >= 3
            case specs.Probability():
                return row_id in self._drawn
        return True


def drawn(ids: np.ndarray) -> set[int]:
    """The ids that a table of the seed draws, found by a table without other policies."""
    table = table_of(spec_of(specs.Sgd(), admission=ADMISSIONS["drawn"]))
    table.apply(table.route(ids), np.ones((len(ids), WIDTH), np.float32), RATE)
    return set(table.export(0, 10_000)[0].tolist())


@pytest.mark.parametrize(("optimizer", "admission", "life", "storage", "growth"), COMBINATIONS)
def test_options_of_a_table_compose(
    optimizer: str, admission: str, life: str, storage: str, growth: str
) -> None:
    spec = spec_of(
        EVERY[optimizer],
        admission=ADMISSIONS[admission],
        lifecycle=LIVES[life],
        storage=storage,
        growth=GROWTHS[growth],
    )
    rng, known = np.random.default_rng(5), np.arange(60, dtype=np.int64) * 1_000_003
    table, oracle = table_of(spec), Oracle(spec, drawn(known))
    for version in range(1, 9):
        ids = rng.choice(known[: 60 if version < 5 else 30], 20, replace=False)
        gradients = rng.standard_normal((20, WIDTH), np.float32)
        table.apply(table.route(ids), gradients, RATE)
        oracle.push(version, ids, gradients)

    found = sorted(table.export(0, 10_000)[0].tolist())
    rows = read(table, known)[:, : oracle.width]
    dropped = sweep(table, by_shrink(spec, table.version, HOUR), lambda: None, decay=0.5)

    assert found == sorted(oracle.rows)
    want = begins(spec, known)[:, : oracle.width].astype(np.float64)
    for place, row_id in enumerate(known.tolist()):
        if row_id in oracle.rows:
            want[place] = oracle.rows[row_id].w
    # The formulas that divide by small sums magnify what 16 bits have lost.
    if storage == "float32" or optimizer in ("sgd", "momentum", "add", "ctr_sgd"):
        np.testing.assert_allclose(rows, want, atol=TOLERANCE[storage])
    assert np.isfinite(rows).all()
    assert left(table) == sorted(oracle.rows.keys() - ended(oracle))
    assert dropped.total == len(oracle.rows) - table.rows


def left(table: RowsTable) -> list[int]:
    return sorted(table.export(0, 10_000)[0].tolist())


def ended(oracle: Oracle) -> set[int]:
    """Rows past 3 rounds at version 8, or with a score below 0.35 once it was halved: fewer than 7
    shows since they were admitted."""
    match oracle.spec.lifecycle:
        case specs.Lifecycle(ttl_rounds=limit) if limit:
            return {i for i, version in oracle.pushed.items() if 8 - version > limit}
        case specs.Lifecycle(delete_score=limit) if limit:
            waits = 0 if oracle.spec.admission is None else 2
            waits = 0 if isinstance(oracle.spec.admission, specs.Probability) else waits
            return {i for i in oracle.rows if (oracle.shows[i] - waits) * 0.1 * 0.5 < limit}
    return set()


def test_every_two_values_of_two_options_meet() -> None:
    options = [LAZY, list(ADMISSIONS), list(LIVES), list(TOLERANCE), list(GROWTHS)]
    met = {
        (i, a, j, b)
        for row in COMBINATIONS
        for (i, a), (j, b) in itertools.combinations(enumerate(row), 2)
    }

    wanted = sum(len(a) * len(b) for a, b in itertools.combinations(options, 2))

    assert len(met) == wanted
    assert len(COMBINATIONS) < 120


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("name", [name for name in EVERY if name not in LAZY])
def test_optimizers_that_move_all_rows_move_the_admitted_ones(name: str, growth: str) -> None:
    spec = spec_of(EVERY[name], admission=specs.CountFilter(2), growth=GROWTHS[growth])
    table, ids = table_of(spec), np.arange(10, dtype=np.int64)
    ones = np.ones((10, WIDTH), np.float32)
    for _ in range(2):
        table.apply(table.route(ids[:5]), ones[:5], RATE)
    before = read(table, ids)

    table.apply(table.route(ids[5:]), ones[5:], RATE)

    moved = (read(table, ids) != before).any(axis=1)
    assert moved.tolist() == [True] * 5 + [False] * 5


# --- admission -------------------------------------------------------------------------------


def test_an_id_that_is_not_admitted_reads_as_its_initial_value_and_is_counted() -> None:
    spec = spec_of(specs.Sgd(), admission=specs.CountFilter(2))
    table, ids = table_of(spec), np.array([3, -4, 5], np.int64)

    table.apply(table.route(ids), np.ones((3, WIDTH), np.float32), RATE)

    np.testing.assert_array_equal(read(table, ids), begins(spec, ids))
    assert (table.rows, table.refused) == (0, 3)


def test_shows_and_clicks_of_a_push_decide_over_its_ids() -> None:
    spec = spec_of(specs.Sgd(), admission=specs.ShowClick("show", "click", 1.0))
    table, ids = table_of(spec), np.array([1, 2, 3], np.int64)
    counts = np.array([[1, 1], [5, 0], [10, 0]], np.float32)

    table.apply(table.route(ids), np.ones((3, WIDTH), np.float32), RATE, counts)

    assert left(table) == [1, 3]


def test_adagrad_divides_a_gradient_by_its_shows() -> None:
    table, plain = (
        table_of(spec_of(specs.CtrAdagrad(show_scale=scales))) for scales in (True, False)
    )
    ids, gradients = np.array([1, 2, 3], np.int64), np.full((3, WIDTH), 8.0, np.float32)
    counts = np.array([[4, 0], [0, 0], [np.inf, 0]], np.float32)

    table.apply(table.route(ids), gradients, RATE, counts)
    plain.apply(plain.route(ids), gradients / np.float32([[4], [1], [1]]), RATE, counts)

    np.testing.assert_array_equal(read(table, ids), read(plain, ids))


# --- growth ----------------------------------------------------------------------------------


def growing(threshold: float, optimizer: specs.Optimizer | None = None, **changes: Any) -> Any:
    growth = specs.Growth(1, threshold)
    return table_of(spec_of(optimizer or specs.Sgd(), growth=growth, **changes))


def test_a_row_grows_with_the_push_that_brings_its_score_to_the_threshold() -> None:
    table, ids = growing(1.0), np.array([7], np.int64)
    ones = np.ones((1, WIDTH), np.float32)

    shown = []
    for clicks in (0, 0, 1, 0):  # scores 0.1, 0.2, 1.2, 1.3
        table.apply(table.route(ids), ones, RATE, np.array([[1, clicks]], np.float32))
        shown.append(read(table, ids)[0])

    assert [bool(row[1:].any()) for row in shown] == [False, False, True, True]
    np.testing.assert_allclose(shown[3][1:], shown[2][1:] - np.float32(RATE), rtol=1e-6)
    short = begins(table.spec, ids)[0, 0]
    np.testing.assert_allclose([row[0] for row in shown], short - RATE * np.arange(1, 5), rtol=1e-5)


def test_a_row_that_has_grown_stays_long_when_its_score_falls() -> None:
    life = specs.Lifecycle(delete_score=1e-9, decay=0.001)
    table, ids = growing(0.5, lifecycle=life), np.array([7], np.int64)
    ones = np.ones((1, WIDTH), np.float32)
    table.apply(table.route(ids), ones, RATE, np.array([[1, 1]], np.float32))
    sweep(table, by_shrink(table.spec, 1, HOUR), lambda: None, decay=0.001)

    table.apply(table.route(ids), ones, RATE, np.array([[0, 0]], np.float32))

    assert table.describe()["grown_rows"] == 1
    assert read(table, ids)[0, 1:].all()


def test_a_row_that_is_dropped_loses_both_parts() -> None:
    table, ids = growing(0.5), np.arange(300, dtype=np.int64)
    ones, clicked = np.ones((300, WIDTH), np.float32), np.ones((300, 2), np.float32)
    table.apply(table.route(ids), ones, RATE, clicked)
    table.apply(table.route(ids[200:]), ones[200:], RATE, clicked[200:])

    dropped = sweep(table, EvictionPolicy(table.version, HOUR, least_score=1.5), lambda: None)

    assert (dropped.rows["score"], table.rows, table.describe()["grown_rows"]) == (200, 100, 100)
    np.testing.assert_array_equal(read(table, ids[:200]), begins(table.spec, ids[:200]))


def test_pages_of_a_growing_table_hold_whole_rows() -> None:
    table, ids = growing(0.5), np.arange(50, dtype=np.int64)
    counts = np.zeros((50, 2), np.float32)
    counts[:20] = 1
    table.apply(table.route(ids), np.ones((50, WIDTH), np.float32), RATE, counts)

    page_ids, rows, _ = table.export(0, 100)

    assert sorted(page_ids.tolist()) == ids.tolist()
    assert rows.tobytes() == read(table, page_ids).tobytes()
    assert (rows[:, 1:] != 0).any(axis=1).sum() == 20


# --- lifecycle -------------------------------------------------------------------------------


def filled(life: specs.Lifecycle, hours: Any = lambda: HOUR, rows: int = 20_000) -> RowsTable:
    table = table_of(spec_of(specs.Adagrad(), lifecycle=life), hours)
    ids = np.arange(rows, dtype=np.int64)
    table.apply(table.route(ids), np.ones((rows, WIDTH), np.float32), RATE)
    return table


def test_rows_that_were_not_pushed_for_days_end() -> None:
    now = [HOUR]
    table = filled(specs.Lifecycle(ttl_days=2), lambda: now[0])
    now[0] += 40
    young = np.arange(100, dtype=np.int64)
    table.apply(table.route(young), np.ones((100, WIDTH), np.float32), RATE)

    early = sweep(table, EvictionPolicy(2, HOUR + 48, ttl_hours=48), lambda: None)
    late = sweep(table, EvictionPolicy(2, HOUR + 49, ttl_hours=48), lambda: None)

    assert (early.total, late.rows["days"]) == (0, 19_900)
    assert left(table) == young.tolist()


def test_a_dry_run_tells_what_a_shrink_then_does() -> None:
    table = filled(specs.Lifecycle(delete_score=0.15, decay=0.9))
    often = np.arange(0, 20_000, 2, dtype=np.int64)
    table.apply(table.route(often), np.ones((10_000, WIDTH), np.float32), RATE)
    before = read(table, often).tobytes()

    planned = sweep(table, shrink_of(table), lambda: None, decay=0.9, dry_run=True)
    again = sweep(table, shrink_of(table), lambda: None, decay=0.9, dry_run=True)
    kept = table.rows
    done = sweep(table, shrink_of(table), lambda: None, decay=0.9)

    assert planned == again == done
    assert (kept, done.rows["score"], table.rows) == (20_000, 10_000, 10_000)
    assert read(table, often).tobytes() == before


@pytest.mark.parametrize(("least", "decay"), [(0.09, 0.9), (0.784, 0.98), (0.49, 0.7)])
def test_a_dry_run_counts_scores_at_the_limit_as_a_shrink_does(least: float, decay: float) -> None:
    table = table_of(spec_of(specs.Sgd(), lifecycle=specs.Lifecycle(0, 0, 0, least, decay)))
    ids = np.arange(400, dtype=np.int64)
    counts = np.stack([ids + 1, np.zeros(400)], 1).astype(np.float32)
    table.apply(table.route(ids), np.ones((400, WIDTH), np.float32), RATE, counts)
    assert np.isclose(0.1 * counts[:, 0] * decay, least).sum() == 1

    planned = sweep(table, shrink_of(table), lambda: None, decay=decay, dry_run=True)
    done = sweep(table, shrink_of(table), lambda: None, decay=decay)

    assert planned.rows == done.rows


def shrink_of(table: RowsTable) -> EvictionPolicy:
    return by_shrink(table.spec, table.version, HOUR)


def test_training_goes_on_between_the_slices_of_a_sweep() -> None:
    table = filled(specs.Lifecycle(delete_score=0.15))
    new, one = itertools.count(1_000_000), np.ones((1, WIDTH), np.float32)

    def push() -> None:
        ids = np.array([next(new)], np.int64)
        table.apply(table.route(ids), one, RATE, np.array([[1, 1]], np.float32))

    dropped = sweep(table, shrink_of(table), push)

    pushed = next(new) - 1_000_000
    assert isinstance(dropped, Dropped)
    assert dropped.rows["score"] == 20_000
    assert table.rows == pushed > 1
