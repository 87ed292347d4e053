"""docs/reference/tables.md shows every option of a sparse table, and its example runs."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import psrt
from psrt import tables
from psrt.core import specs
from psrt.core.specs import STORAGES
from tests.support.pages import page

TEXT = page("reference/tables.md")
TOLD = set(re.findall(r"`(?:tables\.)?(\w+\(.*?\))`", TEXT))


def signature(name: str) -> str:
    parameters = inspect.signature(getattr(tables, name)).parameters.values()
    arguments = [
        p.name if p.default is p.empty else f"{p.name}={_shown(p.default)}" for p in parameters
    ]
    return f"{name}({', '.join(arguments)})"


def _shown(default: Any) -> str:
    if default == specs.Score():
        return "Score()"
    return f'"{default}"' if isinstance(default, str) else repr(default)


@pytest.mark.parametrize("name", tables.__all__)
def test_every_option_is_shown_with_its_defaults(name: str) -> None:
    assert signature(name) in TOLD


def test_every_storage_is_told() -> None:
    assert [each for each in STORAGES if f'`"{each}"`' not in TEXT] == []


def test_the_program_at_the_top_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    names: dict[str, Any] = {}

    exec(block, names)

    parameter = names["program"].parameters["features"]
    assert parameter.options.growth == tables.Growth(1, 10.0)
    assert isinstance(parameter.optimizer, specs.CtrAdagrad)
    assert psrt.Program.from_text(names["program"].to_text()) == names["program"]


def test_optimizers_of_click_models_that_are_named_exist() -> None:
    named = set(re.findall(r"`(Ctr\w+)`", TEXT))

    assert named == {name for name in psrt.optimizer.__all__ if name.startswith("Ctr")}
