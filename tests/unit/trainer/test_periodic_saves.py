"""Models saved at intervals: when, under which names, and which are kept."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from pathlib import Path

import pytest

from psrt.core.errors import ConfigError
from psrt.trainer.models import Intervals, PeriodicSaves

EPOCHS = [1, 1, 1, 2, 2, 3]


def due(intervals: Intervals) -> list[int]:
    following = [*EPOCHS[1:], None]
    steps = enumerate(zip(EPOCHS, following, strict=True), 1)
    return [step for step, (now, then) in steps if intervals.is_due(now, then, step)]


def test_models_are_due_by_steps_by_epochs_or_both() -> None:
    assert due(Intervals()) == []
    assert due(Intervals(steps=2)) == [2, 4, 6]
    assert due(Intervals(epochs=1)) == [3, 5, 6]
    assert due(Intervals(epochs=2)) == [5]
    assert due(Intervals(steps=4, epochs=3)) == [4, 6]


class Lab:
    """Saves that write a manifest each, or fail; `said` has their names."""

    def __init__(self, place: Path, keep: int) -> None:
        self.said: list[str] = []
        self.is_full = False
        self.saves = PeriodicSaves(
            place, Intervals(steps=1), keep, self.save, nullcontext, self.said.append
        )

    def save(self, directory: Path) -> None:
        if self.is_full:
            raise ConfigError("The model cannot be saved.", hint="Make room.")
        directory.mkdir()
        (directory / "manifest.json").write_text("{}")

    def steps(self, first: int, last: int) -> None:
        for step in range(first, last + 1):
            self.saves.after(1, 1, step)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_newest_models_are_kept(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "model", keep=2)

    lab.steps(8, 11)

    assert names(tmp_path) == ["model-step-10", "model-step-11"]
    assert [Path(name).name for name in lab.said] == [f"model-step-{n}" for n in (8, 9, 10, 11)]


def test_all_models_are_kept_without_a_limit(tmp_path: Path) -> None:
    Lab(tmp_path / "model", keep=0).steps(1, 5)

    assert len(names(tmp_path)) == 5


def test_a_resumed_training_counts_the_models_before_it_and_leaves_others_alone(
    tmp_path: Path,
) -> None:
    Lab(tmp_path / "model", keep=0).steps(1, 2)
    Lab(tmp_path / "model", keep=0).steps(90, 90)  # of another training
    (tmp_path / "model-step-x").mkdir()
    (tmp_path / "model-step-1-notes").mkdir()

    lab = Lab(tmp_path / "model", keep=2)
    lab.saves.go_on(2)
    lab.steps(3, 4)

    assert names(tmp_path) == [
        "model-step-1-notes",
        "model-step-3",
        "model-step-4",
        "model-step-90",
        "model-step-x",
    ]


def test_a_disk_that_is_full_costs_no_training_and_no_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lab = Lab(tmp_path / "model", keep=1)
    lab.steps(1, 1)
    lab.is_full = True
    with caplog.at_level(logging.WARNING, "psrt.trainer"):
        lab.steps(2, 2)

    assert names(tmp_path) == ["model-step-1"]
    assert "The model cannot be saved. Training goes on. Make room." in caplog.text
