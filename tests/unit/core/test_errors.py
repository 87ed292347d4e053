"""The error catalogue, its classes and docs/reference/errors.md are complete and agree."""

from __future__ import annotations

import ast
import re

import grpc
import pytest

from psrt.core import errors
from psrt.core.errors import CATALOGUE, ErrorCode, InternalError, PsrtError, from_code
from tests import house
from tests.support.pages import page

DOCS = page("reference/errors.md")
CODES = pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)


def section_of(code: ErrorCode) -> str:
    found = re.search(rf"^## {code.name}\n(.*?)(?=^## |\Z)", DOCS, re.S | re.M)
    assert found, f"docs/reference/errors.md has no section {code.name}"
    return found[1]


@CODES
def test_every_code_has_a_spec_with_a_real_grpc_status(code: ErrorCode) -> None:
    spec = CATALOGUE[code]

    assert hasattr(grpc.StatusCode, spec.grpc_status)
    assert spec.summary
    assert 0 < spec.exit_code < 126


@CODES
def test_every_code_is_rebuilt_from_its_number_as_its_own_class(code: ErrorCode) -> None:
    error = from_code(int(code), "what happened", "what to do")

    assert type(error) is not PsrtError
    assert (error.code, error.message, error.hint) == (code, "what happened", "what to do")


@CODES
def test_every_code_is_documented_with_its_exit_code_status_and_advice(code: ErrorCode) -> None:
    spec, section = CATALOGUE[code], section_of(code)

    assert f"Exit code {spec.exit_code}, gRPC `{spec.grpc_status}`" in section
    assert ("worth a retry" in section) is spec.retryable
    assert "What to do:" in section


def test_documentation_has_no_section_of_a_code_that_does_not_exist() -> None:
    documented = set(re.findall(r"^## ([A-Z_]+)$", DOCS, re.M))

    assert documented == {code.name for code in ErrorCode}


def test_only_settings_errors_share_an_exit_code() -> None:
    by_exit_code: dict[int, list[ErrorCode]] = {}
    for code, spec in CATALOGUE.items():
        by_exit_code.setdefault(spec.exit_code, []).append(code)

    shared = [codes for codes in by_exit_code.values() if len(codes) > 1]

    assert shared == [[ErrorCode.CONFIG_INVALID, ErrorCode.CONFIG_UNKNOWN_KEY]]


def test_every_error_class_has_a_default_code_that_leads_back_to_it() -> None:
    classes = PsrtError.__subclasses__()

    rebuilt = {cls: type(from_code(int(cls.default_code), "text")) for cls in classes}

    assert all(cls is again for cls, again in rebuilt.items())


def test_the_tree_in_the_docstring_names_every_class() -> None:
    assert errors.__doc__

    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__))

    assert drawn == {cls.__name__ for cls in PsrtError.__subclasses__()}


def test_a_number_nobody_knows_becomes_an_internal_error_that_quotes_it() -> None:
    error = from_code(12345, "strange")

    assert isinstance(error, InternalError)
    assert "12345" in error.message
    assert "strange" in error.message


def test_a_story_tells_message_hint_code_and_where_to_read_on() -> None:
    story = from_code(ErrorCode.DEADLINE, "trainer 1 is missing.", "Read its log.").full_text()

    assert story.splitlines() == [
        "error: trainer 1 is missing.",
        "  what you can do: Read its log.",
        "  DEADLINE (exit 60), docs/reference/errors.md#deadline",
    ]


def test_classes_of_errors_are_made_alike_since_texts_are_put_around_those_of_others() -> None:
    """`again`, and clients that add their call, make an error of the class of another one."""
    classes = [
        node
        for path in house.modules().values()
        for node in ast.walk(house.tree(path))
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
    ]
    own = {
        each.name
        for each in classes
        if any(isinstance(part, ast.FunctionDef) and part.name == "__init__" for part in each.body)
    }

    assert own == {"PsrtError"}
