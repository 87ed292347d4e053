"""The share of a training that is done, and the time that is left, in progress lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.data.sources import FilePart, Place, Position
from psrt.trainer.inputs import Measured
from psrt.trainer.measuring import DoneShare, Progress
from psrt.trainer.measuring.done_share import as_duration
from tests.support.clock import ManualClock


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for name, size in (("a", 100), ("b", 300)):
        (tmp_path / name).write_text("x" * size)
    return [tmp_path / "a", tmp_path / "b"]


def test_the_share_counts_bytes_of_all_epochs(files: list[Path]) -> None:
    share = DoneShare(files, -1, epochs=2)

    assert share.at(1, Place((Position(str(files[0]), 50),), 1)) == pytest.approx(50 / 800)
    assert share.at(1, Place((Position(str(files[1]), 100),), 2)) == pytest.approx(200 / 800)
    assert share.at(2, Place((), 2)) == 1.0


def test_a_part_of_a_file_counts_from_its_start(files: list[Path]) -> None:
    part = FilePart(files[1], 100, 300)

    assert DoneShare([part], -1, 1).at(1, Place((Position(str(part), 150),), 1)) == 0.25


@pytest.mark.parametrize("name", ["a.gz", "rows.parquet", "http://host/a"])
def test_the_share_of_files_whose_bytes_tell_nothing_is_unknown(name: str) -> None:
    file = name if "://" in name else Path(name)

    assert DoneShare([file], -1, 1).at(1, Place((), 1)) == 0.0


def test_a_line_has_the_percentage_and_the_time_that_is_left() -> None:
    lines: list[str] = []
    clock = ManualClock()
    progress = Progress(1, 2.0, clock, lines.append, lambda epoch, place: place.next_file / 10)
    progress.start()

    for done in (2, 4, 10):
        clock.advance(10.0)
        progress.step(1, 8, Measured(0.5), Place((), done))

    ends = [line.rpartition("loss 0.5000")[2] for line in lines]
    assert ends == ["  20 %", "  40 %, 1:00 left", "  100 %"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(7, "0:07"), (750, "12:30"), (3723, "1:02:03"), (59.6, "1:00")]
)
def test_a_duration_is_short(seconds: float, text: str) -> None:
    assert as_duration(seconds) == text


def test_after_the_last_batch_all_is_done_though_its_block_is_not() -> None:
    lines: list[str] = []
    clock = ManualClock()
    progress = Progress(1, 60.0, clock, lines.append, lambda epoch, place: place.next_file / 10)
    progress.start()

    for done in (2, 5):
        clock.advance(10.0)
        progress.step(1, 8, Measured(0.5), Place((), done), is_last=done == 5)
    progress.end()

    assert [line.rpartition("loss 0.5000")[2] for line in lines] == ["  100 %"]


def test_all_is_done_if_the_last_step_was_left_out() -> None:
    lines: list[str] = []
    clock = ManualClock()
    progress = Progress(1, 60.0, clock, lines.append, lambda epoch, place: 0.5)
    progress.start()
    clock.advance(10.0)
    progress.step(1, 8, Measured(0.5), Place())
    progress.skipped_step(is_last=True)
    progress.end()

    assert lines[0].endswith("  1 step left out  100 %")
