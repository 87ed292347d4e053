"""Points between updates, and the durable prefix of each trainer's pushes."""

from __future__ import annotations

import itertools
import json
import math

import pytest

from psrt.core.errors import InternalError
from psrt.core.specs import Async, CommunicationMode, Sync
from psrt.pserver.decisions import (
    DurableProgress,
    JobIdentity,
    PserverState,
    dump,
    is_between_updates,
    point_of,
    restore,
)
from psrt.pserver.decisions.calls import Close, WaitingCall


def state_of(mode: CommunicationMode, trainers: int = 1) -> PserverState:
    state = PserverState(10.0)
    for trainer in range(trainers):
        state.hello(trainer, 100 + trainer, JobIdentity("job", "plan", trainers, mode), 0.0)
        state.attend(trainer, 100 + trainer, 0.0)
    return state


def call(sequence: int, bucket: int = 0, trainer: int = 0) -> WaitingCall:
    return WaitingCall(trainer, 100 + trainer, sequence, math.inf, bucket=bucket)


def push(state: PserverState, sequence: int) -> WaitingCall:
    arrived = call(sequence)
    state.push(arrived, 1, 0.0)
    return arrived


def prefix_of(state: PserverState) -> int:
    return point_of(state, 0.0).prefixes.get(0, (0, 0))[1]


@pytest.mark.parametrize("order", list(itertools.permutations([1, 2, 3, 4])))
def test_the_prefix_ends_before_the_first_push_that_is_missing(order: tuple[int, ...]) -> None:
    state = state_of(Async())
    for applied in range(1, 5):
        state.applied(push(state, order[applied - 1]))
        here = set(order[:applied])
        assert prefix_of(state) == next(n for n in range(5) if n + 1 not in here)
        assert point_of(state, 0.0).pushes == applied


IN_TURN = [
    order
    for order in itertools.permutations([(1, 0), (2, 1), (3, 0), (4, 1)])
    if order.index((1, 0)) < order.index((3, 0)) and order.index((2, 1)) < order.index((4, 1))
]
"""Sequences 1 to 4 of two buckets, whose rounds close in their order."""


@pytest.mark.parametrize("order", IN_TURN)
def test_in_sync_a_push_of_another_bucket_may_be_missing(
    order: tuple[tuple[int, int], ...],
) -> None:
    state, closed = state_of(Sync()), set[int]()
    for sequence, bucket in order:
        state.exchange(call(sequence, bucket), 0.0)
        state.closed(bucket)
        closed.add(sequence)
        assert prefix_of(state) == next(n for n in range(5) if n + 1 not in closed)


def test_a_push_that_is_being_applied_is_in_no_point() -> None:
    state = state_of(Async())
    assert is_between_updates(state)

    one, other = push(state, 1), push(state, 2)
    assert not is_between_updates(state)
    state.applied(one)
    assert not is_between_updates(state)
    state.applied(other, InternalError("the table is full"))

    assert is_between_updates(state)


def test_a_round_that_is_being_applied_is_in_no_point() -> None:
    state = state_of(Sync(), trainers=2)
    state.exchange(call(1), 0.0)
    assert is_between_updates(state)  # the open round is not in the tables, so in no point either
    assert prefix_of(state) == 0

    instructions = state.exchange(call(1, trainer=1), 0.0)
    assert [type(each) for each in instructions] == [Close]
    assert not is_between_updates(state)
    state.closed()

    assert is_between_updates(state)
    assert prefix_of(state) == 1


@pytest.mark.parametrize("mode", [Async(), Sync()])
def test_a_recovered_pserver_has_the_prefix_of_what_it_read(mode: CommunicationMode) -> None:
    state = state_of(mode)
    for sequence in (1, 2):
        if isinstance(mode, Sync):
            state.exchange(call(sequence), 0.0)
            state.closed()
        else:
            state.applied(push(state, sequence))

    again = PserverState(10.0)
    restore(again, json.loads(json.dumps(dump(state, 0))), 5.0)

    assert prefix_of(again) == 2
    assert point_of(again, 5.0).pushes == 0


def test_a_point_names_the_trainers_that_had_completed() -> None:
    state = state_of(Async(), trainers=2)
    before = point_of(state, 1.0)
    state.complete(1, 101, 1.0)
    progress = DurableProgress()

    progress.confirm(point_of(state, 2.0), 3.0)

    assert not before.has_all_of(point_of(state, 2.0))
    assert [progress.has_recorded(trainer) for trainer in (0, 1)] == [False, True]


def test_replies_name_the_newest_point_that_is_confirmed() -> None:
    state, progress = state_of(Async()), DurableProgress()
    state.applied(push(state, 1))
    early = point_of(state, 1.0)
    state.applied(push(state, 2))
    late = point_of(state, 2.0)
    assert progress.durable_to(0, 100) == 0

    progress.confirm(late, 3.0)
    progress.confirm(early, 4.0)  # a cut takes longer to write than a local cut behind it

    assert progress.durable_to(0, 100) == 2
    assert progress.durable_to(0, 999) == 0  # another process of the trainer begins at 1 again
    assert progress.durable_to(1, 101) == 0


def test_status_has_the_pushes_that_a_kill_would_make_trainers_send_again() -> None:
    state, progress = state_of(Async()), DurableProgress()
    nothing = {"durable_lag_pushes": 0, "durable_lags": {}, "durable_age_s": None}
    assert progress.describe(state, 0.0) == nothing
    for sequence in (1, 2, 3):
        state.applied(push(state, sequence))
        if sequence == 1:
            progress.confirm(point_of(state, 5.0), 6.0)

    lags = {"durable_lag_pushes": 2, "durable_lags": {0: 2}}
    assert progress.describe(state, 8.5) == {**lags, "durable_age_s": 2.5}
