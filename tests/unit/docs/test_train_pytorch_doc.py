"""The Python blocks of docs/how-to/train-pytorch-models.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "train-pytorch-models.md"


BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def run(number: int) -> None:
    pytest.importorskip("torch", reason="psrt.torch needs torch")
    exec(compile(BLOCKS[number], str(PAGE), "exec"), {})


def test_dense_parameters_on_pservers_train() -> None:
    run(0)


def test_a_training_is_saved_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run(1)

    assert capsys.readouterr().out == "cut 1 in epoch 0\ngoes on from cut 1 in epoch 0\n"


def test_the_whole_example_trains(capsys: pytest.CaptureFixture[str]) -> None:
    run(2)

    assert len(BLOCKS) == 3
    assert float(capsys.readouterr().out.removeprefix("loss ")) < 0.5
