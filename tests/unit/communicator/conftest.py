"""Clusters for tests of communicators, which are closed behind them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.communicators import Builder


@pytest.fixture
def fakes() -> Iterator[Builder]:
    builder = Builder("fake")
    yield builder
    builder.close()


@pytest.fixture
def pservers() -> Iterator[Builder]:
    builder = Builder("pserver")
    yield builder
    builder.close()
