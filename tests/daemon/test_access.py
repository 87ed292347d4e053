"""Pservers that admit callers by tokens: real processes, over each carrier."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from psrt.core.errors import CATALOGUE, ErrorCode
from tests.support.processes import psrt
from tests.support.pserver import DaemonProcess, daemon
from tests.support.small_job import lines, write_files

DENIED = CATALOGUE[ErrorCode.ACCESS_DENIED].exit_code
CALLERS = {
    "trainers": ("--scope", "train", "--job", "small"),
    "others": ("--scope", "train", "--job", "another"),
    "board": ("--scope", "read"),
}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `all.toml` of the pserver, and a file of each caller."""
    folder = tmp_path_factory.mktemp("tokens")
    create(folder, "pservers", "--scope", "admin", "--file", str(folder / "all.toml"))
    for name, flags in CALLERS.items():
        places = "--file", str(folder / "all.toml"), "--copy", str(folder / f"{name}.toml")
        create(folder, name, *flags, *places)
    create(folder, "trainers", *CALLERS["trainers"], "--file", str(folder / "strangers.toml"))
    return folder


def create(folder: Path, *arguments: str) -> None:
    with psrt(folder / "made.log", "token", "create", *arguments) as made:
        assert made.exit_code() == 0, made.output


@pytest.fixture
def pserver(tmp_path: Path, tokens: Path) -> Iterator[DaemonProcess]:
    with daemon(tmp_path, "--token-file", str(tokens / "all.toml")) as running:
        yield running


def train(folder: Path, pserver: DaemonProcess, *flags: str) -> tuple[int, str]:
    """Exit code and output of the only trainer of a small job."""
    job = write_files(folder, [lines(320, seed=1)])
    given = "--endpoints", pserver.endpoint, "--trainers", "1", "--trainer-id", "0", *flags
    with psrt(folder / "trainer.log", "trainer", str(job), *given) as running:
        return running.exit_code(), running.output


@pytest.mark.parametrize("carrier", ["stream", "grpc"])
def test_a_trainer_with_a_token_trains(
    tmp_path: Path, tokens: Path, pserver: DaemonProcess, carrier: str
) -> None:
    token = "--token-file", str(tokens / "trainers.toml")

    code, output = train(tmp_path, pserver, "--carrier", carrier, *token)

    assert code == 0, output
    assert pserver.exit_code() == 0, pserver.log.read_text()


@pytest.mark.parametrize(
    ("caller", "why"),
    [
        ("", "This process has none"),
        ("others", "it is for job 'another'"),
        ("board", "its scope is read, and HELLO needs train"),
        ("strangers", "its key is another one"),
    ],
)
def test_others_are_refused_by_name_and_recorded(
    tmp_path: Path, tokens: Path, pserver: DaemonProcess, caller: str, why: str
) -> None:
    flags = ["--token-file", str(tokens / f"{caller}.toml")] if caller else []

    code, output = train(tmp_path, pserver, *flags)

    assert code == DENIED, output
    assert why in output or "was not admitted" in output
    assert "refused grpc" in pserver.log.read_text()
