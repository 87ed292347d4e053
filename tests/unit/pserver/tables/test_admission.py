"""Admission by counting and drawing, compared with dictionaries."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.specs.policy_rules import MOST_SHOWS
from psrt.kernels.lowlevel.hashing import virtual_shards
from psrt.kernels.tables import admission as counting
from psrt.kernels.tables.row_eviction import ONE_SHOW_EACH
from psrt.pserver.tables.admission import Admission, admission_of
from tests.support.twins import random_bits

SPEC = specs.SparseTableSpec(
    "emb", 4, specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(0.1), seed=7
)


def admission(rule: specs.Admission, first: int = 0, last: int = 1024) -> Admission:
    made = admission_of(replace(SPEC, admission=rule), first, last)
    assert made is not None
    return made


def admitted(
    rule: Admission, ids: np.ndarray, counts: np.ndarray = ONE_SHOW_EACH, known: bool = False
) -> list[int]:
    ids = np.ascontiguousarray(ids, np.int64)
    found = np.full(len(ids), 5 if known else -1, np.int32)
    kept = rule.admit(ids, np.arange(len(ids), dtype=np.int32), found, counts)
    return [int(i) for i in ids[kept]]


@pytest.mark.parametrize(
    "rule", [None, specs.CountFilter(0), specs.CountFilter(1), specs.Probability(1.0)]
)
def test_rules_that_admit_everybody_cost_nothing(rule: specs.Admission | None) -> None:
    assert admission_of(replace(SPEC, admission=rule), 0, 1024) is None


def test_a_count_filter_admits_with_the_push_that_completes_the_count() -> None:
    rule, ids = admission(specs.CountFilter(3)), np.array([4, -9, 2**62])

    first, second, third = (admitted(rule, ids) for _ in range(3))

    assert (first, second, third) == ([], [], ids.tolist())


def test_shows_that_are_pushed_count_each() -> None:
    rule, ids = admission(specs.CountFilter(3)), np.array([1, 2, 3])
    shows = np.array([[3, 0], [2, 2], [1, 0]], np.float32)

    assert admitted(rule, ids, shows) == [1]
    assert admitted(rule, ids[1:], shows[1:]) == [2]
    assert admitted(rule, ids[2:], shows[2:]) == [3]


def test_the_largest_count_that_is_taken_is_reached_by_single_shows() -> None:
    rule, ids = admission(specs.CountFilter(MOST_SHOWS)), np.array([1])

    early = admitted(rule, ids, np.array([[MOST_SHOWS - 1, 0]], np.float32))

    assert (early, admitted(rule, ids)) == ([], [1])


def test_an_id_that_owns_a_row_is_not_asked_again() -> None:
    rule = admission(specs.CountFilter(100))

    assert admitted(rule, np.array([1, 2]), known=True) == [1, 2]


def test_an_id_whose_row_was_dropped_begins_to_count_anew() -> None:
    rule, ids = admission(specs.CountFilter(2)), np.array([8])

    passed = [admitted(rule, ids) for _ in range(4)]

    assert passed == [[], [8], [], [8]]


def test_a_score_of_shows_and_clicks_admits() -> None:
    # 0.1 · (shows − clicks) + 1 · clicks
    rule, ids = admission(specs.ShowClick("show", "click", 1.05)), np.array([1, 2])

    first = admitted(rule, ids, np.array([[1, 1], [10, 0]], np.float32))
    second = admitted(rule, ids, np.array([[1, 0], [1, 0]], np.float32))

    assert (first, second) == ([], [1, 2])


@pytest.mark.parametrize("strange", [np.nan, -5.0, -np.inf, np.inf])
def test_counts_that_are_no_counts_are_worth_nothing(strange: float) -> None:
    rule, ids = admission(specs.CountFilter(2)), np.array([1])

    for _ in range(5):
        assert admitted(rule, ids, np.array([[strange, 0]], np.float32)) == []
    assert admitted(rule, ids, np.array([[2, 0]], np.float32)) == [1]


def test_with_room_for_all_counts_are_those_of_a_dictionary() -> None:
    rule, seen = admission(specs.CountFilter(4)), Counter[int]()
    rng = np.random.default_rng(1)

    for _ in range(30):
        ids = rng.choice(np.arange(2000) * 977, 400, replace=False)
        seen.update(ids.tolist())
        passed = admitted(rule, ids)
        assert passed == [i for i in ids.tolist() if seen[i] == 4]
        for i in passed:
            seen[i] = 0  # no row was created


def test_beyond_the_bound_no_id_is_early_and_frequent_ones_are_admitted() -> None:
    count, frequent, late = 20, [3, 5, 7], 0
    rule, seen = admission(specs.CountFilter(count, waiting_ids=8)), Counter[int]()
    rng, passed = np.random.default_rng(2), set[int]()

    while not set(frequent) <= passed and late <= 3 * count:
        ids = np.unique(np.concatenate([rng.integers(0, 1 << 40, 4000), frequent]))
        seen.update(ids.tolist())
        passed.update(admitted(rule, ids))
        late += 1

    # Some 4 ids a round come to each bucket of 8 cells, and at most a ninth of them is lost: of
    # what a frequent id is shown, at least 4/9.
    assert set(frequent) <= passed
    assert all(seen[i] >= count for i in passed)
    assert late > count


def test_memory_is_bounded_by_what_the_rule_says() -> None:
    rule = admission(specs.CountFilter(2, waiting_ids=1 << 13), 0, 512)
    ids, shards = np.arange(100_000), np.empty(100_000, np.int32)
    virtual_shards(ids, 1024, shards)

    admitted(rule, ids[shards < 512])

    assert rule.nbytes == (1 << 13) // 2 * 12


def test_two_pservers_decide_like_one() -> None:
    rules = specs.CountFilter(2, waiting_ids=1 << 12)
    whole, low, high = (admission(rules, *part) for part in ((0, 1024), (0, 300), (300, 1024)))
    rng, shards = np.random.default_rng(3), np.empty(5000, np.int32)

    for _ in range(6):
        ids = rng.choice(np.arange(20_000), 5000, replace=False)
        virtual_shards(ids.astype(np.int64), 1024, shards)
        apart = admitted(low, ids[shards < 300]), admitted(high, ids[shards >= 300])

        assert sorted(admitted(whole, ids)) == sorted([*apart[0], *apart[1]])


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9])
def test_the_share_admitted_is_p_and_not_the_rest(p: float) -> None:
    ids = np.arange(20_000, dtype=np.int64) * 31

    passed = admitted(admission(specs.Probability(p)), ids)

    assert len(passed) / len(ids) == pytest.approx(p, abs=0.02)


def test_a_draw_is_a_function_of_seed_and_id() -> None:
    ids = np.arange(500, dtype=np.int64)
    column = np.array([(1 << 62) - 1])
    drawn = (random_bits(SPEC.seed, ids, column) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    rule = admission(specs.Probability(0.3))

    once, again = admitted(rule, ids), admitted(rule, ids[::-1])

    assert once == ids[drawn < 0.3].tolist()
    assert sorted(again) == once


def test_a_full_bucket_forgets_as_misra_and_gries_say() -> None:
    cells, gathered = np.arange(counting.BUCKET), np.full(counting.BUCKET, 3.0, np.float32)
    gathered[5] = 1.0

    counting.gather_(cells, gathered, 99, np.float32(2.0))

    assert cells[5] == 99
    assert gathered.tolist() == [2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 2.0, 2.0]
