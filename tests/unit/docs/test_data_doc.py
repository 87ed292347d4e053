"""The tables of docs/how-to/read-data.md name what the code has, no more and no less."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import psrt
from psrt.cli.data.commands import data
from psrt.cli.lazy import LazyGroup
from psrt.config.sections import DATA_FORMATS, SHARES
from psrt.data.datasets.datasets import InMemoryDataset, QueueDataset
from psrt.data.formats import formats
from psrt.data.formats.fields import Field
from psrt.data.reading.settings import DatasetSettings
from psrt.data.sources.places import Position
from tests.support.pages import page

TEXT = page("how-to/read-data.md")


def table(head: str) -> Iterator[list[str]]:
    """The cells of every row of the table whose first head cell is that."""
    body = re.search(rf"^\| {re.escape(head)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", TEXT, re.M)
    assert body, head
    for line in body[1].splitlines():
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]


def names(cell: str) -> list[str]:
    return re.findall(r"`([\w-]+)`", cell)


def test_the_formats_stand_with_their_options() -> None:
    told = {names(row[0])[0]: tuple(names(row[2])) for row in table("format")}

    assert list(told) == list(DATA_FORMATS)
    in_columns = {"columns"}  # of [data.columns], not of [data.options]
    assert told == {
        name: tuple(o for o in formats.options_of(name) if o not in in_columns)
        for name in DATA_FORMATS
    }


def test_the_keys_of_columns_stand_there() -> None:
    told = [name for row in table("key") for name in names(row[0])]

    assert set(told) == {field.name for field in fields(Field)} - {"slot"} | {"column"}


def test_the_rules_of_sharing_stand_there() -> None:
    assert [names(row[0])[0] for row in table("shard")] == list(SHARES)


def test_the_parts_of_a_position_stand_there() -> None:
    told = [names(row[0])[0] for row in table("of a `Position`")]

    assert told == [field.name for field in fields(Position)]


def test_the_methods_of_datasets_stand_there() -> None:
    told = [name for row in table("method") for name in names(row[0])]

    own = {name for cls in (QueueDataset, InMemoryDataset) for name in vars(cls) if name[0] != "_"}
    settings = {"set_fleet_send_batch_size", "texts"}
    refused = {"set_hdfs_config", "set_download_cmd"}
    assert refused <= set(vars(DatasetSettings))
    assert set(told) == own - settings | refused


def test_the_decorators_stand_there() -> None:
    told = {names(row[0])[0] for row in table("decorator")}

    assert told == {name for name in psrt.reader.__all__ if name[0].islower()}


def test_the_commands_stand_there() -> None:
    told = [name for row in table("`psrt data …`") for name in names(row[0])]

    assert isinstance(data, LazyGroup)
    assert sorted(told) == sorted(data.subcommands)


@pytest.mark.parametrize("extra", ["zstd", "fsspec", "parquet", "plot"])
def test_the_extras_are_those_of_the_package(extra: str) -> None:
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text()

    assert f"psrt-cluster[{extra}]" in TEXT
    assert f"\n{extra} = [" in project
