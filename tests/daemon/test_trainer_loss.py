"""Jobs one of whose trainers is killed for good: real processes, both carriers."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from psrt.core.errors import CATALOGUE, ErrorCode
from psrt.core.specs import Async, CommunicationMode, Sync, to_json
from psrt.rpc import pb
from psrt.rpc.client import Client
from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, Running, psrt
from tests.support.pserver import DaemonProcess, daemon, onlooker, status
from tests.support.small_job import BATCH, TABLE, lines, write_files

ENDLESS = 100_000
WAIT_TIMEOUT_S = "1"
CALL_TIMEOUT_S = "30"
LOST = CATALOGUE[ErrorCode.TRAINER_LOST].exit_code


@dataclass
class Job:
    """A pserver, trainer 1 that trains for ever, and trainer 0 that trains one epoch and saves."""

    pserver: DaemonProcess
    staying: Running
    dying: Running
    model: Path
    codes: list[int] = field(default_factory=list)

    def kill_the_dying(self) -> None:
        """Kill trainer 1 once trainer 0 has finished its data; wait for the others to end."""
        self.staying.wait_for("waiting for trainer 1")
        self.dying.process.kill()
        self.dying.exit_code()
        self.codes = [self.staying.exit_code(), self._end_of_pserver()]

    def interrupt_the_dying(self) -> None:
        """Send Ctrl-C to trainer 1 once trainer 0 has finished its data; wait for all to end."""
        self.staying.wait_for("waiting for trainer 1")
        self.dying.process.send_signal(signal.SIGINT)
        trainers = [each.exit_code() for each in (self.dying, self.staying)]
        self.codes = [*trainers, self._end_of_pserver()]

    def _end_of_pserver(self) -> int:
        """Its exit code. After an abort it waits for others, until a signal; its code stays."""
        if self.staying.exit_code() == LOST:
            return self.pserver.end()
        return self.pserver.exit_code()

    @property
    def outputs(self) -> str:
        return self.staying.output + self.pserver.log.read_text()


@contextlib.contextmanager
def job_of_two(
    directory: Path, mode: str, carrier: str, policy: str = "", wait_timeout_s: str = WAIT_TIMEOUT_S
) -> Iterator[Job]:
    variables = {"PSRT_COMMUNICATION_ON_TRAINER_LOSS": policy} if policy else {}
    files = [lines(BATCH * 4, seed=n) for n in range(2)]
    short = write_files(directory / "short", files, mode)
    endless = write_files(directory / "endless", files, mode, epochs=ENDLESS)
    model = directory / "model"
    with daemon(directory, "--wait-timeout-s", wait_timeout_s) as pserver:
        flags = ["--endpoints", pserver.endpoint, "--trainers", "2", "--carrier", carrier]
        flags += ["--call-timeout-s", CALL_TIMEOUT_S]
        first = "trainer", *flags, "--trainer-id", "0", "--save", str(model), str(short)
        second = "trainer", *flags, "--trainer-id", "1", str(endless)
        with (
            psrt(directory / "trainer.1.log", *second, **variables) as dying,
            psrt(directory / "trainer.0.log", *first, **variables) as staying,
        ):
            dying.wait_for("\nepoch ")
            yield Job(pserver, staying, dying, model)


def end_of_aborted(pserver: DaemonProcess) -> int:
    """The exit code of a pserver whose trainers have left: a signal ends its wait for others."""
    client = onlooker(pserver.endpoint)
    eventually(lambda: status(client)["error"] is not None, "an error of the job", DEADLINE_S)
    client.close()
    return pserver.end()


LONG = ("async", "stream"), ("ssp", "grpc")


@pytest.mark.parametrize(
    ("mode", "carrier"),
    [
        ("async", "grpc"),
        ("geo", "stream"),
        *(pytest.param(*each, marks=pytest.mark.long) for each in LONG),
    ],
)
def test_the_others_test_and_save_without_a_trainer_that_was_killed(
    tmp_path: Path, mode: str, carrier: str
) -> None:
    with job_of_two(tmp_path, mode, carrier) as job:
        job.kill_the_dying()

    assert job.codes == [0, 0], job.outputs
    assert "test  1,000 examples" in job.staying.output
    assert TABLE in json.loads((job.model / "manifest.json").read_text())["rows"]
    assert "going on without trainer 1" in job.staying.output
    assert "trainer 1 (gone, last call " in job.pserver.log.read_text()


def test_with_abort_a_killed_trainer_ends_the_job_with_its_name(tmp_path: Path) -> None:
    with job_of_two(tmp_path, "half_async", "grpc", policy="abort") as job:
        job.kill_the_dying()

    assert job.codes == [LOST, LOST], job.outputs
    assert "trainer 1 (gone, last call " in job.staying.output
    assert "the job was aborted" in job.staying.output
    assert not job.model.exists()


@pytest.mark.parametrize(
    ("mode", "carrier"),
    [
        ("async", "stream"),
        *(
            pytest.param(mode, "grpc", marks=pytest.mark.long)
            for mode in ("ssp", "half_async", "geo")
        ),
    ],
)
def test_an_interrupted_trainer_has_not_completed_and_the_others_go_on_with_a_warning(
    tmp_path: Path, mode: str, carrier: str
) -> None:
    with job_of_two(tmp_path, mode, carrier, wait_timeout_s="100") as job:
        job.interrupt_the_dying()

    assert job.codes == [130, 0, 0], job.outputs
    assert "going on without trainer 1, which left without completing" in job.staying.output
    assert "trainer 1 (interrupted, last call " in job.pserver.log.read_text()
    assert "trainer 1 completed" not in job.pserver.log.read_text()
    assert "this trainer has not completed. No model was saved" in job.dying.output
    assert "The parameters are lost when the pservers end" in job.dying.output


@pytest.mark.parametrize(
    "mode", ["sync", *(pytest.param(m, marks=pytest.mark.long) for m in ("half_async", "geo"))]
)
def test_with_abort_an_interrupted_trainer_ends_the_job_with_its_name(
    tmp_path: Path, mode: str
) -> None:
    with job_of_two(tmp_path, mode, "stream", policy="abort", wait_timeout_s="100") as job:
        job.interrupt_the_dying()

    assert job.codes == [130, LOST, LOST], job.outputs
    assert "trainer 1 (interrupted, last call " in job.staying.output
    assert not job.model.exists()


def test_a_pserver_whose_only_trainer_was_interrupted_has_no_completed_job(tmp_path: Path) -> None:
    endless = write_files(tmp_path, [lines(BATCH * 4, seed=1)], "async", epochs=ENDLESS)
    with daemon(tmp_path, "--wait-timeout-s", "100") as pserver:
        flags = ("--endpoints", pserver.endpoint, str(endless))
        with psrt(tmp_path / "log", "trainer", *flags) as trainer:
            trainer.wait_for("\nepoch ")
            trainer.process.terminate()
            codes = [trainer.exit_code(), end_of_aborted(pserver)]

    assert codes == [143, LOST]
    assert "trainer 0 (interrupted, last call" in pserver.log.read_text()


@pytest.mark.parametrize("mode", [Async(), Sync("wait")], ids=lambda mode: type(mode).__name__)
def test_a_pserver_to_which_processes_sent_hello_and_nothing_else_ends(
    tmp_path: Path, mode: CommunicationMode
) -> None:
    hello = pb.Hello(job_id="job", plan_hash="plan", trainers=3, mode=to_json(mode))
    with daemon(tmp_path, "--wait-timeout-s", WAIT_TIMEOUT_S) as pserver:
        for trainer in range(2):
            ghost = Client(pserver.endpoint, trainer, 7 + trainer, "stream", hello)
            ghost.connect(DEADLINE_S)
            ghost.close()

        code = pserver.exit_code() if mode == Async() else end_of_aborted(pserver)
        output = pserver.log.read_text()

    assert code == LOST, output
    assert "trainer 0 (gone, " in output
    assert "Never seen: trainer 2." in output
