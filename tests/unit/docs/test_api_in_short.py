"""docs/reference/api/in-short.md has every public method of what user code holds."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

import psrt
from psrt.trainer.fitting import Fitted
from psrt.trainer.models import Predictor
from tests.support.pages import page

TEXT = page("reference/api/in-short.md")
CLASSES = {
    "psrt.Executor": psrt.Executor,
    "psrt.LocalExecutor": psrt.LocalExecutor,
    "psrt.ConnectedExecutor": psrt.ConnectedExecutor,
    "Fitted": Fitted,
    "Predictor": Predictor,
    "psrt.Scope": psrt.Scope,
}


def methods(cls: type) -> Iterator[str]:
    """Calls as the page has them: name and arguments, without types; properties by name."""
    for name, member in inspect.getmembers(cls):
        if name.startswith("_"):
            continue
        if not callable(member):
            yield name
            continue
        arguments = list(inspect.signature(member).parameters.values())[1:]
        named = ("*" * (each.kind is each.VAR_POSITIONAL) + each.name for each in arguments)
        yield f"{name}({', '.join(named)})"


@pytest.mark.parametrize("name", CLASSES)
def test_a_section_lists_all_methods_and_no_other(name: str) -> None:
    section = re.split(r"^## ", TEXT.split(f"## {name}\n")[1], flags=re.M)[0]
    shown = re.findall(r"^\| `([^`]+)` \|", section, re.M)

    assert shown == list(methods(CLASSES[name]))
