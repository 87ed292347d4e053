"""The house stands as docs/ARCHITECTURE.md says: imports go down, faces are kept, no circles."""

from __future__ import annotations

import ast
import re

import pytest

from tests import house
from tests.house import PACKAGE, ROOT


def layer_table() -> dict[str, tuple[int, set[str]]]:
    """Room → (layer, rooms it may import)."""
    return {
        match[2]: (int(match[1]), set(match[3].split())) for match in house.layer_lines("layers")
    }


def sub_room_table() -> dict[str, set[str]]:
    """Sub-room, as `room/sub` → sub-rooms of its room that it may import."""
    return {match[2]: set(match[3].split()) for match in house.layer_lines("subrooms")}


def test_every_room_has_a_line_in_the_layer_table() -> None:
    assert set(house.rooms()) <= set(layer_table())


@pytest.mark.parametrize("room", house.rooms())
def test_room_imports_only_what_its_layer_line_allows(room: str) -> None:
    layer, allowed = layer_table()[room]
    everything_below = {name for name, (level, _) in layer_table().items() if level < layer}
    if allowed == {"everything", "below"}:
        allowed = everything_below
    assert allowed <= everything_below, f"the table lets {room} import upwards"

    upward = [
        f"{each.where} imports {each.target}"
        for module in house.modules()
        if module == f"psrt.{room}" or module.startswith(f"psrt.{room}.")
        for each in house.imports_of(module)
        if room_of(each.target) not in allowed | {room, ""}
    ]

    assert upward == []


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in house.rooms() else ""


def test_every_sub_room_has_a_line_in_the_table_of_sub_rooms() -> None:
    top = {name.removeprefix("psrt.").replace(".", "/") for name in house.sub_rooms()}

    assert {name for name in top if name.count("/") == 1} == set(sub_room_table())


@pytest.mark.parametrize("name", sorted(sub_room_table()))
def test_sub_room_imports_only_the_sub_rooms_its_line_allows(name: str) -> None:
    room, sub = name.split("/")
    package, allowed = f"psrt.{room}.{sub}", sub_room_table()[name]

    sideways = [
        f"{each.where} imports {each.target}"
        for module in house.modules()
        if module == package or module.startswith(f"{package}.")
        for each in house.imports_of(module)
        if (face := house.face_between(module, each.target)) is not None
        and face.startswith(f"psrt.{room}.")
        and face.split(".")[2] not in allowed | {sub}
    ]

    assert sideways == []


def test_every_sub_room_has_a_face() -> None:
    assert [name for name in house.sub_rooms() if house.names_of_face(name) is None] == []


def test_nothing_is_imported_past_a_face() -> None:
    assert house.imports_past_a_face() == []


def test_modules_form_no_circle() -> None:
    wanted = {module: house.needs(module) for module in house.modules() if module.count(".") > 0}
    rooms = {f"psrt.{room}" for room in house.rooms()}
    for face in house.sub_rooms():
        inside = {each for each in wanted if each != face and house.package_of(each) == face}
        wanted[face] |= inside
    order: set[str] = set(rooms)
    while ready := {name for name in wanted.keys() - order if wanted[name] <= order}:
        order |= ready

    assert sorted(wanted.keys() - order) == []


@pytest.mark.parametrize("room", [f"psrt.{room}" for room in house.rooms()] + house.sub_rooms())
def test_the_docstring_of_a_room_lists_its_files(room: str) -> None:
    path = house.modules()[room]
    text = ast.get_docstring(house.tree(path)) or ""
    files = [p.stem for p in path.parent.iterdir() if p.name[0] not in "_."]

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
    text = house.DESIGN.read_text()
    project = re.search(
        r"\ndependencies = \[\n(.*?)\n\]", (ROOT / "pyproject.toml").read_text(), re.S
    )
    assert project
    names = re.findall(r'"([\w-]+)', project[1])

    missing = [name for name in names if f"| {name} |" not in text]

    assert names
    assert missing == []
