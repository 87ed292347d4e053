"""The threats in SECURITY.md: each has a defence and a test, and the tests exist."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house import ROOT

_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def threats() -> list[list[str]]:
    """The cells of each line of the table of threats."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    table = text.partition("## Threats")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1:]]


def test_the_table_has_threats() -> None:
    assert len(threats()) > 20


@pytest.mark.parametrize("threat", threats(), ids=lambda cells: cells[0][:50])
def test_a_threat_names_a_defence_and_tests_that_exist(threat: list[str]) -> None:
    _, defence, tests = threat

    named = _TEST.findall(tests)

    assert defence
    assert named
    for path, name in named:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert name in functions, f"{path} has no {name}"
