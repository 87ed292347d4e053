"""The reader in docs/reference/checkpoint-format.md reads the golden file, without psrt."""

from __future__ import annotations

import re
from pathlib import Path

from psrt.storage.array_reader import ArrayPage
from tests.support.array_files import assert_pages
from tests.support.pages import page

GOLDEN = Path(__file__).parents[2] / "golden" / "array_file_1.hex"


def test_the_reader_of_the_page_reads_the_golden_file(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page("reference/checkpoint-format.md"), re.S)
    code = next(block for block in blocks if "def pages(" in block)
    path = tmp_path / "emb.arrays"
    path.write_bytes(bytes.fromhex(GOLDEN.read_text()))
    names: dict = {}

    exec(code, names)

    assert "psrt" not in code
    assert_pages([ArrayPage(meta, arrays) for meta, arrays in names["pages"](path)])
