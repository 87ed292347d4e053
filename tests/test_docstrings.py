"""Docstrings open with a noun or a verb; folders of benchmarks are small and list their files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house import ROOT, tree

OPENERS = re.compile(r"(What(ever)?|Who(ever)?|Wh(ich|ether|en|ere|y)|How|As|The same)\b")
FOLDER_LIMIT = 20


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring of a file, with those of attributes."""
    for node in ast.walk(tree(path)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text.strip()


def folders_of_benchmarks() -> list[Path]:
    return sorted({path.parent for path in (ROOT / "benchmarks").rglob("*.py")})


@pytest.mark.parametrize("folder", ["psrt", "benchmarks", "examples", "bin", "tests"])
def test_a_docstring_opens_with_a_noun_or_a_verb(folder: str) -> None:
    opened_otherwise = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in docstrings(path)
        if OPENERS.match(text)
    ]

    assert opened_otherwise == []


def test_no_folder_of_benchmarks_holds_more_than_twenty_files() -> None:
    files = {
        str(folder.relative_to(ROOT)): len([*folder.glob("*.py")]) - 1  # without __init__.py
        for folder in folders_of_benchmarks()
    }

    assert {name: count for name, count in files.items() if count > FOLDER_LIMIT} == {}


@pytest.mark.parametrize("folder", folders_of_benchmarks(), ids=lambda folder: folder.name)
def test_the_docstring_of_a_folder_of_benchmarks_lists_its_files(folder: Path) -> None:
    text = ast.get_docstring(tree(folder / "__init__.py")) or ""
    names = [path.stem for path in folder.iterdir() if path.name[0] not in "_."]

    assert [name for name in names if not re.search(rf"^    {name}\b", text, re.M)] == []
