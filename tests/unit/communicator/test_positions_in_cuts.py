"""Positions in cuts of trainers before their first step, and of those that have completed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from psrt.communicator.base import Beginning, Communicator, Position
from psrt.communicator.factory import make
from psrt.core.errors import DeadlineError
from psrt.core.specs import Async, CommunicationMode, HalfAsync, Ssp, to_json
from psrt.partition.plan import PartitionPlan
from psrt.pserver.checkpoints import SavedCut, Settings, find_cut
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.storage.local_directory import LocalDirectory
from tests.support.communicators import LONG_S, PLAN, gradients
from tests.support.inproc import InprocServer

ONE = "a:1"
ON_ONE = PartitionPlan((ONE,), tuple(replace(b, endpoint=ONE) for b in PLAN.blocks), PLAN.sparse)
MODES = [Async(), Ssp(), HalfAsync()]


class Job:
    """A pserver that makes cuts in a directory, and communicators of trainers."""

    def __init__(
        self, directory: LocalDirectory, mode: CommunicationMode, cut: SavedCut | None = None
    ) -> None:
        self.directory, self.mode = directory, mode
        cuts = Settings(directory)
        self.service = PserverService(stripes=2, wait_timeout_s=LONG_S, cuts=cuts, resumed=cut)
        self.service.start()
        self._server = InprocServer(self.service.handle)
        self._ends: list[Callable[[], None]] = [self.service.stop]

    def trainer(
        self, trainer: int, trainers: int, begin: Callable[[Beginning], Position]
    ) -> Communicator:
        made = make(self.mode, ON_ONE, [self._client(trainer, trainers)], call_timeout_s=LONG_S)
        self._ends.insert(0, made.close)
        made.begins_at(begin)
        made.start(LONG_S)
        return made

    def cut(self) -> SavedCut:
        """Make a cut."""
        client = Client(ONE, 0, 1, self._server, pb.Hello())
        client.call(Method.CHECKPOINT, header=pb.Header(), timeout_s=LONG_S)
        return find_cut(self.directory, "latest")

    def close(self) -> None:
        for end in self._ends:
            end()

    def _client(self, trainer: int, trainers: int) -> Client:
        plan, mode = ON_ONE.hash(), to_json(self.mode)
        hello = pb.Hello(job_id="test", plan_hash=plan, trainers=trainers, mode=mode)
        client = Client(ONE, trainer, 7 + trainer, self._server, hello)
        self._ends.insert(0, client.close)
        return client


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Callable[..., Job]]:
    made: list[Job] = []

    def job(mode: CommunicationMode, cut: SavedCut | None = None) -> Job:
        made.append(Job(LocalDirectory(tmp_path), mode, cut))
        return made[-1]

    yield job
    for each in made:
        each.close()


def at(text: str) -> Callable[[Beginning], Position]:
    return lambda found: lambda: text


def step(trainer: Communicator, position: str) -> None:
    trainer.begin({})
    trainer.continues_at(lambda: position)
    trainer.finish(gradients())


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_a_trainer_is_in_a_cut_before_its_first_step(jobs, mode: CommunicationMode) -> None:
    job = jobs(mode)
    job.trainer(0, 1, at("the beginning"))

    assert job.cut().positions == ("the beginning",)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_a_trainer_that_completed_is_in_a_cut_with_its_last_position(
    jobs, mode: CommunicationMode
) -> None:
    job = jobs(mode)
    job.trainer(0, 2, at("the beginning"))
    leaving = job.trainer(1, 2, at("the beginning"))
    step(leaving, "after a step")
    leaving.stop(LONG_S)

    assert job.cut().positions == ("the beginning", "after a step")


def test_a_trainer_whose_step_failed_takes_part_in_no_cut(
    jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pserver may have the step, whose reply was lost: it is behind no position."""
    trainer = jobs(HalfAsync()).trainer(0, 1, at("the beginning"))

    def lost(*asked: object) -> None:
        raise DeadlineError("PUSH got no reply")

    monkeypatch.setattr(trainer._pservers, "call", lost)
    with pytest.raises(DeadlineError):
        step(trainer, "after a step")

    with pytest.raises(DeadlineError, match="PUSH got no reply"), trainer._pushes_held(LONG_S):
        pytest.fail("the trainer takes part")


def test_a_job_of_other_trainers_gets_the_positions_of_all(jobs) -> None:
    first = jobs(Async())
    for trainer in range(2):
        first.trainer(trainer, 2, at(f"of {trainer}"))
    cut = first.cut()
    found: list[Beginning] = []

    def begin(beginning: Beginning) -> Position:
        found.append(beginning)
        return lambda: "dealt"

    jobs(HalfAsync(), cut).trainer(2, 3, begin)
    jobs(Ssp(), cut).trainer(1, 2, begin)

    assert found == [Beginning(1, "", ("of 0", "of 1")), Beginning(1, "of 1", ())]
