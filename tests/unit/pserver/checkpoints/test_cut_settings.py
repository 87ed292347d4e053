"""Settings of cuts from those of a pserver process."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.config.sections import PserverConfig
from psrt.pserver.process.beginning import cut_settings


def full_every(folder: Path, **options: float) -> int:
    settings = cut_settings(PserverConfig(checkpoint_dir=str(folder), **options))
    assert settings is not None
    return settings.full_every


@pytest.mark.parametrize("schedule", [{"checkpoint_every_steps": 5}, {"checkpoint_every_s": 0.5}])
def test_scheduled_cuts_form_chains(tmp_path: Path, schedule: dict[str, float]) -> None:
    assert full_every(tmp_path, **schedule) == 8
    assert full_every(tmp_path, checkpoint_full_every=3, **schedule) == 3


def test_cuts_on_request_alone_are_full(tmp_path: Path) -> None:
    assert full_every(tmp_path, checkpoint_full_every=3) == 1


def test_without_a_directory_there_are_no_cuts() -> None:
    assert cut_settings(PserverConfig(checkpoint_every_steps=5)) is None
