"""The Python blocks of docs/how-to/train-from-python.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "train-from-python.md"


def test_the_blocks_train_predict_save_and_stop_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}

    exec(compile(first, str(PAGE), "exec"), names)

    lines = capsys.readouterr().out.splitlines()
    epochs = [line for line in lines if line.startswith("epoch")]
    assert [line.split("  ")[0] for line in epochs] == ["epoch 1", "epoch 2", "epoch 3"]
    assert names["fitted"].history[-1].valid.auc.value() > 0.95
    assert names["scores"].shape == (400, 1)
    assert (tmp_path / "model" / "manifest.json").is_file()

    exec(compile(second, str(PAGE), "exec"), names)

    assert 3 <= len(names["best"]) <= 20
