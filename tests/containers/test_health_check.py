"""The health check of the container image."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from psrt.core.threads import CrashReport
from psrt.observe.http_server import HttpPage, HttpServer

HEALTHY = Path(__file__).parents[2] / "deploy" / "container" / "healthy"
WORKS, CRASHED = HttpPage(b"ok\n"), HttpPage(b"thread x crashed\n", status=503)


@pytest.fixture
def answer() -> list[HttpPage]:
    return [WORKS]


@pytest.fixture
def metrics(answer: list[HttpPage]) -> Iterator[str]:
    server = HttpServer("127.0.0.1:0", {"/healthz": lambda accept: answer[0]}, CrashReport())
    yield server.endpoint
    server.close()


def check(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Run the check beside a process 1 with these words; exits if it is not healthy."""
    read = Path.read_text
    line = "\0".join(words)
    monkeypatch.setattr(
        Path, "read_text", lambda path: line if str(path) == "/proc/1/cmdline" else read(path)
    )
    runpy.run_path(str(HEALTHY))


def test_a_pserver_that_works_is_healthy_by_flag_or_variable(
    monkeypatch: pytest.MonkeyPatch, metrics: str
) -> None:
    check(monkeypatch, "psrt", "pserver", "--metrics", metrics)
    monkeypatch.setenv("PSRT_PSERVER_METRICS", metrics)
    check(monkeypatch, "psrt", "pserver")


def test_a_pserver_whose_thread_has_crashed_is_not(
    monkeypatch: pytest.MonkeyPatch, metrics: str, answer: list[HttpPage]
) -> None:
    answer[0] = CRASHED

    with pytest.raises(SystemExit, match="503"):
        check(monkeypatch, "psrt", "pserver", "--metrics", metrics)


def test_a_pserver_that_does_not_answer_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="port 1:"):
        check(monkeypatch, "psrt", "pserver", "--metrics", "0.0.0.0:1")


@pytest.mark.parametrize("words", [("psrt", "trainer", "job.toml"), ("psrt", "pserver")])
def test_processes_without_a_page_count_as_healthy(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    check(monkeypatch, *words)
