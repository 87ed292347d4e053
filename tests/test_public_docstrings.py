"""Every public name stands on a page of the API reference and has a docstring."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import psrt
from tests import house
from tests.support.pages import DOCS

WITHOUT_A_PAGE = {"__version__"}


def shown() -> list[str]:
    """Dotted names that the pages of the API reference render, as far as they can be imported."""
    pages = sorted((DOCS / "reference" / "api").glob("*.md"))
    if find_spec("torch") is None:
        pages.remove(DOCS / "reference" / "api" / "torch.md")
    return [name for p in pages for name in re.findall(r"^::: ([\w.]+)$", p.read_text(), re.M)]


def resolve(dotted: str) -> Any:
    """Return what a dotted name stands for, also where `psrt` loads it on first use."""
    found: Any = psrt
    for part in dotted.split(".")[1:]:
        if not hasattr(found, part):
            importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return found


def public() -> Iterator[tuple[str, Any]]:
    """(dotted name, object) of what the reference renders: members of modules, too."""
    for dotted in shown():
        found = resolve(dotted)
        yield dotted, found
        if isinstance(found, ModuleType):
            yield from ((f"{dotted}.{name}", getattr(found, name)) for name in found.__all__)


def own_docstring(found: Any) -> str:
    """The docstring as written; the signature that dataclasses invent is none."""
    text = vars(found).get("__doc__") if inspect.isclass(found) else found.__doc__
    invented = inspect.isclass(found) and (text or "").startswith(f"{found.__name__}(")
    return "" if invented else (text or "")


def documentable(found: Any) -> bool:
    return inspect.isclass(found) or inspect.isroutine(found) or inspect.ismodule(found)


def test_every_public_name_has_a_docstring() -> None:
    missing = [n for n, found in public() if documentable(found) and not own_docstring(found)]

    assert missing == []


def test_every_name_of_psrt_is_on_a_page() -> None:
    on_pages = {name.removeprefix("psrt.") for name in shown()}

    assert set(psrt.__all__) - WITHOUT_A_PAGE - on_pages == set()


def test_modules_with_paths_of_fluid_list_their_public_names() -> None:
    public = [m for m in house.modules() if m.startswith(house.PUBLIC_PATHS) or m.count(".") == 2]
    of_fluid = [m for m in public if m.startswith("psrt.fluid.") and defines_public_names(m)]

    assert of_fluid
    assert [m for m in of_fluid if not hasattr(importlib.import_module(m), "__all__")] == []


def defines_public_names(module: str) -> bool:
    body = house.tree(house.modules()[module]).body
    return any(isinstance(node, ast.ClassDef | ast.FunctionDef) for node in body)


def test_methods_of_public_classes_have_docstrings() -> None:
    classes = [getattr(psrt, name) for name in psrt.__all__]
    missing = [
        f"{cls.__name__}.{name}"
        for cls in classes
        if inspect.isclass(cls)
        for name, method in vars(cls).items()
        if not name.startswith("_")
        and (inspect.isfunction(method) or isinstance(method, property | classmethod))
        and not inspect.getdoc(getattr(cls, name))
    ]

    assert missing == []
