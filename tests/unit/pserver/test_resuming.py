"""The cut that a job goes on from: who may, from which counts, and where its trainers begin."""

from __future__ import annotations

import json

import pytest

from psrt.core.errors import ConfigError
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync, to_plain
from psrt.pserver.checkpoints import SavedCut
from psrt.pserver.decisions import JobIdentity, Member
from psrt.pserver.decisions.membership import Membership
from psrt.pserver.serving.cuts.resuming import LOST, Resuming
from psrt.storage.local_directory import LocalDirectory

HERE = '{"epoch": 2}'


def resuming(
    *positions: str, mode: CommunicationMode | None = None, round: int = 0, step: int = 0
) -> Resuming:
    """The beginning of a job from cut 7 of job "clicks"; trainers without a position have ""."""
    job = {"id": "clicks", "trainers": len(positions), "mode": to_plain(mode or Sync())}
    found = {str(trainer): at for trainer, at in enumerate(positions) if at}
    manifest = {"job": job, "positions": found, "round": round, "step": step}
    return Resuming(SavedCut(LocalDirectory("/nowhere"), 7, manifest, (), ()))


def job_of(mode: CommunicationMode, name: str = "clicks", trainers: int = 2) -> JobIdentity:
    return JobIdentity(name, "plan", trainers, mode)


@pytest.mark.parametrize("mode", [Sync(), Async(), Ssp(), HalfAsync()])
@pytest.mark.parametrize("former", [Sync(), Async()])
def test_modes_whose_state_is_on_pservers_may_follow_each_other(
    former: CommunicationMode, mode: CommunicationMode
) -> None:
    resuming(HERE, HERE, mode=former).check(job_of(mode, trainers=5))


def test_retention_keeps_a_cut_that_late_trainers_of_geo_or_of_a_durable_job_need() -> None:
    directory = LocalDirectory("/nowhere")
    with_states = Resuming(SavedCut(directory, 7, {}, ({"files": [{"trainer": 1}]},), ()))
    without = Resuming(SavedCut(directory, 7, {}, ({"files": [{"tables": []}]},), ()))

    assert with_states.kept(is_durable=False) == 7
    assert without.kept(is_durable=True) == 7
    assert without.kept(is_durable=False) == 0
    assert Resuming(None).kept(is_durable=True) == 0


def test_another_job_and_geo_are_refused_with_both_values() -> None:
    with pytest.raises(ConfigError, match="cut 7 is of job 'clicks', this one is 'ads'"):
        resuming(HERE).check(job_of(Sync(), "ads"))
    with pytest.raises(ConfigError, match="cut 7 is of mode Sync, this job of mode Geo"):
        resuming(HERE).check(job_of(Geo()))
    with pytest.raises(ConfigError, match="cut 7 is of mode Geo, this job of mode Async"):
        resuming(HERE, mode=Geo()).check(job_of(Async()))
    resuming(HERE, mode=Geo()).check(job_of(Geo(), trainers=3))


def test_without_a_cut_any_job_begins_anew() -> None:
    begins = Resuming(None)

    begins.check(job_of(Geo()))

    assert begins.counts == (0, 0)
    assert begins.beginning_of(1, 2).number == 0


@pytest.mark.parametrize(("round", "step"), [(30, 0), (0, 30)])
def test_counts_go_on_in_every_mode(round: int, step: int) -> None:
    assert resuming(HERE, round=round, step=step).counts == (30, 30)


def test_as_many_trainers_get_their_own_positions() -> None:
    reply = resuming("a", "b").beginning_of(1, 2)

    assert (reply.number, reply.position, list(reply.positions)) == (7, "b", [])


@pytest.mark.parametrize(
    ("positions", "trainers"), [(("a", "b"), 3), (("a", "b"), 1), (("a", LOST), 2), (("", "b"), 1)]
)
def test_others_get_the_positions_of_all(positions: tuple[str, ...], trainers: int) -> None:
    reply = resuming(*positions).beginning_of(0, trainers)

    assert (reply.number, reply.position, list(reply.positions)) == (7, "", list(positions))


def members(trainers: int) -> Membership:
    """Trainer 0 runs, 1 has completed, 2 has completed at a position, 3 is lost, others unseen."""
    found = Membership(trainers)
    for trainer in range(4):
        found.join(trainer, 10 + trainer, 0.0)
    found.complete(1, 1.0)
    found.complete(2, 1.0, position=HERE)
    found.lose([3])
    return found


def test_trainers_that_do_not_run_have_positions_in_a_cut() -> None:
    found = Resuming(None).positions_of(members(5).members, 5)

    assert found == {1: (11, "completed"), 2: (12, HERE), 3: (0, LOST)}


def test_a_trainer_that_has_not_joined_yet_keeps_its_position() -> None:
    begins = resuming("a", "b", "c", "d", "e")

    assert begins.positions_of([Member(4)], 5) == {4: (0, "e")}


def test_a_trainer_that_has_not_joined_yet_has_the_deal_that_it_begins_with() -> None:
    found = resuming("a", "b").positions_of([Member(4)], 5)

    deal = {"positions": ["a", "b"], "trainer": 4, "trainers": 5}
    assert {trainer: json.loads(at) for trainer, (_, at) in found.items()} == {4: {"deal": deal}}


def test_trainers_of_scripts_have_no_positions() -> None:
    assert resuming("", "").positions_of([Member(4)], 5) == {}
