"""Per-row counters and eviction tests, compared with plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.specs.policy_rules import MOST_ROUNDS
from psrt.kernels.optimizers.row_headers import VERSION_WORD
from psrt.kernels.tables import row_eviction
from psrt.kernels.tables.row_eviction import AGE_BINS, REASONS
from psrt.pserver.eviction.policies import (
    LONGEST_WITHOUT,
    Dropped,
    EvictionPolicy,
    by_age,
    by_memory,
    by_shrink,
    rows_too_many,
)

SEEN, SHOW, CLICK, WORDS = 4, 5, 6, 10
HOUR, VERSION = 490_000, 10_000
NONCLICK, CLICKED = 0.1, 1.0


def rows_of(count: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.random((count, WORDS), np.float32)
    headers = rows.view(np.int32)
    headers[:, VERSION_WORD] = rng.integers(0, VERSION + 1, count)
    headers[:, SEEN] = HOUR - rng.integers(0, 1000, count)
    rows[:, SHOW] = rng.integers(0, 100, count)
    rows[:, CLICK] = np.floor(rows[:, SHOW] * rng.random(count))
    return rows


def scores(rows: np.ndarray) -> np.ndarray:
    f4 = np.float32
    clicks = rows[:, CLICK]
    result: np.ndarray = f4(NONCLICK) * (rows[:, SHOW] - clicks) + f4(CLICKED) * clicks
    return result


def judged(
    rows: np.ndarray, sentence: EvictionPolicy, first: int = 0, last: int | None = None
) -> list[str]:
    last = len(rows) if last is None else last
    reasons, ended = np.full(last - first, 77, np.uint8), np.zeros(len(REASONS), np.int64)
    sentence.quota = row_eviction.judge(
        *(rows, first, last, sentence.time, sentence.ttl_rounds, SEEN, sentence.hour),
        *(sentence.ttl_hours, SHOW, CLICK, NONCLICK, CLICKED, sentence.least_score),
        *(sentence.oldest_bin, sentence.quota, reasons, ended),
    )
    counts = np.bincount(reasons, minlength=len(REASONS))
    assert ended.tolist() == [0, *counts[1:].tolist()]
    return [REASONS[reason] for reason in reasons]


def ages(rows: np.ndarray, version: int = VERSION) -> np.ndarray:
    return np.maximum(version - rows.view(np.int32)[:, VERSION_WORD].astype(np.int64), 0)


def test_shows_and_clicks_of_a_push_are_added_up() -> None:
    rows, before = rows_of(6), rows_of(6)
    found, order = np.array([4, 0, 2], np.int32), np.array([1, 2, 0], np.int32)
    counts = np.array([[1, 0], [5, 2], [7, 7]], np.float32)

    row_eviction.count_(rows, found, order, counts, SHOW, CLICK)

    before[found, SHOW] += counts[order, 0]
    before[found, CLICK] += counts[order, 1]
    np.testing.assert_array_equal(rows, before)


def test_a_push_without_counts_is_one_show_each_and_strange_counts_are_none() -> None:
    rows, before = rows_of(4), rows_of(4)
    found, order = np.array([1, 3], np.int32), np.array([0, 1], np.int32)
    strange = np.array([[np.nan, -1], [-np.inf, np.nan]], np.float32)
    endless = np.full((2, 2), np.inf, np.float32)

    row_eviction.count_(rows, found, order, np.empty((0, 2), np.float32), SHOW, CLICK)
    row_eviction.count_(rows, found, order, strange, SHOW, CLICK)
    row_eviction.count_(rows, found, order, endless, SHOW, CLICK)

    before[found, SHOW] += 1
    np.testing.assert_array_equal(rows, before)


def test_counts_stop_before_infinity_and_decay_from_there() -> None:
    rows, most = rows_of(1), float(row_eviction.MOST_SHOWS)
    huge = np.full((1, 2), most, np.float32)

    for _ in range(2):
        row_eviction.count_(rows, np.zeros(1, np.int32), np.zeros(1, np.int32), huge, SHOW, CLICK)
    row_eviction.decay_(rows, 0, 1, SHOW, CLICK, 0.5)

    assert rows[0, [SHOW, CLICK]].tolist() == [most / 2, most / 2]


def test_rows_end_by_rounds_then_days_then_score() -> None:
    rows = rows_of(3000)
    sentence = EvictionPolicy(VERSION, HOUR, ttl_rounds=4000, ttl_hours=700, least_score=5.0)

    got = judged(rows, sentence)

    unseen = HOUR - rows.view(np.int32)[:, SEEN]
    want = np.select(
        [ages(rows) > 4000, unseen > 700, scores(rows) < 5.0], ["rounds", "days", "score"], "kept"
    )
    assert got == want.tolist()
    assert len(set(got)) == 4


def test_a_row_that_was_pushed_since_the_sentence_is_young() -> None:
    rows = rows_of(1)
    rows.view(np.int32)[0, VERSION_WORD] = VERSION + 3

    assert judged(rows, EvictionPolicy(VERSION, HOUR, ttl_rounds=1)) == ["kept"]


def test_versions_may_wrap_around() -> None:
    rows = rows_of(2)
    rows.view(np.int32)[:, VERSION_WORD] = [2**31 - 10, 5]

    assert judged(rows, EvictionPolicy(8, HOUR, ttl_rounds=10)) == ["rounds", "kept"]


def test_rows_that_are_pulled_along_in_time_never_look_young() -> None:
    rows, now = rows_of(3), VERSION
    rows.view(np.int32)[:, VERSION_WORD] = now

    for _ in range(20):
        now += LONGEST_WITHOUT
        row_eviction.pull_along_(rows, 1, 3, now)

    assert judged(rows, EvictionPolicy(now, HOUR, ttl_rounds=MOST_ROUNDS), 1) == [
        "rounds",
        "rounds",
    ]
    assert MOST_ROUNDS < row_eviction.OLDEST < 2**30 - LONGEST_WITHOUT


def test_only_what_is_too_old_is_pulled_along() -> None:
    rows = rows_of(2)
    rows.view(np.int32)[:, VERSION_WORD] = [5, 6]

    row_eviction.pull_along_(rows, 0, 2, row_eviction.OLDEST + 6)

    assert rows.view(np.int32)[:, VERSION_WORD].tolist() == [6, 6]


def test_no_limit_spares_everybody() -> None:
    sentence = by_age(spec_of(specs.Lifecycle()), VERSION, HOUR)

    assert set(judged(rows_of(50), sentence)) == {"kept"}


@pytest.mark.parametrize("drop", [0, 1, 10, 777, 2999, 3000, 9000])
def test_by_memory_ends_exactly_as_many_rows_as_asked_and_the_oldest(drop: int) -> None:
    rows, bins = rows_of(3000), np.zeros(AGE_BINS, np.int64)
    row_eviction.count_ages(rows, 0, 3000, VERSION, bins)
    sentence = by_memory(bins, drop, VERSION, HOUR)

    got = [reason for first in range(0, 3000, 100) for reason in slice_of(rows, sentence, first)]

    dropped = np.array([reason == "memory" for reason in got])
    assert dropped.sum() == min(drop, 3000)
    if 0 < drop < 3000:
        assert ages(rows)[dropped].min() >= 7 / 8 * ages(rows)[~dropped].max() - 1


def slice_of(rows: np.ndarray, sentence: EvictionPolicy, first: int) -> list[str]:
    return judged(rows, sentence, first, first + 100)


def test_by_memory_of_rows_of_one_age_ends_no_more_than_asked() -> None:
    rows, bins = rows_of(200), np.zeros(AGE_BINS, np.int64)
    rows.view(np.int32)[:, VERSION_WORD] = 5
    row_eviction.count_ages(rows, 0, 200, VERSION, bins)

    got = judged(rows, by_memory(bins, 30, VERSION, HOUR))

    assert got.count("memory") == 30


def test_a_bin_holds_ages_within_an_eighth() -> None:
    powers = 2 ** np.arange(30)
    every = np.unique(np.concatenate([np.arange(5000), powers - 1, powers]))
    rows = np.zeros((1, WORDS), np.float32)
    found = []
    for age in every.tolist():
        bins = np.zeros(AGE_BINS, np.int64)
        rows.view(np.int32)[0, VERSION_WORD] = 2**30 - age
        row_eviction.count_ages(rows, 0, 1, 2**30, bins)
        found.append(int(np.flatnonzero(bins)[0]))

    assert found == sorted(found)
    for number in set(found):
        inside = every[np.array(found) == number]
        assert inside.max() <= inside.min() * 1.125


def test_decay_multiplies_shows_and_clicks_alone() -> None:
    rows, want = rows_of(20), rows_of(20)

    row_eviction.decay_(rows, 5, 15, SHOW, CLICK, 0.5)

    want[5:15, [SHOW, CLICK]] *= np.float32(0.5)
    np.testing.assert_array_equal(rows, want)


def test_scores_are_read_where_there_are_rows() -> None:
    rows, out = rows_of(5), np.full(4, -1, np.float32)
    found, order = np.array([3, -1, 0], np.int32), np.array([2, 0, 1], np.int32)

    row_eviction.read_scores(rows, found, order, SHOW, CLICK, NONCLICK, CLICKED, out)

    np.testing.assert_array_equal(out, [-1, scores(rows)[0], scores(rows)[3], -1])


def spec_of(life: specs.Lifecycle | None) -> specs.SparseTableSpec:
    return specs.SparseTableSpec(
        *("emb", 4, specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(0.1)),
        seed=7,
        lifecycle=life,
    )


def test_a_sentence_says_what_the_spec_does() -> None:
    spec = spec_of(specs.Lifecycle(ttl_rounds=9, ttl_days=1.5, delete_score=0.8))

    assert by_age(spec, 3, 4) == EvictionPolicy(3, 4, ttl_rounds=9, ttl_hours=36)
    assert by_shrink(spec, 3, 4) == EvictionPolicy(
        3, 4, ttl_rounds=9, ttl_hours=36, least_score=0.8
    )


@pytest.mark.parametrize(
    ("max_bytes", "share", "rows", "used", "too_many"),
    [
        (0, 1.0, 10, 1000, 0),
        (1000, 1.0, 10, 1000, 0),
        (1000, 0.5, 10, 1000, 5),
        (90, 1, 10, 1000, 10),
    ],
)
def test_a_cap_in_bytes_is_so_many_rows_too_many(
    max_bytes: int, share: float, rows: int, used: int, too_many: int
) -> None:
    assert rows_too_many(max_bytes, share, rows, used) == too_many


@pytest.mark.parametrize(
    ("max_bytes", "kept"), [(2000, 10), (1000, 5), (600, 3), (500, 2), (100, 0)]
)
def test_an_index_takes_its_part_of_a_cap_but_half_at_most(max_bytes: int, kept: int) -> None:
    rows, row_bytes, empty_bytes = 10, 100, 500

    too_many = rows_too_many(max_bytes, 1.0, rows, rows * row_bytes + empty_bytes, empty_bytes)

    assert rows - too_many == kept


def test_what_was_dropped_is_told_by_reason() -> None:
    dropped, more = Dropped(), Dropped()
    more.add(np.array([100, 1, 0, 2, 0]), 64)

    dropped += more
    dropped += more

    assert dropped.rows == {"rounds": 2, "days": 0, "score": 4, "memory": 0}
    assert (dropped.total, dropped.bytes) == (6, 384)
