"""Curves of a training: records in a file and in TensorBoard, and their drawing."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from psrt.core.errors import ConfigError, DataError
from psrt.trainer.measuring.curves import TRAIN, VALIDATION, Curves, read, sinks_of
from psrt.trainer.sessions import command
from tests.cluster.test_validation import job_of
from tests.support.clock import ManualClock


def written(path: Path) -> Curves:
    clock = ManualClock()
    curves = Curves(sinks_of(str(path), ""), clock)
    curves.record(TRAIN, {"step": 10, "epoch": 1, "loss": 0.5, "auc": None})
    clock.advance(2.5)
    curves.record(VALIDATION, {"step": 20, "epoch": 1, "loss": 0.4, "auc": 0.7})
    curves.close()
    return curves


def test_a_file_has_a_record_a_line_without_unknown_values(tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl")

    assert read(tmp_path / "a.jsonl") == [
        {"kind": "train", "seconds": 0.0, "step": 10, "epoch": 1, "loss": 0.5},
        {"kind": "validation", "seconds": 2.5, "step": 20, "epoch": 1, "loss": 0.4, "auc": 0.7},
    ]


def test_a_file_is_continued(tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl")
    written(tmp_path / "a.jsonl")

    assert len(read(tmp_path / "a.jsonl")) == 4


def test_a_csv_file_has_the_same_records_and_one_header(tmp_path: Path) -> None:
    for _ in range(2):
        written(tmp_path / "a.csv")

    written(tmp_path / "a.jsonl")
    assert read(tmp_path / "a.csv") == 2 * read(tmp_path / "a.jsonl")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[:2] == [
        "kind,step,epoch,examples,seconds,examples_per_s,loss,auc",
        "train,10,1,,0.0,,0.5,",
    ]
    assert len(lines) == 5


def test_a_csv_file_has_columns_for_metrics_of_the_model(tmp_path: Path) -> None:
    curves = Curves(sinks_of(str(tmp_path / "a.csv"), "", ["gauc"]), ManualClock())
    curves.record(VALIDATION, {"step": 1, "epoch": 1, "gauc": 0.6, "other": 3})
    curves.close()

    (record,) = read(tmp_path / "a.csv")
    assert record["gauc"] == 0.6
    assert "other" not in record


def test_a_row_that_is_no_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("kind,step,loss\ntrain,1,0.5\ntrain,x,0.5\n")

    with pytest.raises(DataError, match=r"a\.csv, line 3, is no record"):
        read(tmp_path / "a.csv")


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"kind": "train", "step": 1}\n{"loss": 1}\n')

    with pytest.raises(DataError, match=r"a\.jsonl, line 2, is no record"):
        read(path)


def test_a_file_that_cannot_be_written_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="curves cannot be written to"):
        sinks_of(str(tmp_path / "nowhere" / "a.jsonl"), "")


def test_event_files_have_the_same_values(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    from tensorboardX.proto.event_pb2 import Event

    curves = Curves(sinks_of("", str(tmp_path)), ManualClock())
    curves.record(TRAIN, {"step": 10, "epoch": 1, "loss": 0.5})
    curves.close()

    (file,) = tmp_path.iterdir()
    data, found = file.read_bytes(), []
    while data:  # length, its checksum, the event, its checksum
        size = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + size])
        found += [(v.tag, v.simple_value, event.step) for v in event.summary.value]
        data = data[16 + size :]
    assert found == [("train/loss", 0.5, 10)]


def test_a_training_records_its_progress_and_validations(tmp_path: Path) -> None:
    from psrt.config.sections import TrainerConfig, ValidationConfig

    config, path = job_of(tmp_path, ValidationConfig()), tmp_path / "a.curves.jsonl"
    assert command.train(TrainerConfig(local=True, curves=str(path)), config, print) == 0

    records = read(path)
    steps = [each["step"] for each in records if each["kind"] == VALIDATION]
    assert steps == [10, 20, 30]
    assert records[-1]["kind"] == TRAIN
    assert records[-1].keys() >= {"examples", "examples_per_s", "loss", "auc", "epoch"}


class FullDisk:
    """A sink that fails; `tries` counts."""

    tries = 0

    def write(self, record: dict[str, object]) -> None:
        self.tries += 1
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_costs_no_training(caplog: pytest.LogCaptureFixture) -> None:
    disk = FullDisk()
    curves = Curves([disk], ManualClock())

    for step in range(3):
        curves.record(TRAIN, {"step": step})
    curves.close()

    assert disk.tries == 1
    assert "No space left on device" in caplog.text
    assert caplog.text.count("curves are written no more") == 1
