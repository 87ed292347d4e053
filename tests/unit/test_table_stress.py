"""Sixteen threads on one table leave what a serial program would have left."""

from __future__ import annotations

import pytest

from tests.support import table_stress


@pytest.mark.timeout(120)
def test_threads_that_push_read_export_and_drop_at_once_lose_nothing() -> None:
    figures = table_stress.run(threads=16, go_on=lambda part: part.turns < 25)

    assert figures["differences"] == 0
    assert figures["turns"] == 16 * 25
    assert figures["rows"] == table_stress.SHARED + figures["own_rows"]
