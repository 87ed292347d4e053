"""Recorded progress of trainers: what a successor finds after every prefix of pushes."""

from __future__ import annotations

import itertools
import json
import math

import pytest

from psrt.core import specs
from psrt.pserver.decisions.calls import Close, WaitingCall
from psrt.pserver.decisions.job_identity import JobIdentity
from psrt.pserver.decisions.lineages import MOST_RANGES, Lane, Lineages, PushProgress, Steps
from psrt.pserver.decisions.pserver_state import PserverState

WHOLE, ROWS, DENSE = Lane(0, ""), Lane(0, "rows"), Lane(0, "dense")


def pushed(settled: int, *covers: tuple[Lane, int, int], origin: int = 7) -> PushProgress:
    named = tuple((lane, Steps(first, last)) for lane, first, last in covers)
    return PushProgress(origin, settled, f"behind {settled}", covers=named)


def missing(lineages: Lineages, last: int) -> set[tuple[str, int]]:
    """The lanes of the steps up to `last` that a successor pushes to this pserver."""
    known = lineages.of(0)
    assert known is not None
    had = {
        (lane.name, step)
        for lane, steps in known.covered()
        for step in range(steps.first, steps.last + 1)
    }
    every = itertools.product(["rows", "dense"], range(known.settled + 1, last + 1))
    return set(every) - had


def test_a_successor_pushes_what_no_push_has_brought_in_any_order_of_arrival() -> None:
    pushes = [
        pushed(0, (ROWS, 1, 1)),
        pushed(0, (DENSE, 1, 2)),
        pushed(1, (ROWS, 2, 3)),
        pushed(2, (DENSE, 3, 3)),
    ]
    for count in range(1, len(pushes) + 1):
        for arrived in itertools.permutations(pushes, count):
            lineages = Lineages()
            for each in arrived:
                lineages.record(0, each)

            settled = max(each.settled for each in arrived)
            lanes = {
                (lane.name, s)
                for each in arrived
                for lane, steps in each.covers
                for s in range(steps.first, steps.last + 1)
            }
            every = itertools.product(["rows", "dense"], range(settled + 1, 4))
            known = lineages.of(0)
            assert known is not None
            assert (known.settled, known.position) == (settled, f"behind {settled}")
            assert missing(lineages, 3) == set(every) - lanes


def test_settled_ranges_are_dropped() -> None:
    lineages = Lineages()

    for step in range(1, 10 * MOST_RANGES):
        lineages.record(0, pushed(step - 1, (ROWS, step, step)))

    known = lineages.of(0)
    assert known is not None
    assert len(known.lanes[ROWS]) <= MOST_RANGES
    assert known.covered() == [(ROWS, Steps(step, step))]


def test_another_origin_begins_a_lineage_and_no_progress_ends_it() -> None:
    lineages = Lineages()
    lineages.record(0, pushed(4, (ROWS, 5, 5)))

    lineages.record(0, pushed(0, (ROWS, 1, 1), origin=8))
    known = lineages.of(0)
    assert known is not None
    assert (known.origin, known.settled, known.covered()) == (8, 0, [(ROWS, Steps(1, 1))])

    lineages.record(0, None)
    assert lineages.of(0) is None


def test_records_survive_the_part_of_a_cut() -> None:
    lineages, again = Lineages(), Lineages()
    lineages.record(0, pushed(4, (ROWS, 5, 6), (DENSE, 5, 5)))
    lineages.record(1, pushed(2, (WHOLE, 3, 3)))
    lineages.completed(1)

    again.restore(json.loads(json.dumps(lineages.dump())))

    assert again.dump() == lineages.dump()
    assert [again.newest(trainer) for trainer in range(3)] == [6, 3, 0]


def joined(mode: specs.CommunicationMode, trainers: int) -> PserverState:
    state = PserverState(wait_timeout_s=10.0)
    job = JobIdentity("job", "hash", trainers, mode)
    for trainer in range(trainers):
        state.hello(trainer, 7, job, 0.0)
        state.attend(trainer, 7, 0.0)
    return state


def call(trainer: int, sequence: int, progress: PushProgress) -> WaitingCall:
    return WaitingCall(trainer, 7, sequence, math.inf, progress=progress)


def test_in_sync_a_push_counts_from_the_close_of_its_round_and_a_withdrawn_one_does_not() -> None:
    state = joined(specs.Sync(on_trainer_loss="wait"), 2)
    lineages = state.members.lineages
    state.exchange(call(0, 1, pushed(0, (WHOLE, 1, 1))), 1.0)
    assert lineages.of(0) is None

    state.hello(0, 8, JobIdentity("job", "hash", 2, specs.Sync(on_trainer_loss="wait")), 2.0)
    state.attend(0, 8, 2.0)  # the successor: the waiting push of its predecessor is withdrawn
    assert lineages.of(0) is None

    again = WaitingCall(0, 8, 1, math.inf, progress=pushed(0, (WHOLE, 1, 1)))
    state.exchange(again, 3.0)
    (close,) = state.exchange(call(1, 1, pushed(0, (WHOLE, 1, 1))), 3.0)
    assert isinstance(close, Close)
    assert [lineages.newest(trainer) for trainer in range(2)] == [1, 1]  # while it is applied


@pytest.mark.parametrize("mode", [specs.Async(), specs.HalfAsync(), specs.Ssp()], ids=repr)
def test_a_push_counts_once_it_is_admitted_and_its_repetition_changes_nothing(
    mode: specs.CommunicationMode,
) -> None:
    state = joined(mode, 1)
    state.push(call(0, 1, pushed(0, (ROWS, 1, 1))), 1, 1.0)
    before = state.members.lineages.dump()

    state.push(call(0, 1, pushed(0, (ROWS, 1, 1))), 1, 2.0)

    assert state.members.lineages.dump() == before
    assert state.members.lineages.newest(0) == 1


def test_a_lineage_ends_with_its_job_and_not_with_its_trainer() -> None:
    state = joined(specs.Async(), 2)
    state.push(call(0, 1, pushed(0, (ROWS, 1, 1))), 1, 1.0)

    state.complete(0, 7, 2.0)
    known = state.members.lineages.of(0)
    assert known is not None
    assert (known.completed, known.ended) == (True, False)

    state.members.lineages.job_ended()
    assert known.ended


def test_the_lineage_of_a_lost_trainer_goes_on_after_the_job() -> None:
    """Another pserver may still wait for it: a successor that began anew would push twice here."""
    state = joined(specs.Async(), 2)
    for trainer in (0, 1):
        state.push(call(trainer, 1, pushed(0, (ROWS, 1, 1))), 1, 1.0)
    state.complete(0, 7, 2.0)
    state.members.lose([1])

    state.members.lineages.job_ended()

    ended = [state.members.lineages.of(trainer) for trainer in (0, 1)]
    assert [each is not None and each.ended for each in ended] == [True, False]
