"""Trainings of Criteo's rows by `psrt launch`: to the end, or until a cut."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psrt.core.errors import PsrtError
from psrt.pserver.checkpoints import complete_cuts, find_cut
from psrt.storage.locate import directory_at

JOB = Path(__file__).resolve().parents[2] / "examples" / "criteo" / "criteo.toml"
PSRT = (sys.executable, "-m", "psrt")
TIMEOUT_S, POLL_S = 1800.0, 0.02


@dataclass(frozen=True)
class Data:
    """Converted rows in `folder`, the examples of a batch of one trainer, and the mode."""

    folder: Path
    batch: int
    mode: str
    seed: int

    def variables(self, every: int) -> dict[str, str]:
        """Settings of a job with a cut `every` so many steps."""
        return {
            "PSRT_JOB_SEED": str(self.seed),
            "PSRT_DATA_TRAIN": str(self.folder / "train-*"),
            "PSRT_DATA_TEST": str(self.folder / "test-*"),
            "PSRT_DATA_BATCH_SIZE": str(self.batch),
            "PSRT_COMMUNICATION_MODE": self.mode,
            "PSRT_PSERVER_CHECKPOINT_EVERY_STEPS": str(every),
        }


def converted(table: Path, out: Path, files: int) -> int:
    """Convert a table, of which a tenth is held back; returns the rows to train on."""
    flags = ["--out", str(out), "--files", str(files), "--test-fraction", "0.1"]
    subprocess.run([*PSRT, "data", "criteo", str(table), *flags], check=True, stdout=sys.stderr)
    rows = 0
    for path in out.glob("train-*"):
        with path.open("rb") as lines:
            rows += sum(1 for _ in lines)
    return rows


def whole(data: Data, place: Path, numbers: tuple[int, int]) -> dict[str, Any]:
    """The report of a training by so many pservers and trainers, which ends by itself."""
    with _launched(data, place, numbers, every=0, flags=()) as running:
        return _report(running, place, 0)


def resumed(
    data: Data, place: Path, numbers: Sequence[tuple[int, int]], stops: Sequence[int], every: int
) -> Iterator[dict[str, Any]]:
    """Reports of a training's attempts: each goes on from the cut of the one before.

    All but the last one are stopped by SIGTERM behind the first cut at one of the steps `stops`.
    """
    cuts = place / "cuts"
    for number, each in enumerate(numbers):
        flags = ["--checkpoint-dir", str(cuts), "--resume", "auto"]
        with _launched(data, place / str(number), each, every, flags) as running:
            if number < len(stops):
                _await_cut(cuts, stops[number], running)
                running.send_signal(signal.SIGTERM)
                yield _report(running, place / str(number), 128 + signal.SIGTERM)
            else:
                yield _report(running, place / str(number), 0)


@contextmanager
def _launched(
    data: Data, place: Path, numbers: tuple[int, int], every: int, flags: Sequence[str]
) -> Iterator[subprocess.Popen[str]]:
    """A launch that writes its logs and its report to `place`; it is ended if the block fails."""
    place.mkdir(parents=True)
    given = ["--pservers", str(numbers[0]), "--trainers", str(numbers[1]), *flags]
    given += ["--log-dir", str(place / "logs"), "--report", str(place / "report.json")]
    with (place / "output.txt").open("w") as output:
        running = subprocess.Popen(
            [*PSRT, "launch", *given, str(JOB)],
            env=os.environ | data.variables(every),
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield running
        finally:
            running.terminate()
            running.wait()


def _await_cut(cuts: Path, step: int, running: subprocess.Popen[str]) -> None:
    directory, deadline_s = directory_at(cuts), time.monotonic() + TIMEOUT_S
    while _newest_step(directory) < step:
        if running.poll() is not None or time.monotonic() > deadline_s:
            raise SystemExit(f"the training has ended before a cut at step {step} was complete")
        time.sleep(POLL_S)


def _newest_step(directory: Any) -> int:
    """Rounds, or mini-batches of all trainers, of the newest complete cut; -1 without one."""
    try:
        if not complete_cuts(directory):
            return -1
        manifest = find_cut(directory, "latest").manifest
    except PsrtError:  # retention has just deleted it
        return -1
    return max(int(manifest["round"]), int(manifest["step"]))


def _report(running: subprocess.Popen[str], place: Path, expected: int) -> dict[str, Any]:
    code = running.wait(TIMEOUT_S)
    if code != expected:
        raise SystemExit(f"a training ended with {code}:\n{(place / 'output.txt').read_text()}")
    found: dict[str, Any] = json.loads((place / "report.json").read_text())
    return found
