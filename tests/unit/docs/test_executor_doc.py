"""docs/explanation/executor.md lists the fields of the strategies, with defaults and effects."""

from __future__ import annotations

import dataclasses
import enum
import re
from pathlib import Path
from typing import Any

import pytest

import psrt
from psrt.graph import passes
from psrt.graph.passes.memory import MIN_ELEMENTS
from psrt.graph.program import ROLES
from tests.support.pages import DOCS, page

ROOT = Path(__file__).parents[3]
TEXT = page("explanation/executor.md")
STRATEGIES = [psrt.ExecutionStrategy, psrt.BuildStrategy]

NO_REWRITE = ("LATE", "MemoryPlan", "plan_memory")
"""Names of the room of passes that rewrite nothing."""


def shown(default: object) -> str:
    if isinstance(default, enum.Enum):
        return default.name
    return '""' if default == "" else str(default)


def section(strategy: type) -> str:
    return TEXT.split(f"\n## {strategy.__name__}\n")[1].split("\n## ")[0]


def meanings(strategy: type) -> dict[str, str]:
    """Field → what its row says."""
    return dict(re.findall(r"^\| `(\w+)` \| .*? \| (.*) \|$", section(strategy), re.M))


def is_read(field: str) -> bool:
    """Return True if a file other than the declaration reads a field of that name."""
    rooms = (ROOT / "psrt" / "executor", ROOT / "psrt" / "fluid")
    files = (path for room in rooms for path in room.rglob("*.py") if path.stem != "strategies")
    pattern = rf"\b_?(exec|build|threading)\.{field}\b"
    return any(re.search(pattern, path.read_text()) for path in files)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_field_is_documented_with_its_default(strategy: type) -> None:
    fields = dataclasses.fields(strategy)

    missing = [f.name for f in fields if f"| `{f.name}` | {shown(f.default)} |" not in TEXT]

    assert missing == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_field_is_documented_that_does_not_exist(strategy: type) -> None:
    assert list(meanings(strategy)) == [field.name for field in dataclasses.fields(strategy)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_field_has_no_effect_just_where_that_is_said(strategy: type) -> None:
    idle = {name for name, meaning in meanings(strategy).items() if meaning == "no effect"}

    assert idle == {name for name in meanings(strategy) if not is_read(name)}


@pytest.mark.parametrize("choice", ["ReduceStrategy", "GradientScaleStrategy"])
def test_every_choice_of_a_strategy_is_named(choice: str) -> None:
    choices: Any = getattr(psrt.BuildStrategy, choice)

    assert [each.name for each in choices if f"`{each.name}`" not in TEXT] == []


def test_every_pass_has_a_row() -> None:
    rewriting = [name for name in passes.__all__ if name not in NO_REWRITE]
    table = TEXT.split("\n## Passes\n")[1].split("\n\n**")[0]
    asked = re.findall(r"^\| (?:any )?`(\w+)` \|", table, re.M)

    assert len(asked) == len(rewriting) + 1
    assert set(asked) <= {"keep", "num_threads"} | set(meanings(psrt.BuildStrategy))


def test_every_role_is_told() -> None:
    assert [role for role in ROLES if f"| `{role}` |" not in TEXT] == []


def test_the_least_size_of_shared_memory_is_told() -> None:
    assert f"below {MIN_ELEMENTS:,} elements" in TEXT


def test_files_and_sections_linked_to_exist() -> None:
    for name in ("explanation/executor.md", "reference/layers.md"):
        text = page(name)
        for link in re.findall(r"\]\(([^)]+)\)", text):
            file, _, anchor = link.partition("#")
            path = (DOCS / name).parent / file if file else DOCS / name
            assert path.exists(), link
            if anchor:
                headings = re.findall(r"^## (.*)$", path.read_text(), re.M)
                assert anchor in [h.lower().replace(" ", "-") for h in headings], link


def test_the_program_at_the_top_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)

    names: dict[str, Any] = {}
    exec(block, names)

    assert float(names["value"]) > 0
