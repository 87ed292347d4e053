"""Sixteen threads on one table leave what a serial program would have left."""

from __future__ import annotations

import pytest

from psrt.pserver.tables import sparse_table
from psrt.pserver.tables.spare_threads import SpareThreads
from tests.support import table_stress


@pytest.mark.timeout(120)
@pytest.mark.parametrize("spare_threads", [0, 2], ids=lambda n: f"{n} spare threads")
def test_threads_that_push_read_export_and_drop_at_once_lose_nothing(
    spare_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if spare_threads:
        monkeypatch.setattr(sparse_table, "LARGE_ROWS", 1)
    spare = SpareThreads(spare_threads)

    figures = table_stress.run(16, lambda part: part.turns < 25, spare=spare)

    spare.close()
    assert figures["differences"] == 0
    assert figures["turns"] == 16 * 25
    assert figures["rows"] == table_stress.SHARED + figures["own_rows"]
