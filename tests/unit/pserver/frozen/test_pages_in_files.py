"""Pages of freezes survive array files, which give them back read-only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.storage.array_reader import ArrayFileReader
from psrt.storage.array_writer import ArrayFileWriter
from psrt.storage.local_directory import LocalDirectory
from tests.support.frozen import (
    DENSE,
    SIZE,
    SPARSE,
    apply,
    block_of,
    pushes_of,
    state_of,
    state_of_block,
    table_of,
)


def through_a_file(folder: Path, frozen: Any) -> tuple[dict[str, Any], list[Any]]:
    """Facts and pages of a freeze, written and read again."""
    with LocalDirectory(folder).write("cut") as out:
        writer = ArrayFileWriter(out)
        for page in frozen.pages():
            writer.page(frozen.meta, page)
        writer.finish()
    with LocalDirectory(folder).read("cut") as file:
        pages = list(ArrayFileReader(file))
    return pages[0].meta, [page.arrays for page in pages]


@pytest.mark.parametrize("kind", ["sgd", "of float16", "counted", "growing", "adam_of_all_rows"])
def test_rows_come_back_from_a_file(kind: str, tmp_path: Path) -> None:
    table, restored = table_of(SPARSE[kind]), table_of(SPARSE[kind], stripes=2)
    apply(table, pushes_of(1, 10))

    with table.freeze() as frozen:
        restored.restore([through_a_file(tmp_path, frozen)])

    assert state_of(restored) == state_of(table)


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam"])
def test_blocks_come_back_from_a_file(kind: str, tmp_path: Path) -> None:
    table, restored = block_of(DENSE[kind], [np.ones(SIZE, np.float32)]), block_of(DENSE[kind])

    with table.freeze() as frozen:
        restored.restore([through_a_file(tmp_path, frozen)])

    assert state_of_block(restored) == state_of_block(table)
