"""Memory of rows: growing keeps rows, with and without mremap."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from psrt.core.errors import ErrorCode, TableError
from psrt.kernels.tables.growable_memory import Slab, _grown, _mapping

PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class WithoutMremap(mmap.mmap):
    """A host whose kernel cannot move a mapping."""

    def resize(self, newsize: int) -> None:
        raise SystemError("mmap: resizing not available--no mremap()")


@pytest.mark.parametrize("words", [3, 18, 100_000])
def test_a_slab_keeps_its_rows_however_often_it_grows(words: int) -> None:
    slab = Slab(words)
    slab.rows[:] = 7.0
    before = len(slab.rows)

    for rows in (before + 1, 4 * before, 40 * before):
        slab.reserve(rows)

    assert slab.rows.shape[0] >= 40 * before
    assert slab.rows.shape[1] == words
    np.testing.assert_array_equal(slab.rows[:before], 7.0)


def test_a_slab_with_room_stays_where_it_is() -> None:
    slab = Slab(18)
    rows = slab.rows

    slab.reserve(len(rows))

    assert slab.rows is rows


@pytest.mark.parametrize("memory", [WithoutMremap(-1, 4096, flags=PRIVATE), _mapping(4096)])
def test_memory_grows_with_and_without_mremap(memory: mmap.mmap) -> None:
    memory[:4] = b"psrt"

    grown = _grown(memory, 1 << 20)

    assert len(grown) == 1 << 20
    assert grown[:4] == b"psrt"


def test_a_slab_that_finds_no_memory_says_how_much_and_stays_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(memory: mmap.mmap, size_bytes: int) -> mmap.mmap:
        raise OSError(12, "Cannot allocate memory")

    slab = Slab(16)
    slab.rows[:] = 7.0
    before = len(slab.rows)
    with monkeypatch.context() as patch:
        patch.setattr("psrt.kernels.tables.growable_memory._grown", refused)
        with pytest.raises(TableError, match=r"65,536 bytes .* 131,072 \(.*Cannot all") as no:
            slab.reserve(before + 1)

    assert no.value.code is ErrorCode.TABLE_FULL
    assert len(slab.rows) == before
    slab.trim(1)
    slab.reserve(before + 1)
    assert slab.rows[:before].max() == 7.0
