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
]


@pytest.mark.parametrize(("kind", "mode", "seed"), FOUND)
def test_a_history_that_once_failed_keeps_every_promise(
    kind: str, mode: str | None, seed: int
) -> None:
    verdict = KINDS[kind].run(seed, mode)

    assert not verdict.violation, verdict
