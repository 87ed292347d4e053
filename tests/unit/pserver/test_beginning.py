"""The cut that a pserver begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.config.sections import PserverConfig
from psrt.core.errors import ConfigError
from psrt.pserver.process import beginning
from tests.support.saved_cuts import cut_of


def begun_with(directory: Path, resume: str) -> int | None:
    config = PserverConfig(checkpoint_dir=str(directory), resume=resume)
    found = beginning.resumed(config, beginning.cut_settings(config))
    return None if found is None else found.number


def test_auto_is_the_latest_cut_or_none_if_there_is_none(tmp_path: Path) -> None:
    assert begun_with(tmp_path, "auto") is None

    cut_of(tmp_path, [[]], [[]], number=1)
    cut_of(tmp_path, [[]], [[]], number=2)

    assert begun_with(tmp_path, "auto") == 2


def test_a_cut_that_is_asked_for_and_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no complete cut 'latest'; it has none"):
        begun_with(tmp_path, "latest")
