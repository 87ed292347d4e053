"""`psrt scale`: trainers are added to and removed from jobs of real processes while they train.

The row of each example counts how often it was trained: once an epoch, whatever happened.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from psrt.core.errors import CATALOGUE, ErrorCode
from psrt.pserver.checkpoints import complete_cuts
from psrt.storage.locate import directory_at
from tests.support.carriers import eventually
from tests.support.counting_job import counts_in, write_counting_job
from tests.support.processes import Running, psrt
from tests.support.pserver import DaemonProcess, daemon

ROWS = [20000, 14000, 6000]
EXAMPLES, EPOCHS = sum(ROWS), 2
LONG_S = 150.0


@dataclass
class Scaled:
    """Two pservers and trainers of a counting job in `directory`."""

    directory: Path
    job: Path
    pservers: list[DaemonProcess]
    stack: contextlib.ExitStack
    trainers: list[Running] = field(default_factory=list)

    def start(self, trainer: int, trainers: int) -> Running:
        endpoints = ",".join(each.endpoint for each in self.pservers)
        given = "--endpoints", endpoints, "--trainers", str(trainers), "--trainer-id", str(trainer)
        flags = ("--save", str(self.directory / "model")) if trainer == 0 else ()
        log = self.directory / f"trainer-{trainer}-{len(self.trainers)}.log"
        running = self.stack.enter_context(psrt(log, "trainer", *given, *flags, str(self.job)))
        self.trainers.append(running)
        return running

    def scale(self, trainers: int) -> tuple[int, str]:
        """Exit code and output of `psrt scale`, once training has made a cut."""
        cuts = directory_at(self.directory / "cuts")
        eventually(lambda: complete_cuts(cuts), "a first cut", LONG_S)
        given = "--endpoint", self.pservers[0].endpoint, "--trainers", str(trainers)
        with psrt(self.directory / "scale.log", "scale", *given) as running:
            return running.exit_code(LONG_S), running.output

    def end(self) -> list[float]:
        """The counts of all examples once every process has ended well."""
        for each in self.trainers:
            assert each.exit_code(LONG_S) == 0, each.output
        for pserver in self.pservers:
            assert pserver.exit_code() == 0
        return counts_in(self.directory / "model", EXAMPLES)


@contextlib.contextmanager
def job_of(
    directory: Path, mode: str, trainers: int, *, data: str = "", failpoint: str = ""
) -> Iterator[Scaled]:
    """A running job; with `failpoint` the first pserver strikes there."""
    job = write_counting_job(directory, ROWS, mode, EPOCHS, every=200, data=data)
    with contextlib.ExitStack() as stack:
        pservers = []
        for index in range(2):
            (place := directory / f"pserver-{index}").mkdir()
            flags = "--config", str(job), "--checkpoint-dir", str(directory / "cuts")
            pservers.append(stack.enter_context(daemon(place, *flags)))
        made = Scaled(directory, job, pservers, stack)
        for trainer in range(trainers):
            made.start(trainer, trainers)
        yield made


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
def test_each_example_is_trained_once_an_epoch_in_async(
    tmp_path: Path, before: int, after: int
) -> None:
    with job_of(tmp_path, "async", before, data="shuffle_seed = 3") as job:
        for newcomer in range(before, after):
            job.start(newcomer, after).wait_for(f"it waits for that number")
        code, output = job.scale(after)
        assert code == 0, output
        assert f"the job goes on with {after} trainers" in output

        counts = job.end()

    assert counts == [EPOCHS] * EXAMPLES
    stay, leave = job.trainers[: min(before, after)], job.trainers[after:before]
    assert all("joins again" in each.output for each in stay)
    assert all(f"data of {before} trainers dealt again" in each.output for each in stay)
    assert all(f"leaves: the job goes on with {after} trainers" in each.output for each in leave)
