"""Histories that broke a promise when they were found; the defects are in `docs/guarantees.md`."""

from __future__ import annotations

import pytest

from tests.sim.kinds import KINDS

FOUND = [
    ("durable", None, 10001953),
    ("deltas", None, 10000787),
    ("deltas", None, 10002057),
    ("deltas", None, 20003297),
    ("deltas", None, 10002073),
    ("deltas", "ssp", 30000472),
    ("deltas", "async-merging", 30006765),
    ("deltas", "sync-shrink", 30013040),
    ("backups", "ssp", 30006486),
    ("plain", "async-merging", 30005953),
    ("plain", "sync-shrink", 30008915),
    ("resizes", "half-async", 30002040),
    ("resizes", "async-pool", 30005393),
    ("resizes", "ssp", 30005591),
    ("resizes", "sync-abort", 30006119),
    ("resizes", "async", 30007177),
    ("resizes", "ssp", 30011382),
    ("resizes", "ssp", 30011564),
    ("resizes", "async", 30013304),
    ("backups", "sync-abort", 60001369),
    ("early", None, 78),
    ("deltas", "async-merging", 63001196),
    ("interrupted", "async-pool", 16973),
    ("resizes", "half-async", 21842),
    ("deltas", "geo", 124),
    ("deltas", "sync", 25389),
    ("deltas", "geo-wait", 25202),
    ("deltas", "ssp-wait", 25017),
    ("resizes", "async-pool", 25109),
]

SMALL = [
    ("early", "ssp", 547),
    ("plain", "sync", 67716),
    ("backups", "async-wait", 61189),
    ("backups", "async-merging", 72296),
    ("durable", "ssp-wait", 62793),
    ("attempts", "geo-rarely", 62898),
    ("resizes", "ssp", 132761),
]


@pytest.mark.parametrize(("kind", "mode", "seed"), FOUND)
def test_a_history_that_once_failed_keeps_every_promise(
    kind: str, mode: str | None, seed: int
) -> None:
    verdict = KINDS[kind].run(seed, mode)

    assert not verdict.violation, verdict


@pytest.mark.parametrize(("kind", "mode", "seed"), SMALL)
def test_a_small_history_that_once_failed_keeps_every_promise(
    kind: str, mode: str, seed: int
) -> None:
    verdict = KINDS[kind].run(seed, mode, True)

    assert not verdict.violation, verdict
