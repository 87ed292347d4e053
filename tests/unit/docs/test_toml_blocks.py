"""Every TOML block of the documentation is one that psrt loads."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from psrt.config.load import load_job
from psrt.config.warm_rules import read_warm_rules
from psrt.data.formats import format_named
from psrt.data.slots import Slot
from tests.support.pages import DOCS, page

BLOCKS = [
    pytest.param(text, id=f"{path.relative_to(DOCS)}-{number}")
    for path in sorted(DOCS.rglob("*.md"))
    for number, text in enumerate(re.findall(r"```toml[^\n]*\n(.*?)```", path.read_text(), re.S))
]
DATA = '[data]\ntrain = ["part-*"]\n'
JOB = '[job]\nname = "page"\nprogram = "program.py"\n'


def whole(text: str) -> str:
    """A block with the tables that a job file needs and the page leaves out."""
    if included := re.fullmatch(r'--8<-- "(.*)"\n', text):
        text = (DOCS.parent / included[1]).read_text()
        text = text.replace('program = ""', 'program = "program.py"')
    plain = tomllib.loads(text)
    missing = [table for name, table in {"job": JOB, "data": DATA}.items() if name not in plain]
    if "job" in plain and "program" not in plain["job"]:
        text = text.replace("[job]\n", JOB, 1)
    if "data" in plain and "train" not in plain["data"]:
        text = text.replace("[data.columns]\n", f'{DATA}format = "csv"\n[data.columns]\n', 1)
    return "".join([*missing, text])


@pytest.mark.parametrize("text", BLOCKS)
def test_a_block_loads(text: str, tmp_path: Path) -> None:
    path = tmp_path / "block.toml"
    if "[[rule]]" in text:
        path.write_text(text)
        assert read_warm_rules(str(path))[0]
        return
    text = whole(text)
    path = tmp_path / "job" / "block.toml"
    program = path.parent / tomllib.loads(text)["job"]["program"]
    for each, content in ((path, text), (program, "")):
        each.parent.mkdir(exist_ok=True)
        each.resolve().parent.mkdir(exist_ok=True)
        each.write_text(content)

    assert load_job(str(path), environ={}).config.data.train is not None


def test_the_columns_of_the_page_about_data_are_legal() -> None:
    (text,) = re.findall(r"(\[data\.columns\]\n.*?)```", page("how-to/read-data.md"), re.S)
    slots = [
        Slot("click", "float", 1),
        Slot("dense", "float", 2),
        Slot("site", "uint64", 1),
        Slot("tags", "uint64"),
        Slot("rich", "float", 1),
    ]
    columns = tomllib.loads(text)["data"]["columns"]

    assert columns.keys() == {slot.name for slot in slots}
    format_named("csv", slots, {"columns": columns})
