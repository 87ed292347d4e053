"""`psrt scale`: trainers are added to and removed from jobs of real processes while they train.

The row of each example counts how often it was trained: once an epoch, whatever happened.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import CATALOGUE, ErrorCode
from psrt.pserver.checkpoints import complete_cuts
from psrt.storage.locate import directory_at
from tests.support.carriers import eventually
from tests.support.counting_job import counts_in, write_counting_job
from tests.support.processes import Running, psrt
from tests.support.pserver import DaemonProcess, daemon
from tests.support.saved_models import model_of
from tests.support.small_job import BATCH, lines, write_files

ROWS = [6000, 4800, 4200]
EXAMPLES, EPOCHS = sum(ROWS), 2
LONG_S = 150.0
ASKED = "asks for a cut from which the job goes on with"
"""The line of the first pserver for a request."""


def scaled(directory: Path, endpoint: str, trainers: int) -> tuple[int, str]:
    """Exit code and output of `psrt scale`."""
    given = "--endpoint", endpoint, "--trainers", str(trainers)
    with psrt(directory / "scale.log", "scale", *given) as running:
        return running.exit_code(LONG_S), running.output


def endpoint_of(logs: Path) -> str:
    """The endpoint of the first pserver of a launch."""
    return str(json.loads((logs / "pserver.0.ready.json").read_text())["endpoint"])


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

    def hold(self) -> None:
        """Stop each trainer at its first line of progress, so that none completes before."""
        running = list(self.trainers)

        def held() -> bool:
            for each in [each for each in running if "  step " in each.output]:
                each.process.send_signal(signal.SIGSTOP)
                running.remove(each)
            return not running

        eventually(held, "a line of progress of each trainer", LONG_S)

    @contextlib.contextmanager
    def scaling(self, trainers: int) -> Iterator[Running]:
        """A `psrt scale` that has been asked for; held trainers go on from there."""
        first = self.pservers[0]
        before = first.log.read_text().count(ASKED)
        given = "--endpoint", first.endpoint, "--trainers", str(trainers)
        with psrt(self.directory / "scale.log", "scale", *given) as running:
            eventually(lambda: first.log.read_text().count(ASKED) > before, "a request", LONG_S)
            for each in self.trainers:
                each.process.send_signal(signal.SIGCONT)
            yield running

    def scale(self, trainers: int) -> tuple[int, str]:
        """Exit code and output of `psrt scale`."""
        with self.scaling(trainers) as running:
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
    directory: Path, mode: str, trainers: int, *, data: str = "", failpoints: Sequence[str] = ()
) -> Iterator[Scaled]:
    """A job whose trainers have begun; they are held until it is scaled, unless it is `sync`.

    It has a schedule of cuts, unless there are `failpoints`, of one pserver each.
    """
    every = 0 if failpoints else 200
    job = write_counting_job(directory, ROWS, mode, EPOCHS, every=every, data=data)
    with contextlib.ExitStack() as stack:
        pservers = []
        for index in range(2):
            (place := directory / f"pserver-{index}").mkdir()
            flags = "--config", str(job), "--checkpoint-dir", str(directory / "cuts")
            points = dict(zip(["PSRT_FAILPOINT"], failpoints[index : index + 1], strict=False))
            pservers.append(stack.enter_context(daemon(place, *flags, **points)))
        made = Scaled(directory, job, pservers, stack)
        for trainer in range(trainers):
            made.start(trainer, trainers)
        if mode == "sync":  # one that stands still would hold up the others
            made.trainers[0].wait_for("epoch 1")
        else:
            made.hold()
        yield made


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
def test_each_example_is_trained_once_an_epoch(tmp_path: Path, before: int, after: int) -> None:
    with job_of(tmp_path, "async", before, data="shuffle_seed = 3") as job:
        for newcomer in range(before, after):
            job.start(newcomer, after).wait_for("it waits for that number")
        code, output = job.scale(after)
        assert code == 0, output
        assert f"the job goes on with {after} trainers" in output

        counts = job.end()

    assert counts == [EPOCHS] * EXAMPLES
    stay, leave = job.trainers[: min(before, after)], job.trainers[after:before]
    assert all("joins again" in each.output for each in stay)
    assert all(f"data of {before} trainers dealt again" in each.output for each in stay)
    assert all(f"leaves: the job goes on with {after} trainers" in each.output for each in leave)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_cut_that_fails_changes_nothing_and_the_next_request_succeeds(tmp_path: Path) -> None:
    with job_of(tmp_path, "half_async", 2, failpoints=["", "cut.before_part=fail"]) as job:
        code, output = job.scale(3)
        assert code == CATALOGUE[ErrorCode.CUT_GIVEN_UP].exit_code, output
        assert "cut.before_part" in output

        code, output = job.scale(1)
        assert code == 0, output
        counts = job.end()

    assert counts == [EPOCHS] * EXAMPLES


@pytest.mark.timeout(400)
def test_a_trainer_that_is_killed_during_the_change_is_replaced(tmp_path: Path) -> None:
    with job_of(tmp_path, "async", 2, failpoints=["", "cut.before_part=stop"]) as job:
        stopped = job.pservers[1].process
        with job.scaling(3) as scale:
            eventually(lambda: is_stopped(stopped.pid), "a stop before the part", LONG_S)
            job.trainers.pop(1).process.kill()
            stopped.send_signal(signal.SIGCONT)
            assert scale.exit_code(LONG_S) == 0, scale.output
        job.start(1, 3)
        job.start(2, 3)
        counts = job.end()

    assert counts == [EPOCHS] * EXAMPLES


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("point", ["cut.before_manifest", "cut.frozen"])
def test_a_pserver_that_is_killed_during_the_change_ends_the_job_by_name(
    tmp_path: Path, point: str
) -> None:
    with job_of(tmp_path, "sync", 2, failpoints=[f"{point}=kill"]) as job:
        code, output = job.scale(3)
        codes = [each.exit_code(LONG_S) for each in job.trainers]
        pserver = job.pservers[1].exit_code()

    lost = CATALOGUE[ErrorCode.UNAVAILABLE].exit_code
    assert code == lost, output
    unknown = CATALOGUE[ErrorCode.CHILD_FAILED].exit_code  # the other pserver gave up first
    assert set(codes) <= {lost, unknown}
    named = (job.pservers[0].endpoint, "unknown whether cut 1")
    assert all(any(each in running.output for each in named) for running in job.trainers)
    assert pserver != 0
    assert complete_cuts(directory_at(tmp_path / "cuts")) == []


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_launched_job_starts_and_ends_trainers_and_each_example_counts_once(
    tmp_path: Path,
) -> None:
    rows = [2 * count for count in ROWS]
    job = write_counting_job(tmp_path, rows, "async", EPOCHS, every=200)
    cuts, logs = tmp_path / "cuts", tmp_path / "logs"
    with launched(job, "model", 1, "--checkpoint-dir", str(cuts), "--log-dir", str(logs)) as job_:
        job_.wait_for("epoch 1")
        for trainers in (3, 2):
            code, output = scaled(tmp_path, endpoint_of(logs), trainers)
            assert code == 0, output
            job_.wait_for(f"the job goes on with {trainers} trainers, before")
            for trainer in range(trainers):
                await_text(logs / f"trainer.{trainer}.log", f"{trainer} of {trainers}, 2 pservers")
        code = job_.exit_code(LONG_S)

    assert code == 0, job_.output
    assert counts_in(tmp_path / "model", sum(rows)) == [EPOCHS] * sum(rows)
    assert "leaves: the job goes on with 2 trainers" in (logs / "trainer.2.log").read_text()


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("durability", ["delta", "cut"])
def test_a_durable_job_goes_on_with_its_new_number_though_each_pserver_is_killed(
    tmp_path: Path, durability: str
) -> None:
    rows = [2 * count for count in ROWS]
    job = write_counting_job(tmp_path, rows, "async", EPOCHS, every=400)
    text = job.read_text().replace("[job]", f'[job]\ndurability = "{durability}"', 1)
    job.write_text(text + "delta_every_s = 0.1\n")
    cuts, logs = tmp_path / "cuts", tmp_path / "logs"
    with launched(job, "model", 2, "--checkpoint-dir", str(cuts), "--log-dir", str(logs)) as job_:
        job_.wait_for("epoch 1")
        code, output = scaled(tmp_path, endpoint_of(logs), 3)
        assert code == 0, output
        for trainer in range(3):
            await_text(logs / f"trainer.{trainer}.log", f"{trainer} of 3, 2 pservers")
        await_text(logs / "trainer.2.log", "  step ")
        for number in (1, 0):
            ready = logs / f"pserver.{number}.ready.json"
            killed = json.loads(ready.read_text())["pid"]
            os.kill(killed, signal.SIGKILL)
            await_text(logs / f"pserver.{number}.log", "has sent its pushes again; missing: 0")
        code = job_.exit_code(LONG_S)

    assert code == 0, job_.output
    assert counts_in(tmp_path / "model", sum(rows)) == [EPOCHS] * sum(rows)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_sync_ends_with_the_bits_of_a_job_that_resumed_the_cut(tmp_path: Path) -> None:
    files = [lines(BATCH * 40, seed=n) for n in range(2)]
    job = write_files(tmp_path, files, "sync", epochs=4)
    job.write_text(job.read_text() + "[pserver]\ncheckpoint_keep = 100\n")
    cuts, logs = tmp_path / "cuts", tmp_path / "logs"
    places = "--checkpoint-dir", str(cuts), "--log-dir"
    with launched(job, "scaled", 2, *places, str(logs)) as running:
        running.wait_for("epoch 1")
        code, output = scaled(tmp_path, endpoint_of(logs), 3)
        assert code == 0, output
        assert running.exit_code(LONG_S) == 0, running.output
    number = output.split()[1].rstrip(":")

    with launched(job, "resumed", 3, *places, f"{logs}-again", "--resume", number) as running:
        assert running.exit_code(LONG_S) == 0, running.output

    expected, found = model_of(tmp_path / "resumed"), model_of(tmp_path / "scaled")
    assert expected.keys() == found.keys()
    assert [name for name in expected if not np.array_equal(expected[name], found[name])] == []


@contextlib.contextmanager
def launched(job: Path, name: str, trainers: int, *flags: str) -> Iterator[Running]:
    given = "--pservers", "2", "--trainers", str(trainers), "--save", str(job.parent / name)
    with psrt(job.parent / f"{name}.log", "launch", str(job), *given, *flags) as running:
        yield running


def await_text(log: Path, text: str) -> None:
    eventually(lambda: log.exists() and text in log.read_text(), f"{text!r} in {log}", LONG_S)
