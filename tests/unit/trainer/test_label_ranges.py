"""Labels outside of the range of their loss are refused with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.config.load import load_job
from psrt.config.sections import TrainerConfig
from psrt.core.errors import DataError
from psrt.trainer.sessions import command
from tests.support.small_job import lines, write_files


def trained(job: Path) -> None:
    settings = TrainerConfig(local=True, log_every_s=0.0)
    command.train(settings, load_job(str(job), environ={}).config, lambda line: None)


@pytest.mark.parametrize("label", ["2", "-1"])
@pytest.mark.parametrize("name", ["train-1", "test-0"])
def test_a_label_that_its_loss_does_not_take_is_refused(
    tmp_path: Path, name: str, label: str
) -> None:
    job = write_files(tmp_path, [lines(40, seed=1), lines(40, seed=2)], batch=8)
    rows = (tmp_path / name).read_text().splitlines(keepends=True)
    rows[21] = rows[21].replace("1 0", f"1 {label}", 1).replace("1 1", f"1 {label}", 1)
    (tmp_path / name).write_text("".join(rows))

    with pytest.raises(DataError) as raised:
        trained(job)

    assert f"{tmp_path / name}, line 22: label click is {label}" in raised.value.message
    assert "sigmoid_cross_entropy_with_logits of layer" in raised.value.message


def test_labels_within_the_range_are_trained_on(tmp_path: Path) -> None:
    trained(write_files(tmp_path, [lines(40, seed=1)], batch=8))
