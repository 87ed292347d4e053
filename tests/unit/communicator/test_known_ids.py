"""Pushes that name pulled ids are applied once, even if a pserver forgets the ids."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from psrt.communicator.requests import known_ids
from psrt.communicator.requests.known_ids import MOST_MISSES
from psrt.core.tensors import SelectedRows
from psrt.pserver.serving.id_list_cache import IdListCache
from psrt.pserver.serving.service import PserverService
from psrt.rpc.methods import Method
from psrt.rpc.wire import PUSH_ROWS
from psrt.rpc.wire.frames import Message
from tests.support.communicators import (
    ASYNC,
    ASYNC_AT_ONCE,
    HALF_ASYNC,
    IDS,
    LONG_S,
    RATE,
    SYNC,
    Builder,
    Cluster,
    ModeUnderTest,
    initial_rows,
)
from tests.support.inproc import Fault

ONES = np.ones((len(IDS), 3), np.float32)

every_mode_that_pulls = pytest.mark.parametrize(
    "mode", [SYNC, HALF_ASYNC, ASYNC_AT_ONCE], ids=["sync", "half-async", "async"]
)


@pytest.fixture(autouse=True)
def a_few_ids_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_ids, "FEWEST_IDS", 1)


@pytest.fixture
def build() -> Iterator[Builder]:
    builder = Builder("real")
    yield builder
    builder.close()


def started(build: Builder, mode: ModeUnderTest) -> tuple[Cluster, list[Message]]:
    """A cluster whose trainer has pulled the first batch's rows, and the pushes it will send."""
    cluster, pushes = build(mode), []
    cluster.before[mode.carrier] = pushes.append
    cluster.trainer.start(LONG_S)
    cluster.trainer.pull_rows({"emb": IDS})
    return cluster, pushes


def step(cluster: Cluster, ids: np.ndarray = IDS) -> None:
    """Gradients of ones for `ids`; the next batch has the ids of this one."""
    cluster.trainer.begin({"emb": IDS})
    cluster.trainer.finish({"emb": SelectedRows(ids, ONES[: len(ids)], unique=True)})


def rows_after(steps: int) -> np.ndarray:
    return initial_rows(IDS) - np.float32(steps) * RATE * ONES


def pushed(message: Message) -> list[tuple[bool, int]]:
    """For each part with rows: True if it names a list, and the number of tensors of the call."""
    parts = [part for part in message.header.parts if part.kind == PUSH_ROWS]
    return [(part.keys != 0, len(message.tensors)) for part in parts]


def forget(cluster: Cluster) -> None:
    for pserver in cluster.pservers:
        assert isinstance(pserver, PserverService)
        pserver._id_lists = pserver._steps._id_lists = IdListCache()


def counted(cluster: Cluster, name: str) -> float:
    return float(cluster.trainer.counters.snapshot()[name])


def assert_applied(cluster: Cluster, steps: int) -> None:
    cluster.trainer.flush(LONG_S)
    np.testing.assert_allclose(
        cluster.trainer.pull_rows({"emb": IDS})["emb"], rows_after(steps), atol=1e-6
    )


@every_mode_that_pulls
def test_ids_that_were_pulled_are_not_sent_again(build: Builder, mode: ModeUnderTest) -> None:
    cluster, pushes = started(build, mode)

    for _ in range(3):
        step(cluster)

    assert_applied(cluster, 3)
    assert {named for push in pushes for named, _ in pushed(push)} == {True}
    assert counted(cluster, "unsaid_bytes") == 3 * IDS.nbytes


def test_short_lists_of_ids_are_sent_again(build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_ids, "FEWEST_IDS", len(IDS) + 1)
    cluster, pushes = started(build, SYNC)

    step(cluster)

    assert_applied(cluster, 1)
    assert {named for push in pushes for named, _ in pushed(push)} == {False}


@pytest.mark.parametrize(
    "ids", [IDS[:-1].copy(), IDS[::-1].copy()], ids=["fewer ids", "another order"]
)
def test_a_list_that_was_not_pulled_travels_whole(build: Builder, ids: np.ndarray) -> None:
    cluster, pushes = started(build, SYNC)

    step(cluster, ids)

    assert {named for push in pushes for named, _ in pushed(push)} == {False}
    assert counted(cluster, "unsaid_bytes") == 0


def test_merged_gradients_travel_whole(build: Builder) -> None:
    cluster, pushes = started(build, ASYNC)
    other = np.array([11, 12, 13], np.int64)

    cluster.trainer.begin({"emb": IDS})
    cluster.trainer.offer("emb", SelectedRows(IDS, ONES, unique=True))
    cluster.trainer.finish({"emb": SelectedRows(IDS, ONES, unique=True)})
    step(cluster, other)
    cluster.trainer.flush(LONG_S)

    whole = [push for push in pushes if (False, 2) in pushed(push)]
    assert whole


@pytest.mark.parametrize("mode", [SYNC, HALF_ASYNC], ids=["sync", "half-async"])
def test_a_pserver_that_has_forgotten_gets_the_ids_and_applies_once(
    build: Builder, mode: ModeUnderTest
) -> None:
    cluster, pushes = started(build, mode)
    step(cluster)
    pushes.clear()

    forget(cluster)
    step(cluster)

    assert_applied(cluster, 2)
    assert counted(cluster, "id_lists_missed") == 2  # one of each pserver
    assert len(pushes) == 4
    keys = [(push.header.push_key.incarnation, push.header.push_key.sequence) for push in pushes]
    assert {keys.count(key) for key in keys} == {4}  # sequences count by pserver


@pytest.mark.parametrize("fault", [Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.DUPLICATE])
@every_mode_that_pulls
def test_a_push_that_names_its_ids_is_applied_once_through_any_network_fault(
    build: Builder, mode: ModeUnderTest, fault: Fault
) -> None:
    cluster, _ = started(build, mode)
    step(cluster)

    cluster.fault(fault, mode.carrier)
    step(cluster)

    assert_applied(cluster, 2)


def test_a_push_that_was_applied_and_then_forgotten_is_not_applied_again(build: Builder) -> None:
    cluster, _ = started(build, HALF_ASYNC)
    step(cluster)
    seen = 0

    def forget_before_the_repetition(message: Message) -> None:
        nonlocal seen
        seen += 1
        if seen == 3:  # both pservers have applied it, the replies were lost
            forget(cluster)

    cluster.before[Method.PUSH] = forget_before_the_repetition
    cluster.fault(Fault.RESET_AFTER, Method.PUSH)
    step(cluster)

    assert_applied(cluster, 2)


def test_a_pserver_that_forgets_again_and_again_is_not_asked_for_a_while(build: Builder) -> None:
    cluster, pushes = started(build, SYNC)
    for _ in range(MOST_MISSES):
        forget(cluster)
        step(cluster)
    missed = counted(cluster, "id_lists_missed")
    pushes.clear()

    step(cluster)

    assert {named for push in pushes for named, _ in pushed(push)} == {False}
    assert counted(cluster, "id_lists_missed") == missed


def test_a_pserver_that_has_forgotten_is_asked_again_after_its_rest(
    build: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_ids, "LISTS_OF_REST", 4)
    cluster, pushes = started(build, SYNC)
    for _ in range(MOST_MISSES):
        forget(cluster)
        step(cluster)
    for _ in range(5):
        step(cluster)
    pushes.clear()

    step(cluster)

    assert {named for push in pushes for named, _ in pushed(push)} == {True}
    assert_applied(cluster, MOST_MISSES + 6)
