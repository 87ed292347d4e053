"""The first day's reading: short, and each file needs only the ones before it."""

from __future__ import annotations

import re

from tests import house

LINES_LIMIT = 1500


def reading() -> list[str]:
    """The files of the list in the design file, in order."""
    text = house.DESIGN.read_text().split("\n## First day's reading\n")[1].split("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/]+\.py)`", text, re.M)


def psrt_files() -> list[str]:
    return [path for path in reading() if path.startswith("psrt/")]


def test_the_list_names_files_and_begins_with_the_product_in_one_file() -> None:
    assert reading()[0] == "tests/test_tiny.py"
    assert [path for path in reading() if not (house.ROOT / path).exists()] == []


def test_it_is_at_most_1500_lines() -> None:
    lines = sum(len((house.ROOT / path).read_text().splitlines()) for path in reading())

    print(f"\nfirst day's reading: {lines} lines in {len(reading())} files")
    assert lines <= LINES_LIMIT


def test_no_file_needs_one_that_comes_after_it() -> None:
    order = [house.module_of(house.ROOT / path) for path in psrt_files()]

    too_early = [
        f"{module} imports {later}"
        for at, module in enumerate(order)
        for later in order[at + 1 :]
        if later in {each.target for each in house.imports_of(module)}
        or later in defining_modules(module)
    ]

    assert too_early == []


def defining_modules(module: str) -> set[str]:
    """The modules in which the names that `module` takes from faces are defined."""
    found = set()
    for each in house.imports_of(module):
        if each.target in house.modules() and house.is_package(each.target):
            found |= {
                inner.target for inner in house.imports_of(each.target) if inner.name == each.name
            }
    return found
