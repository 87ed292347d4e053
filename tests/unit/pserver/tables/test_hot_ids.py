"""The ids pulled most, out of more than can be counted one by one."""

from __future__ import annotations

import numpy as np

from psrt.pserver.tables.hot_ids import CAPACITY, EVERY, HotIds


def test_ids_of_a_skewed_stream_come_in_order_with_fractions_within_the_promised_error() -> None:
    hot, rng = HotIds(), np.random.default_rng(1)
    shares = {7: 0.2, -5: 0.1, 2**62: 0.05}
    rare = 1 - sum(shares.values())
    noted = 0
    for _ in range(400):
        kinds = rng.choice([*shares, 0], 10_000, p=[*shares.values(), rare])
        ids = np.where(kinds == 0, rng.integers(10, 2**61, len(kinds)), kinds)
        hot.count(ids)
        noted += len(ids) / EVERY

    top = dict(hot.top(3))

    assert list(top) == list(shares)
    for id_, share in shares.items():
        chance = 5 * (share / noted) ** 0.5
        assert share - 1 / (CAPACITY + 1) - chance <= top[id_] <= share + chance


def test_small_pulls_are_sampled_at_the_same_rate_as_big_ones() -> None:
    hot = HotIds()
    for id_ in range(EVERY * 50):
        hot.count(np.array([id_ % 3]))

    assert {id_ for id_, _ in hot.top()} == {0, 1, 2}
    assert sum(share for _, share in hot.top()) == 1.0


def test_a_table_without_pulls_has_no_hot_ids() -> None:
    assert HotIds().top() == []


def test_what_was_hot_long_ago_fades() -> None:
    hot = HotIds()
    for id_, pulls in ((1, 40_000_000), (2, 90_000_000)):
        for _ in range(pulls // 1_000_000):
            hot.count(np.full(1_000_000, id_))

    assert [id_ for id_, _ in hot.top()] == [2, 1]
    assert dict(hot.top())[2] > 0.7
