"""The house stands as docs/ARCHITECTURE.md says: imports go down, rooms have no circles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "psrt"


def layer_table() -> dict[str, tuple[int, set[str]]]:
    """Room → (layer, rooms it may import), read from the fenced block of the design file."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    block = re.search(r"```layers\n(.*?)```", text, re.S)
    assert block, "docs/ARCHITECTURE.md has no ```layers block"
    table = {}
    for line in block[1].strip().splitlines():
        match = re.match(r"(\d+) (\w+)\s*:\s*(.*)", line)
        assert match, f"layer line not understood: {line!r}"
        table[match[2]] = (int(match[1]), set(match[3].split()))
    return table


def rooms() -> list[str]:
    return sorted(p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists())


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of each psrt import of a file, `from a import b` as a.b."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def room_imports(room: str) -> Iterator[tuple[str, str]]:
    for path in sorted((PACKAGE / room).rglob("*.py")):
        if "pb" in path.parts:
            continue
        for line, name in imports_of(path):
            parts = name.split(".")
            if parts[0] == "psrt" and len(parts) > 1 and (PACKAGE / parts[1]).is_dir():
                yield f"{path.relative_to(ROOT)}:{line}", parts[1]


def test_every_room_has_a_line_in_the_layer_table() -> None:
    assert set(rooms()) <= set(layer_table())


@pytest.mark.parametrize("room", rooms())
def test_room_imports_only_what_its_layer_line_allows(room: str) -> None:
    layer, allowed = layer_table()[room]
    everything_below = {name for name, (level, _) in layer_table().items() if level < layer}
    if allowed == {"everything", "below"}:
        allowed = everything_below
    assert allowed <= everything_below, f"the table lets {room} import upwards"

    upward = [
        f"{where} imports {name}"
        for where, name in room_imports(room)
        if name not in allowed | {room}
    ]

    assert upward == []


@pytest.mark.parametrize("room", rooms())
def test_files_of_a_room_form_no_circle(room: str) -> None:
    files = {p.stem: p for p in (PACKAGE / room).glob("*.py")}
    wanted = {
        stem: {
            name.split(".")[2]
            for _, name in imports_of(path)
            if name.startswith(f"psrt.{room}.") and name.split(".")[2] in files
        }
        - {stem}
        for stem, path in files.items()
    }

    order: list[str] = []
    while ready := [
        stem for stem, needs in wanted.items() if needs <= set(order) and stem not in order
    ]:
        order += ready

    assert sorted(order) == sorted(files), f"circle among {sorted(set(files) - set(order))}"


@pytest.mark.parametrize("room", rooms())
def test_the_docstring_of_a_room_lists_its_files(room: str) -> None:
    text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())) or ""
    files = [p.stem for p in (PACKAGE / room).iterdir() if p.name[0] not in "_."]

    unlisted = [stem for stem in files if not re.search(rf"\b{stem}\b", text)]

    assert unlisted == []


def test_only_config_load_reads_the_environment() -> None:
    readers = [
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*.py")
        if re.search(r"os\.environ|os\.getenv|getenv\(", path.read_text())
    ]

    assert readers == ["psrt/config/load.py"]


def test_every_dependency_is_justified_in_the_design_file() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    project = re.search(
        r"\ndependencies = \[\n(.*?)\n\]", (ROOT / "pyproject.toml").read_text(), re.S
    )
    assert project
    names = re.findall(r'"([\w-]+)', project[1])

    missing = [name for name in names if f"| {name} |" not in text]

    assert names
    assert missing == []
