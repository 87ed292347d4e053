"""The Python block of docs/how-to/train-pytorch-models.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "train-pytorch-models.md"


def test_the_block_trains(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="psrt.torch needs torch")
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)

    exec(compile(block, str(PAGE), "exec"), {})

    assert float(capsys.readouterr().out.removeprefix("loss ")) < 0.5
