"""The page of typical mistakes has what psrt prints for each, and the tests that hold it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.pages import page
from tests.unit.cli.test_typical_mistakes import MISTAKES

ROOT = Path(__file__).resolve().parents[3]
PAGE = "reference/typical-mistakes.md"
SILENT = "## Failures that were silent"


def rows(text: str) -> list[list[str]]:
    """The cells of tables, without heads."""
    lines = (line for line in text.splitlines() if line.startswith("| "))
    cells = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in lines]
    return [[cell.strip().replace("\\|", "|") for cell in row] for row in cells]


def shown(words: str) -> str:
    return "`" + words.replace("`", "'") + "`" if words else "–"


def test_the_page_has_each_mistake_with_the_words_that_a_test_looks_for() -> None:
    listed, _ = page(PAGE).split(SILENT)
    found = {row[0]: row[1:] for row in rows(listed)[1:]}

    assert list(found) == list(MISTAKES)
    for name, (printed, to_do) in found.items():
        mistake = MISTAKES[name]
        assert printed == shown(mistake.what), name
        assert to_do == shown(mistake.to_do), name


def test_each_silent_failure_names_tests_that_exist() -> None:
    _, silent = page(PAGE).split(SILENT)
    table = rows(silent)[1:]

    assert len(table) >= 7
    for row in table:
        named = re.findall(r"`(tests/\S+?\.py)::(\w+)`", row[-1])
        assert named, row[0]
        for file, test in named:
            assert f"def {test}(" in (ROOT / file).read_text(), test
