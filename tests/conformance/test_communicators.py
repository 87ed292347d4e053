"""The promises of every communication mode to the trainer, tested for each of them.

Two pservers, in process; the expected numbers are computed here: SGD at rate 0.5 on the sum of all
gradients, or on their mean over the trainers (Sync).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest

from psrt.communicator.async_ import merge_queue
from psrt.communicator.base import Communicator, Pulled
from psrt.communicator.requests import joining
from psrt.core import specs
from psrt.core.errors import DeadlineError, InternalError, UnavailableError
from psrt.rpc.methods import Method
from tests.support.communicators import (
    ASYNC,
    ASYNC_AT_ONCE,
    GEO,
    HALF_ASYNC,
    IDS,
    LONG_S,
    MODES_UNDER_TEST,
    RATE,
    SSP,
    SYNC,
    Builder,
    ModeUnderTest,
    gradients,
    initial,
    initial_rows,
)
from tests.support.inproc import Fault

EVERY_MODE = pytest.mark.parametrize("mode", MODES_UNDER_TEST.values(), ids=MODES_UNDER_TEST)


@pytest.fixture(params=["fake", "pserver", "buckets"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Builder]:
    """Clusters of fakes, of real pservers, and of real pservers with tables in two buckets."""
    builder = Builder(request.param)
    yield builder
    builder.close()


@pytest.fixture
def fakes() -> Iterator[Builder]:
    """Clusters of fakes, for tests that inspect the pserver."""
    builder = Builder("fake")
    yield builder
    builder.close()


def step(communicator: Communicator, scale: float = 1.0) -> Pulled:
    communicator.begin({"emb": IDS})
    return communicator.finish(gradients(scale))


def train(communicator: Communicator, steps: int = 1) -> dict[str, np.ndarray]:
    """Some steps and a flush, which raises any failure of the background."""
    for _ in range(steps):
        step(communicator)
    return communicator.flush(LONG_S)


# --- start ----------------------------------------------------------------------------------------


@EVERY_MODE
def test_start_pulls_whole_parameters_with_their_initial_values(cluster: Builder, mode) -> None:
    dense = cluster(mode).trainer.start(LONG_S)

    assert sorted(dense) == ["b", "w"]
    np.testing.assert_array_equal(dense["b"], initial("b"))
    np.testing.assert_array_equal(dense["w"], initial("w"))


@EVERY_MODE
def test_rows_never_seen_read_as_their_initial_function(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)

    rows = trainer.pull_rows({"emb": IDS})

    np.testing.assert_array_equal(rows["emb"], initial_rows(IDS))


@EVERY_MODE
def test_start_waits_for_a_pserver_that_is_not_up_and_names_it(cluster: Builder, mode) -> None:
    reported: list[str] = []

    def bring_it_up(text: str) -> None:
        reported.append(text)
        world.servers[1].stopped = False

    world = cluster(mode, on_wait=bring_it_up)
    world.servers[1].stopped = True

    dense = world.trainer.start(LONG_S)

    assert "ps1:6170" in reported[0]
    assert sorted(dense) == ["b", "w"]


@EVERY_MODE
def test_start_reports_a_pserver_that_takes_long_over_its_tables(
    fakes: Builder, mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "SLOW_S", 0.0)
    reported, gate = list[str](), threading.Event()

    def let_it_go_on(text: str) -> None:
        reported.append(text)
        gate.set()

    world = fakes(mode, on_wait=let_it_go_on)
    world.servers[1].faults.script(Fault.DELAY, Method.REGISTER, gate=gate)

    world.trainer.start(LONG_S)

    assert any("ps1:6170" in text and "compiled" in text for text in reported)


@EVERY_MODE
def test_start_gives_up_on_a_pserver_that_never_comes_and_names_it(cluster: Builder, mode) -> None:
    world = cluster(mode)
    world.servers[1].stopped = True

    with pytest.raises(UnavailableError, match="ps1:6170"):
        world.trainer.start(timeout_s=0.2)


# --- steps ----------------------------------------------------------------------------------------


@EVERY_MODE
def test_finish_returns_the_rows_announced_in_the_order_announced(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    wanted = np.array([3, 1, 2**40], np.int64)

    trainer.begin({"emb": wanted})
    pulled = trainer.finish({})

    np.testing.assert_array_equal(pulled.rows["emb"], initial_rows(wanted))


@EVERY_MODE
def test_finish_without_begin_returns_no_rows(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    step(trainer)

    assert trainer.finish(gradients()).rows == {}


@EVERY_MODE
def test_after_a_flush_the_gradients_are_in_rows_and_parameters(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)

    dense = train(trainer, steps=3)
    rows = trainer.pull_rows({"emb": IDS})["emb"]

    sent = gradients()
    np.testing.assert_allclose(dense["w"], initial("w") - RATE * 3 * sent["w"], rtol=1e-6)
    np.testing.assert_allclose(rows, initial_rows(IDS) - RATE * 3 * sent["emb"].values, rtol=1e-6)


@EVERY_MODE
def test_training_goes_on_after_a_flush(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)

    train(trainer)
    dense = train(trainer)

    np.testing.assert_allclose(dense["b"], initial("b") - RATE * 2 * gradients()["b"], rtol=1e-6)


@EVERY_MODE
def test_the_executor_may_overwrite_gradients_once_finish_returned(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    own = gradients()

    trainer.finish(own)
    own["w"][:] = np.nan
    own["emb"].values[:] = np.nan

    dense = trainer.stop(LONG_S)
    np.testing.assert_allclose(dense["w"], initial("w") - RATE * gradients()["w"], rtol=1e-6)


@EVERY_MODE
def test_parameters_stay_unchanged_until_the_next_but_one_finish(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    held = trainer.start(LONG_S)
    copies = {name: values.copy() for name, values in held.items()}

    for _ in range(20):
        fresh = step(trainer).dense
        for name, values in held.items():
            np.testing.assert_array_equal(values, copies[name])
        if fresh:
            held, copies = fresh, {name: values.copy() for name, values in fresh.items()}


@EVERY_MODE
def test_gradients_that_were_offered_before_the_end_of_a_step_count_once(
    cluster: Builder, mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_queue, "EARLY_BYTES", 1)
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)

    for _ in range(5):
        for name, gradient in gradients().items():
            trainer.offer(name, gradient)
        step(trainer)
    dense = trainer.stop(LONG_S)

    np.testing.assert_allclose(dense["b"], initial("b") - RATE * 5 * gradients()["b"], rtol=1e-5)
    np.testing.assert_allclose(dense["w"], initial("w") - RATE * 5 * gradients()["w"], rtol=1e-5)


@EVERY_MODE
def test_the_executor_may_overwrite_what_it_offered_after_the_next_finish(
    cluster: Builder, mode
) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    own = gradients()

    trainer.offer("w", own["w"])
    trainer.finish(own)
    own["w"][:] = np.nan

    dense = trainer.stop(LONG_S)
    np.testing.assert_allclose(dense["w"], initial("w") - RATE * gradients()["w"], rtol=1e-6)


def test_sync_gives_every_trainer_the_parameters_of_the_round_it_was_in(cluster: Builder) -> None:
    world = cluster(SYNC, trainers=2)
    world.on_all(lambda trainer: trainer.start(LONG_S))

    pulled = world.on_all(step)

    expected = initial("w") - RATE * gradients()["w"]
    for each in pulled:
        np.testing.assert_allclose(each.dense["w"], expected, rtol=1e-6)
        np.testing.assert_allclose(
            each.rows["emb"], initial_rows(IDS) - RATE * gradients()["emb"].values, rtol=1e-6
        )


def test_async_hands_out_newer_parameters_without_being_asked(cluster: Builder) -> None:
    trainer = cluster(ModeUnderTest(specs.Async())).trainer
    start = trainer.start(LONG_S)["b"].copy()

    fresh = next(pulled.dense["b"] for _ in range(10_000) if (pulled := step(trainer)).dense)

    assert (fresh < start).all()


def test_async_pushes_carry_the_number_of_steps_they_stand_for(fakes: Builder) -> None:
    world = fakes(ASYNC)
    world.trainer.start(LONG_S)

    for _ in range(7):
        step(world.trainer)
    world.trainer.stop(LONG_S)

    assert [pserver.steps for pserver in world.pservers] == [7, 7]


def test_pushes_carry_the_version_their_gradients_were_computed_on(fakes: Builder) -> None:
    world = fakes(SYNC)
    world.trainer.start(LONG_S)

    for _ in range(3):
        step(world.trainer)

    pushed = [version for table, version in world.pservers[1].versions_pushed if table == "b"]
    assert pushed == [0, 1, 2]


# --- the end --------------------------------------------------------------------------------------


@EVERY_MODE
def test_after_stop_the_gradients_of_all_trainers_are_in_the_parameters(
    cluster: Builder, mode
) -> None:
    world = cluster(mode, trainers=2)
    world.on_all(lambda trainer: trainer.start(LONG_S))
    for _ in range(3):
        world.on_all(step)

    for trainer in world.trainers:  # in Geo a trainer waits until all have trained
        trainer.flush(LONG_S, final=True)
    world.trainers[0].stop(LONG_S)
    dense = world.trainers[1].stop(LONG_S)

    total = 6 * mode.part_applied(len(world.trainers)) * gradients()["w"]
    np.testing.assert_allclose(dense["w"], initial("w") - RATE * total, rtol=1e-5)


def test_nothing_queued_is_lost_at_stop(fakes: Builder) -> None:
    world = fakes(ASYNC)
    world.trainer.start(LONG_S)
    gate = threading.Event()
    world.fault(Fault.DELAY, Method.PUSH, gate=gate)
    for scale in (1, 2, 4):
        step(world.trainer, scale)

    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(world.trainer.stop, LONG_S)
        gate.set()
        dense = stopping.result(LONG_S)

    np.testing.assert_allclose(dense["w"], initial("w") - RATE * 7 * gradients()["w"], rtol=1e-6)
    assert [pserver.steps for pserver in world.pservers] == [3, 3]


@EVERY_MODE
def test_stop_completes_the_trainer_at_every_pserver_once(fakes: Builder, mode) -> None:
    world = fakes(mode)
    world.trainer.start(LONG_S)
    step(world.trainer)

    first = world.trainer.stop(LONG_S)
    second = world.trainer.stop(LONG_S)

    assert first is second
    assert [pserver.live for pserver in world.pservers] == [set(), set()]


@EVERY_MODE
def test_a_trainer_that_stops_early_does_not_hold_up_the_others(cluster: Builder, mode) -> None:
    world = cluster(mode, trainers=2)
    world.on_all(lambda trainer: trainer.start(LONG_S))
    world.on_all(step)

    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(world.trainers[1].stop, LONG_S)
        if mode is not GEO:  # there it waits for the other trainer
            stopping.result(LONG_S)
        step(world.trainers[0])
        dense = world.trainers[0].stop(LONG_S)
        stopping.result(LONG_S)

    total = (2 * mode.part_applied(len(world.trainers)) + 1) * gradients()["b"]
    np.testing.assert_allclose(dense["b"], initial("b") - RATE * total, rtol=1e-6)


@EVERY_MODE
def test_no_thread_is_left_after_stop(cluster: Builder, mode) -> None:
    before = set(threading.enumerate())
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    train(trainer, steps=3)
    own = [t for t in set(threading.enumerate()) - before if t.name != "deadlines"]

    trainer.stop(LONG_S)

    for thread in own:
        thread.join(LONG_S)
    assert own
    assert [thread.name for thread in own if thread.is_alive()] == []


@EVERY_MODE
def test_a_step_after_stop_is_refused(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    trainer.stop(LONG_S)

    with pytest.raises(InternalError, match="after it was stopped"):
        trainer.finish(gradients())


# --- failures -------------------------------------------------------------------------------------


@EVERY_MODE
@pytest.mark.parametrize("fault", [Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.DUPLICATE])
def test_a_push_that_met_a_broken_connection_is_applied_once(
    cluster: Builder, mode, fault: Fault
) -> None:
    world = cluster(mode)
    world.trainer.start(LONG_S)
    world.fault(fault, mode.carrier)

    step(world.trainer)
    dense = world.trainer.stop(LONG_S)

    np.testing.assert_allclose(dense["w"], initial("w") - RATE * gradients()["w"], rtol=1e-6)


@EVERY_MODE
def test_a_pserver_that_died_is_named(cluster: Builder, mode) -> None:
    world = cluster(mode)
    world.trainer.start(LONG_S)
    world.servers[1].stop()

    with pytest.raises(UnavailableError, match="ps1:6170"):
        train(world.trainer)


@EVERY_MODE
def test_after_a_failure_every_further_step_fails_too(cluster: Builder, mode) -> None:
    world = cluster(mode)
    world.trainer.start(LONG_S)
    world.servers[0].stop()
    with pytest.raises(UnavailableError):
        train(world.trainer)

    with pytest.raises(UnavailableError, match="ps0:6170"):
        step(world.trainer)


@EVERY_MODE
def test_stop_with_a_dead_pserver_fails_by_name_and_ends(cluster: Builder, mode) -> None:
    world = cluster(mode)
    world.trainer.start(LONG_S)
    world.servers[1].stop()

    with pytest.raises(UnavailableError, match="ps1:6170"):
        world.trainer.stop(timeout_s=1.0)


def test_a_slow_pserver_holds_the_trainer_back_until_a_named_deadline(cluster: Builder) -> None:
    world = cluster(ASYNC_AT_ONCE, call_timeout_s=1.0)
    world.trainer.start(LONG_S)
    gate = threading.Event()
    world.fault(Fault.DELAY, Method.PUSH, gate=gate)

    with pytest.raises(DeadlineError, match=r"PUSH .* to pserver ps\d:6170 got no reply"):
        train(world.trainer, steps=4)

    gate.set()


def test_flush_counts_the_gradients_it_could_not_send(cluster: Builder) -> None:
    world = cluster(ASYNC_AT_ONCE)
    world.trainer.start(LONG_S)
    gate = threading.Event()
    world.fault(Fault.DELAY, Method.PUSH, gate=gate)
    for _ in range(2):
        world.trainer.finish(gradients())

    with pytest.raises(DeadlineError, match="3 queued gradients were not sent"):
        world.trainer.flush(timeout_s=0.0)

    gate.set()


# --- counters, timeline ---------------------------------------------------------------------------


@EVERY_MODE
def test_counters_measure_bytes_in_both_directions(cluster: Builder, mode) -> None:
    trainer = cluster(mode).trainer
    trainer.start(LONG_S)
    started = trainer.counters.snapshot()
    trainer.finish(gradients())
    trainer.flush(LONG_S)

    counted = trainer.counters.snapshot()

    dense_bytes, id_bytes, row_bytes = 4 * 11, 8 * 6, 4 * 18
    assert started["pull_bytes"] == dense_bytes
    pushed = dense_bytes + id_bytes + row_bytes
    assert pushed <= counted["push_bytes"] <= (pushed if mode is not GEO else 2 * pushed)


def test_sync_counts_rounds_and_async_counts_steps_and_pushes(cluster: Builder) -> None:
    sync, asynchronous = cluster(SYNC).trainer, cluster(ASYNC_AT_ONCE).trainer
    for trainer in (sync, asynchronous):
        trainer.start(LONG_S)
        for _ in range(3):
            step(trainer)
        trainer.flush(LONG_S)

    assert sync.counters.snapshot()["rounds"] == 3
    counted = asynchronous.counters.snapshot()
    assert (counted["pushes"], counted["steps_sent"], counted["gradients_merged"]) == (3, 3, 9)


class Spans:
    """A timeline that records names and threads."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def span(self, name: str, category: str) -> AbstractContextManager[None]:
        assert category == "communicate"
        self.seen.append((name, threading.current_thread().name))
        return nullcontext()

    def names(self) -> set[str]:
        return {name for name, _ in self.seen}


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        (SYNC, {"exchange", "pull dense"}),
        (HALF_ASYNC, {"exchange", "pull dense"}),
        (ASYNC, {"push", "pull dense", "pull rows", "wait for rows"}),
        (SSP, {"push", "meet", "pull dense", "wait for rows"}),
        (GEO, {"exchange", "wait for exchange"}),
    ],
    ids=["sync", "half-async", "async", "ssp", "geo"],
)
def test_a_timeline_records_every_call_and_wait(
    cluster: Builder, mode: ModeUnderTest, names: set[str]
) -> None:
    trainer, spans = cluster(mode).trainer, Spans()
    trainer.start(LONG_S)
    trainer.watch(spans)

    train(trainer, steps=3)

    assert spans.names() == names
    own = threading.current_thread().name
    assert {thread for name, thread in spans.seen if name == "push"} <= {
        "push ps0:6170", "push ps1:6170"
    }  # fmt: skip
    assert {thread for name, thread in spans.seen if name == "wait for rows"} <= {own}


@EVERY_MODE
def test_a_timeline_that_was_removed_records_nothing(cluster: Builder, mode) -> None:
    trainer, spans = cluster(mode).trainer, Spans()
    trainer.watch(spans)
    trainer.start(LONG_S)
    trainer.watch(None)
    before = len(spans.seen)

    train(trainer)

    assert before
    assert len(spans.seen) == before
