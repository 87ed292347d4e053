"""PyTorch ranks under `psrt launch`: one process is killed, and each example counts once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="psrt.torch needs torch")

from tests.support import torch_ledger
from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, Running, psrt

pytestmark = pytest.mark.long
RANKS = torch_ledger.TRAINERS


@contextlib.contextmanager
def launched(
    place: Path, name: str, script: tuple[str, ...], *flags: str, **variables: str
) -> Iterator[Running]:
    given = "--pservers", "2", "--trainers", str(RANKS), "--checkpoint-dir", str(place / "cuts")
    logs = "--log-dir", str(place / f"logs-{name}")
    path, words = torch_ledger.__file__, (str(place), *script)
    log = place / f"{name}.log"
    with psrt(log, "launch", *given, *logs, *flags, path, "--", *words, **variables) as running:
        yield running


@contextlib.contextmanager
def opened(gate: Path, running: Running) -> Iterator[None]:
    """A FIFO that a rank waits for; it goes on at the end of the block."""
    found: list[int] = []

    def is_waiting() -> bool:
        assert running.process.poll() is None, running.output
        with contextlib.suppress(OSError):  # nobody reads it yet
            found.append(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
        return bool(found)

    eventually(is_waiting, "a rank that waits", DEADLINE_S)
    yield
    os.close(found[0])


def check_ranks(place: Path) -> None:
    for rank in range(RANKS):
        torch_ledger.check_counts(dict(np.load(place / f"rank-{rank}.npz")))


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_killed_pserver_is_started_again_and_training_goes_on(tmp_path: Path, mode: str) -> None:
    gate, ready = tmp_path / "gate-6", tmp_path / "logs-killed" / "pserver.1.ready.json"
    os.mkfifo(gate)
    script = "3", "0", mode  # with a cut of all ranks, and steps behind it
    with launched(tmp_path, "killed", script, PSRT_JOB_DURABILITY="delta") as running:
        with opened(gate, running):
            os.kill(json.loads(ready.read_text())["pid"], signal.SIGKILL)
        assert running.exit_code() == 0

    assert "pserver.1 was killed and is started again" in running.output
    check_ranks(tmp_path)


def test_a_killed_rank_ends_the_job_by_name_and_all_go_on_from_the_cut(tmp_path: Path) -> None:
    with launched(tmp_path, "killed", ("3", "5")) as killed:
        assert killed.exit_code() != 0
    assert f"trainer.{RANKS - 1} (pid" in killed.output
    assert not list(tmp_path.glob("rank-*.npz"))

    with launched(tmp_path, "again", ("0", "0"), "--resume", "latest") as again:
        assert again.exit_code() == 0
    check_ranks(tmp_path)
