"""The simulator itself: one seed, one history; faults strike; failing histories shrink."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from tests.sim import mutations
from tests.sim.history import logged, run
from tests.sim.network import LinkFault
from tests.sim.primitives import Condition, Event, Lock, RLock, SimpleQueue, Thread
from tests.sim.scenario import MODES, ProcessFault, Scenario, Strike, drawn
from tests.sim.shrinking import shrunk
from tests.sim.world import Endless, Process, World
from tests.support.processes import ROOT

CALM = Scenario(1, "async", "stream-tcp", steps=(3, 2), joins_s=(0.0, 0.0))


# --- histories ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_history_without_faults_completes(mode: str) -> None:
    verdict = run(replace(CALM, mode=mode))

    assert not verdict.violation
    assert set(verdict.ends.values()) == {"completed"}


def test_threads_of_other_tests_leave_no_note() -> None:
    world, log = World(1), logging.getLogger("psrt.pserver")

    with logged(world):
        log.error("a defect", exc_info=ValueError("staged"))
        other = threading.Thread(target=log.error, args=("a thread crashed",))
        other.start()
        other.join()

    assert [line.split("  ")[-1] for line in world.trace] == ["defect: a defect"]


@pytest.mark.parametrize("mode", MODES)
def test_a_cut_that_a_user_asks_for_is_made_and_checked(mode: str) -> None:
    calm = replace(CALM, mode=mode, steps=(6, 6), cuts_s=(0.02,))
    verdicts = [run(replace(calm, seed=seed)) for seed in range(8)]

    assert not any(verdict.violation for verdict in verdicts)
    assert sum(verdict.cuts for verdict in verdicts) >= 3


def test_the_same_seed_gives_the_same_history_to_the_byte_in_every_process() -> None:
    script = "from tests.sim.history import run; from tests.sim.scenario import drawn\n"
    script += "for seed in range(12): print('\\n'.join(run(drawn(seed)).trace))\n"
    script += "print('\\n'.join(run(drawn(5, 'ssp')).trace))"  # it deletes parts of a cut
    traces = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "6")
    ]

    assert traces[0]
    assert traces[0] == traces[1]


def test_another_seed_gives_another_history() -> None:
    assert run(CALM).trace != run(replace(CALM, seed=2)).trace


@pytest.mark.parametrize("fault", LinkFault)
def test_a_link_fault_strikes_the_frame_it_names(fault: LinkFault) -> None:
    verdict = run(replace(CALM, links=((20, fault),)))

    assert not verdict.violation
    assert any("frame 20: " in line and fault.value in line for line in verdict.trace)


def test_a_killed_trainer_is_started_again_as_a_new_process() -> None:
    strike = Strike(0.02, ProcessFault.KILL, "trainer 0", for_s=1.0)

    verdict = run(replace(CALM, strikes=(strike,)))

    assert not verdict.violation
    assert any(line.endswith("trainer 0 starts as process 1") for line in verdict.trace)


def test_a_paused_process_runs_on_late() -> None:
    strike = Strike(0.02, ProcessFault.PAUSE, "pserver 0", for_s=2.0)

    verdict = run(replace(CALM, strikes=(strike,)))

    assert not verdict.violation
    assert float(verdict.trace[-1].split()[0]) > 2.0


def test_a_failing_history_shrinks_to_what_it_needs() -> None:
    with mutations.MUTATIONS["a push is applied twice"].planted():
        found = shrunk(
            drawn(11, "async", pservers_die=False), lambda each: bool(run(each).violation)
        )

    assert found.steps == (1,)
    assert found.links == found.strikes == ()


# --- fibers ------------------------------------------------------------------------------------


@pytest.fixture
def world() -> World:
    return World(1)


def play(world: World, *targets: object) -> None:
    process = Process("p")
    fibers = [world.spawn(process, f"f{i}", target) for i, target in enumerate(targets)]
    world.run(lambda: all(fiber.done for fiber in fibers), 100.0)
    for fiber in fibers:
        if fiber.error is not None:
            raise fiber.error


def test_a_lock_lets_one_fiber_in_at_a_time(world: World) -> None:
    lock, inside, seen = Lock(world), [], []

    def enter() -> None:
        for _ in range(20):
            with lock:
                inside.append(1)
                world.sleep(0.01)
                seen.append(len(inside))
                inside.pop()

    play(world, enter, enter, enter)

    assert seen == [1] * 60


def test_a_reentrant_lock_may_be_taken_again_by_its_owner(world: World) -> None:
    lock = RLock(world)

    def enter() -> None:
        with lock, lock:
            world.sleep(0.1)

    play(world, enter, enter)

    assert not lock.locked()


def test_a_condition_wakes_at_its_time_or_when_notified(world: World) -> None:
    condition, results = Condition(world), []

    def wait() -> None:
        with condition:
            results.append(condition.wait(1.0))
            results.append(condition.wait(1.0))

    def notify() -> None:
        world.sleep(1.5)
        with condition:
            condition.notify_all()

    play(world, wait, notify)

    assert results == [False, True]


def test_an_event_and_a_queue_hand_over_between_fibers(world: World) -> None:
    queue_type = type("Queue", (SimpleQueue,), {"world": world})
    event, queue, got = Event(world), queue_type(), []

    def take() -> None:
        event.wait()
        got.extend([queue.get(), queue.get()])

    def put() -> None:
        queue.put(1)
        event.set()
        world.sleep(1.0)
        queue.put(2)

    play(world, take, put)

    assert got == [1, 2]


def test_a_thread_can_be_joined(world: World) -> None:
    ended = []

    def main() -> None:
        thread = Thread(world, target=lambda: world.sleep(3.0))
        thread.start()
        thread.join(1.0)
        ended.append(thread.is_alive())
        thread.join()
        ended.append(thread.is_alive())

    play(world, main)

    assert ended == [True, False]


def test_a_killed_process_runs_no_finally_block(world: World) -> None:
    process, ran = Process("p"), []

    def main() -> None:
        try:
            world.sleep(10.0)
        finally:
            if not process.is_dead:
                ran.append("finally")

    world.spawn(process, "main", main)
    world.at(world.now + 1.0, lambda: world.kill(process))
    with pytest.raises(Endless):
        world.run(lambda: False, 5.0)
    world.close()

    assert ran == []
