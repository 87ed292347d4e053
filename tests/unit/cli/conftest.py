"""Commands that run in the process of a test leave nothing behind in it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from psrt.config import overrides
from psrt.config.overrides import ProcessOverrides


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Flags and variables that a command sets end with its test."""
    monkeypatch.setattr(overrides, "OVERRIDES", ProcessOverrides())
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
