"""docs/reference/layers.md shows every layer and declaration as it is called, and nothing else."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import psrt
from psrt.graph.declaration import GradientOptions
from tests.support.pages import page

TEXT = page("reference/layers.md")

ROOMS: tuple[ModuleType, ...] = (
    psrt.layers,
    psrt.optimizer,
    psrt.regularizer,
    psrt.clip,
    psrt.initializer,
)
NOT_FOR_USERS = {"AnyInitializer", "resolve"}


def shown(default: object) -> str:
    """A default as the tables write it: 1e-8, "sum", None."""
    if isinstance(default, str):
        return f'"{default}"'
    return re.sub(r"e-0(\d)", r"e-\1", repr(default))


def signature(name: str, function: Callable[..., Any]) -> str:
    """`name(x, axis=-1)`; what all optimizers take by keyword is said once for all of them."""
    parameters = inspect.signature(function).parameters.values()
    arguments = [
        p.name if p.default is p.empty else f"{p.name}={shown(p.default)}"
        for p in parameters
        if p.kind is not p.VAR_KEYWORD
    ]
    return f"{name}({', '.join(arguments)})"


def public() -> Iterator[tuple[ModuleType, str]]:
    for room in ROOMS:
        yield from ((room, name) for name in room.__all__ if name not in NOT_FOR_USERS)


def is_called(room: ModuleType, name: str) -> bool:
    """Return True for functions and classes; the other names are aliases of types."""
    found = getattr(room, name)
    return inspect.isfunction(found) or inspect.isclass(found)


def rows() -> list[str]:
    """The signature of each row that begins with a call."""
    return re.findall(r"^\| `(\w+\(.*?\))` \|", TEXT, re.M)


CALLED = [(room, name) for room, name in public() if is_called(room, name)]


@pytest.mark.parametrize(("room", "name"), CALLED, ids=[name for _, name in CALLED])
def test_what_users_call_is_shown_with_its_signature(room: ModuleType, name: str) -> None:
    asked = signature(name, getattr(room, name))

    assert f"| `{asked}` |" in TEXT or f"psrt.optimizer.{asked}\n" in TEXT


def test_names_of_types_are_told() -> None:
    types = [name for room, name in public() if not is_called(room, name)]

    assert types
    assert [name for name in types if f".{name}`" not in TEXT] == []


def test_nothing_is_shown_that_does_not_exist() -> None:
    known = {signature(name, getattr(room, name)) for room, name in CALLED}

    assert [row for row in rows() if row not in known] == []


def test_nothing_is_shown_twice() -> None:
    assert len(rows()) == len(set(rows()))


def test_optimizers_take_the_keywords_that_are_told_of_all() -> None:
    options = GradientOptions.__annotations__

    assert set(options) == {"regularization", "grad_clip"}
    assert all(f"`{name}`" in TEXT for name in options)


def test_what_can_be_said_of_a_parameter_is_shown() -> None:
    assert f"psrt.{signature('Param', psrt.Param)}\n" in TEXT


def test_layers_named_in_the_table_of_models_exist() -> None:
    table = TEXT.split("## Models and their layers")[1].split("\n## ")[0]
    columns = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")][1:]
    named = {name for column in columns for name in re.findall(r"`(\w+)`", column)}

    assert named
    assert named <= set(psrt.layers.__all__)


def test_activations_named_are_activations() -> None:
    with psrt.program():
        x = psrt.layers.data("x", (2,))
        for name in re.findall(r'`act="(\w+)"`|`"(\w+)"`', TEXT):
            psrt.layers.fc(x, 1, act="".join(name))


def test_the_program_at_the_top_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)

    names: dict[str, Any] = {}
    exec(block, names)

    assert names["program"].gradients()
