"""A change of the number of trainers at a pserver: requests that are refused, and the change."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from psrt.coordinator.retention import Retention
from psrt.core.errors import ConfigError, ErrorCode, JobError, PsrtError, UnavailableError
from psrt.core.specs import Async, CommunicationMode, Geo, Sync, to_json
from psrt.pserver.checkpoints import (
    RecoveredPart,
    SavedCut,
    Settings,
    complete_cuts,
    find_cut,
    served_job,
)
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.retry import RetryPolicy
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire import Message
from psrt.storage.local_directory import LocalDirectory
from tests.support.carriers import eventually
from tests.support.clock import ManualClock
from tests.support.inproc import InprocServer

WAIT_S = 30.0
AT_ONCE = RetryPolicy(initial_s=0.001, max_s=0.01, budget_s=0.1)


class Job:
    """The only pserver of a job, and its trainers."""

    def __init__(
        self,
        directory: Path,
        mode: CommunicationMode | None = None,
        resumed: SavedCut | None = None,
        keep: int = 3,
    ) -> None:
        self.directory, self.mode, self.durability = LocalDirectory(directory), mode, ""
        self._keep = keep
        self.resized: list[int] = []
        self.service = self._made(None, resumed)

    def serve(self, recovered: RecoveredPart, resumed: SavedCut | None = None) -> None:
        """Go on in another process, which begins with the number of trainers of the job's start."""
        self.service.stop()
        self.service = self._made(recovered, resumed)

    def _made(
        self, recovered: RecoveredPart | None, resumed: SavedCut | None = None
    ) -> PserverService:
        return PserverService(
            stripes=1,
            wait_timeout_s=WAIT_S,
            trainers=0 if recovered is None else 2,
            clock=ManualClock(),
            cuts=Settings(self.directory, retention=Retention(self._keep)),
            on_resized=self.resized.append,
            recovered=recovered,
            resumed=resumed,
        )

    def join(self, trainer: int, trainers: int, incarnation: int = 0) -> Client:
        hello = pb.Hello(job_id="j", plan_hash="p", trainers=trainers)
        hello.mode, hello.durability = to_json(self.mode or Async()), self.durability
        server = InprocServer(lambda *call: self.service.handle(*call))
        client = Client("inproc", trainer, incarnation or 7 + trainer, server, hello, retry=AT_ONCE)
        found = client.connect(0.2)
        mine = pb.PserverProcess(endpoint="a:6170", incarnation=found.incarnation)
        register = pb.Header(register=pb.Register(pservers=[mine]))
        self.beginning = client.call(Method.REGISTER, header=register, timeout_s=WAIT_S).header.cut
        return client

    def ask(self, trainers: int) -> Later:
        header = pb.Header(method=Method.CHECKPOINT, cut=pb.Cut(trainers=trainers))
        asked = self.service.handle(Message(header), Peer("inproc", "test"))
        assert isinstance(asked, Later)
        return asked


@contextmanager
def job_in(
    directory: Path,
    mode: CommunicationMode | None = None,
    resumed: SavedCut | None = None,
    keep: int = 3,
) -> Iterator[Job]:
    job = Job(directory, mode, resumed, keep)
    try:
        yield job
    finally:
        job.service.stop()


class TakingPart(threading.Thread):
    """Sends CUT; ends with the reply, or with an `error`."""

    def __init__(self, client: Client, number: int, trainers: int, position: str = "") -> None:
        super().__init__()
        self.error: PsrtError | None = None
        self._client = client
        self._cut = pb.Cut(number=number, trainers=trainers, position=position)
        self._cut.last_push = client.last_push
        self.start()

    def run(self) -> None:
        try:
            self._client.call(Method.CUT, header=pb.Header(cut=self._cut), timeout_s=WAIT_S)
        except PsrtError as error:
            self.error = error


def test_the_job_begins_anew_and_hands_out_the_positions(tmp_path: Path) -> None:
    with job_in(tmp_path) as job:
        clients = [job.join(trainer, 2) for trainer in range(2)]
        asked = job.ask(3)
        calls = [TakingPart(each, 1, 3, f"at {each.trainer}") for each in clients]
        asked.future.result(WAIT_S)
        for call in calls:
            call.join(WAIT_S)
            assert call.error is None

        assert asked.finish().header.cut.number == 1
        newcomer = job.join(2, 3)

        assert (job.beginning.number, list(job.beginning.positions)) == (1, ["at 0", "at 1"])
        assert job.resized == [3]
        assert find_cut(job.directory, "1").trainers == 2
        with pytest.raises(JobError, match="goes on with 3 trainers"):
            clients[0].call(Method.PUSH, header=pushed(clients[0]), timeout_s=WAIT_S)
        with pytest.raises(UnavailableError, match="has 3 trainers, and trainer 0"):
            job.join(0, 2, incarnation=99)
        newcomer.call(Method.PUSH, header=pushed(newcomer), timeout_s=WAIT_S)


def test_a_repeated_request_is_told_that_the_number_has_come(tmp_path: Path) -> None:
    """The reply to the first one was lost, and no trainer has joined again yet."""
    with job_in(tmp_path) as job:
        client = job.join(0, 1)
        asked = job.ask(3)
        TakingPart(client, 1, 3).join(WAIT_S)
        asked.future.result(WAIT_S)

        with pytest.raises(ConfigError, match="has 3 trainers already"):
            job.ask(3)


def pushed(client: Client) -> pb.Header:
    return pb.Header(push_key=client.next_push_key(), step=1)


def test_pushes_wait_for_the_end_of_the_cut(tmp_path: Path) -> None:
    with job_in(tmp_path) as job:
        first, second = job.join(0, 2), job.join(1, 2)
        job.ask(1)
        calls = [TakingPart(each, 1, 1) for each in (first, second)]
        for call in calls:
            call.join(WAIT_S)

        with pytest.raises(JobError):
            first.call(Method.PUSH, header=pushed(first), timeout_s=WAIT_S)
        assert job.service.status()["global_step"] == 0


def test_a_trainer_that_cannot_follow_ends_the_cut_and_training_goes_on(tmp_path: Path) -> None:
    with job_in(tmp_path) as job:
        clients = [job.join(trainer, 2) for trainer in range(2)]
        asked = job.ask(3)

        scripts = [TakingPart(each, 1, 0) for each in clients]
        with pytest.raises(JobError, match="runs a script") as found:
            asked.future.result(WAIT_S)
        for script in scripts:
            script.join(WAIT_S)

        assert found.value.code is ErrorCode.CUT_GIVEN_UP
        assert complete_cuts(job.directory) == []
        assert job.resized == []
        clients[0].call(Method.PUSH, header=pushed(clients[0]), timeout_s=WAIT_S)


def test_a_trainer_that_meets_the_proposal_of_a_cut_after_its_end_does_not_wait_in_it(
    tmp_path: Path,
) -> None:
    with job_in(tmp_path) as job:
        clients = [job.join(trainer, 2) for trainer in range(2)]
        job.ask(0)
        given_up = pb.CutPart(number=1, endpoint="a:6170", problem="the disk is full")
        job.service.handle(
            Message(pb.Header(method=Method.PART, cut_part=given_up)), Peer("inproc", "test")
        )

        late = TakingPart(clients[0], 1, 0)
        late.join(WAIT_S)

        assert late.error is not None
        assert late.error.code is ErrorCode.CUT_GIVEN_UP
        assert job.service.status()["cuts"]["proposed"] == 0


@pytest.mark.parametrize("trainers", [2, 0xFFFFFFFF])
def test_a_number_that_is_none_is_refused(tmp_path: Path, trainers: int) -> None:
    with job_in(tmp_path) as job:
        for trainer in range(2):
            job.join(trainer, 2)
        with pytest.raises(ConfigError):
            job.ask(trainers)


def test_jobs_in_geo_and_those_with_backups_are_refused(tmp_path: Path) -> None:
    with job_in(tmp_path / "geo", Geo()) as job:
        job.join(0, 1)
        with pytest.raises(ConfigError, match="mode geo"):
            job.ask(2)
    with job_in(tmp_path / "backups", Sync("wait")) as job:
        job.durability = "replica"
        job.join(0, 1)
        with pytest.raises(ConfigError, match="durability replica"):
            job.ask(2)
        with pytest.raises(PsrtError) as found:
            job.join(1, 2)
        assert found.value.code is ErrorCode.JOB_MISMATCH


NAME = "host-6170"


def resized_durable_job(job: Job) -> list[Client]:
    """Change the number of trainers of a durable job from 2 to 3, which makes cut 2."""
    job.durability = "cut"
    job.service.serves_as(NAME)
    clients = [job.join(trainer, 2) for trainer in range(2)]
    for number, trainers in ((1, 0), (2, 3)):  # a durable job asks for the first one by itself
        asked = job.ask(3) if trainers else None
        cuts = job.service._cuts
        eventually(lambda n=number, c=cuts: c.proposed == n, "a proposal", WAIT_S)
        calls = [TakingPart(each, number, trainers, f"at {each.trainer}") for each in clients]
        for call in calls:
            call.join(WAIT_S)
            assert call.error is None
        if asked is not None:
            asked.future.result(WAIT_S)
        eventually(lambda n=number, c=cuts: c.newest_complete == n, "a complete cut", WAIT_S)
    return clients


@pytest.mark.parametrize("mode", [Async(), Sync("wait")])
def test_a_killed_pserver_of_a_durable_job_goes_on_with_the_new_number(
    tmp_path: Path, mode: CommunicationMode
) -> None:
    with job_in(tmp_path, mode) as job:
        (former, _) = resized_durable_job(job)
        if isinstance(mode, Async):
            newcomer = job.join(2, 3)
            newcomer.call(Method.PUSH, header=pushed(newcomer), timeout_s=WAIT_S)
        found = served_job.take_over(job.directory, NAME)
        assert found is not None
        assert (found.cut.number, found.resized_to, found.began_at) == (2, 3, 2)

        job.serve(found)

        with pytest.raises(JobError, match="goes on with 3 trainers"):
            former.call(Method.CUT, header=pb.Header(cut=pb.Cut(number=3)), timeout_s=WAIT_S)
        first = job.join(0, 3, incarnation=50)
        assert (job.beginning.number, list(job.beginning.positions)) == (2, ["at 0", "at 1"])
        if isinstance(mode, Async):
            first.call(Method.PUSH, header=pushed(first), timeout_s=WAIT_S)
        assert len(job.service.status()["trainers"]) == 3


def test_retention_keeps_the_cut_that_newcomers_begin_with(tmp_path: Path) -> None:
    """One of them joins after later cuts, and after a recovery."""
    with job_in(tmp_path, keep=1) as job:
        resized_durable_job(job)
        for number in (3, 4):
            clients = [job.join(trainer, 3, incarnation=50 + trainer) for trainer in range(2)]
            asked = job.ask(0)
            calls = [TakingPart(each, number, 0, f"then at {each.trainer}") for each in clients]
            asked.future.result(WAIT_S)
            for call in calls:
                call.join(WAIT_S)
        found = served_job.take_over(job.directory, NAME)
        assert found is not None
        job.serve(found)

        job.join(2, 3)

        assert (job.beginning.number, list(job.beginning.positions)) == (2, ["at 0", "at 1"])
        assert complete_cuts(job.directory) == [2, 4]


def test_a_pserver_that_missed_the_end_of_a_change_ends_the_job_and_keeps_the_cut(
    tmp_path: Path,
) -> None:
    """It was killed between its part and the manifest, which became complete without it."""
    with job_in(tmp_path) as job:
        clients = resized_durable_job(job)
        before = dataclasses.replace(served_at(job, 1), term=None)
        files = {path: path.read_bytes() for path in tmp_path.rglob("cut-00000002/**/*.*")}

        job.serve(before)
        call = TakingPart(clients[0], 2, 3)
        call.join(WAIT_S)

        assert call.error is not None
        eventually(lambda: job.service.status()["error"] is not None, "the end", WAIT_S)
        assert "unknown whether cut 2" in job.service.status()["error"]["message"]
        assert files == {path: path.read_bytes() for path in files}


def served_at(job: Job, number: int) -> RecoveredPart:
    """The state of the pserver in an earlier cut, as if there were no later one."""
    found = served_job.find(job.directory, NAME)
    assert found is not None
    cut = find_cut(job.directory, str(number))
    return dataclasses.replace(
        found, cut=cut, state=cut.parts[0]["state"], resized_to=0, began_at=0
    )


def test_a_job_whose_trainers_do_not_all_run_is_refused(tmp_path: Path) -> None:
    with job_in(tmp_path) as job:
        with pytest.raises(PsrtError):
            job.ask(2)
        first = job.join(0, 2)
        with pytest.raises(JobError, match="trainer 1 is unseen"):
            job.ask(3)
        job.join(1, 2)
        first.complete(WAIT_S)
        with pytest.raises(JobError, match="trainer 0 is completed"):
            job.ask(3)


def test_a_pserver_that_does_not_coordinate_refuses(tmp_path: Path) -> None:
    service = PserverService(stripes=1, wait_timeout_s=WAIT_S, clock=ManualClock())
    try:
        header = pb.Header(method=Method.CHECKPOINT, cut=pb.Cut(trainers=2))
        with pytest.raises(ConfigError, match="first pserver"):
            service.handle(Message(header), Peer("inproc", "test"))
    finally:
        service.stop()


def test_a_cut_that_cannot_be_read_again_ends_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(number: int) -> None:
        raise JobError("the disk is gone")

    with job_in(tmp_path) as job:
        client = job.join(0, 1)
        monkeypatch.setattr(job.service._cuts, "begin_from", unreadable)
        job.ask(2)

        call = TakingPart(client, 1, 2)
        call.join(WAIT_S)

        assert "unknown whether cut 1" in str(call.error)
        eventually(lambda: job.service.status()["error"] is not None, "the end", WAIT_S)
    assert job.resized == []
