"""The documentation is whole: every page is reachable, every path it names exists."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from psrt.core.errors import ErrorCode, from_code
from tests.support.pages import DOCS, page

ROOT = DOCS.parent
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
TEXTS = [*(f"docs/{name}" for name in PAGES), "README.md", "CONTRIBUTING.md", "SECURITY.md"]
PATHS = re.compile(r"`((?:benchmarks|bin|configs|docs|examples|protos|psrt|tests)/[\w./-]*)`")
TESTS = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
HISTORY = ("docs/benchmarks.md", "docs/decisions/")  # may name files that are gone


def links(name: str) -> set[str]:
    """Pages that a page links to."""
    here = Path(name).parent
    targets = re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", page(name))
    return {os.path.normpath(here / target) for target in targets if "://" not in target}


def test_every_page_is_reachable_from_the_index() -> None:
    reached, waiting = set(), {"index.md"}
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting |= links(name) - reached

    assert set(PAGES) - reached == set()


def test_every_page_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().split("\nnav:")[1]

    assert [name for name in PAGES if f"- {name}\n" not in nav] == []


@pytest.mark.parametrize("name", TEXTS)
def test_files_of_the_project_that_a_text_names_exist(name: str) -> None:
    if name.startswith(HISTORY):
        pytest.skip("history names files of its time")
    text = (ROOT / name).read_text(encoding="utf-8")

    assert [path for path in PATHS.findall(text) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", TEXTS)
def test_tests_that_a_text_names_exist(name: str) -> None:
    named = TESTS.findall((ROOT / name).read_text(encoding="utf-8"))

    assert [test for file, test in named if f"def {test}(" not in (ROOT / file).read_text()] == []


def test_every_promise_names_a_test() -> None:
    promises = page("guarantees.md").split("## Test it yourself")[0]
    rows = [line for line in promises.splitlines() if re.match(r"\| (?!what fails)\w|\| …", line)]

    assert len(rows) > 20
    assert [row for row in rows if "`tests/" not in row] == []


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
def test_an_error_names_a_section_that_the_site_has(code: ErrorCode) -> None:
    heading = from_code(code, "text").docs_section

    assert heading in {
        h.lower() for h in re.findall(r"^## (\w+)$", page("reference/errors.md"), re.M)
    }


def test_readme_and_the_design_name_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = sorted(set(project["optional-dependencies"]) - {"dev", "docs"})
    readme, design = ((ROOT / name).read_text() for name in ("README.md", "docs/ARCHITECTURE.md"))

    table = readme.partition("| extra | for |")[2].partition("\n\n")[0]

    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == extras
    assert [extra for extra in extras if f"psrt-cluster[{extra}]" not in design] == []
