"""Sixteen threads on one table leave what a serial program would have left."""

from __future__ import annotations

import pytest

from psrt.pserver.tables import sparse_table
from psrt.pserver.tables.helper_threads import HelperThreads
from tests.support import table_stress


@pytest.mark.timeout(120)
@pytest.mark.parametrize("helper_threads", [0, 2], ids=lambda n: f"{n} helper threads")
def test_threads_that_push_read_export_and_drop_at_once_lose_nothing(
    helper_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if helper_threads:
        monkeypatch.setattr(sparse_table, "LARGE_ROWS", 1)
    helpers = HelperThreads(helper_threads)

    figures = table_stress.run(16, lambda part: part.turns < 25, helpers=helpers)

    helpers.close()
    assert figures["differences"] == 0
    assert figures["turns"] == 16 * 25
    assert figures["rows"] == table_stress.SHARED + figures["own_rows"]
