"""The log has the reason why a pserver is not ready or a registration waits."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from psrt.config.sections import PserverConfig
from psrt.kernels import jit
from psrt.pserver.process import daemon


@pytest.fixture(autouse=True)
def no_listener_is_left() -> Iterator[None]:
    yield
    jit.on_compile(None)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Kernels that the warm-up finds in no cache."""
    missing: list[str] = []

    def warm_up(groups: list[str]) -> float:
        compile_all(missing)
        return 0.0

    monkeypatch.setattr(daemon, "warm_up", warm_up)
    return missing


def compile_all(kernels: list[str]) -> None:
    assert jit._listener is not None
    for name in kernels:
        jit._listener(name)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if line.startswith("compiling")]


def test_a_first_start_says_once_that_it_compiles(
    compiled: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    compiled += ["slab.route", "rows.unique"]

    with caplog.at_level(logging.INFO, "psrt.pserver"):
        daemon._warm_up(PserverConfig())

    assert lines(caplog) == ["compiling kernels for this host (the first start only)"]


def test_a_table_that_is_the_first_of_its_kind_is_said_once_to_be_compiled_for(
    compiled: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "psrt.pserver"):
        daemon._warm_up(PserverConfig())
        compile_all(["waiting.admit_drawn", "half_rows.update"])

    assert lines(caplog) == [
        "compiling kernels for a table that is the first of its kind on this host"
    ]
