"""The job's Python file: what can be wrong with it, and what the user is then told."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.core.errors import ConfigError, DataError, ProgramError
from psrt.trainer.inputs.program_file import call_build, load_build


def write(directory: Path, text: str) -> Path:
    path = directory / "train.py"
    path.write_text(text)
    return path


def test_build_receives_the_parameters_of_the_job(tmp_path: Path) -> None:
    path = write(tmp_path, "def build(width, depth=2):\n    return width * depth\n")

    built = call_build(load_build(path), {"width": 21}, path)

    assert built == 42


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"train\.py does not exist"):
        load_build(tmp_path / "train.py")


def test_a_file_without_build_is_told_what_to_define(tmp_path: Path) -> None:
    path = write(tmp_path, "def bild():\n    pass\n")

    with pytest.raises(ConfigError, match=r"no function build\(\)") as caught:
        load_build(path)

    assert "def build" in caught.value.hint


def test_an_import_that_raises_names_the_line_of_the_users_file(tmp_path: Path) -> None:
    path = write(tmp_path, "x = 1\ny = x / 0\ndef build(): pass\n")

    with pytest.raises(ProgramError, match=r"ZeroDivisionError at .*train\.py:2: division by zero"):
        load_build(path)


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "x = 1\n\ndef build(:\n")

    with pytest.raises(ProgramError, match=r"SyntaxError at .*train\.py:3"):
        load_build(path)


def test_a_build_that_raises_in_a_library_names_the_users_line(tmp_path: Path) -> None:
    path = write(tmp_path, "import json\ndef build():\n    return json.loads('{')\n")

    with pytest.raises(
        ProgramError, match=r"build\(\) of the job raised JSONDecodeError at .*py:3"
    ):
        call_build(load_build(path), {}, path)


def test_an_error_of_psrt_inside_build_stays_itself(tmp_path: Path) -> None:
    lines = ["from psrt.core.errors import DataError as E", "def build(): raise E('no words')"]
    path = write(tmp_path, "\n".join(lines))

    with pytest.raises(DataError, match=r"^no words$"):
        call_build(load_build(path), {}, path)


def test_parameters_that_do_not_fit_build_show_its_signature(tmp_path: Path) -> None:
    path = write(tmp_path, "def build(width=16):\n    return width\n")

    with pytest.raises(ConfigError, match="'widht'") as caught:
        call_build(load_build(path), {"widht": 8}, path)

    assert "build(width=16)" in caught.value.hint
