"""The change log against dirty sets: per trainer, the ids that others pushed since its last
request.

Every sequence of a few events, with compaction at every chance and never; then long random ones.
"""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from psrt.pserver.tables.change_log import ChangeLog

ALWAYS, NEVER = 0, 1 << 40  # ids from which on a log is compacted
Event = tuple[str, int, tuple[int, ...]]  # what, trainer, ids of a push


class World:
    """A log, its readers, and a dirty set for each of them.

    Events: `push` (ids are applied and logged) · `pull` (an exchange) · `lost` (a pull whose reply
    never arrives, so the trainer asks again from where it was) · `complete`.
    """

    def __init__(self, trainers: int, least_ids: int) -> None:
        self.log = ChangeLog(least_ids)
        self.rows: set[int] = set()
        self.position = dict.fromkeys(range(trainers), 0)
        self.dirty: dict[int, set[int]] = {trainer: set() for trainer in range(trainers)}

    def do(self, event: Event) -> None:
        what, trainer, ids = event
        getattr(self, f"_{what}")(trainer, ids)

    def _push(self, trainer: int, ids: tuple[int, ...]) -> None:
        self.log.add(trainer, np.array(ids, np.int64))
        self.rows |= set(ids)
        for other, dirty in self.dirty.items():
            if other != trainer:
                dirty |= set(ids)

    def _lost(self, trainer: int, ids: tuple[int, ...]) -> int:
        answer = self.log.since(trainer, self.position[trainer])
        if self.position[trainer] == 0:
            assert answer is None or set(answer.tolist()) >= self.rows, "rows are missing"
        else:
            assert answer is not None, "the log forgot what was not acknowledged"
            assert sorted(answer.tolist()) == sorted(self.dirty[trainer])
        return self.log.end

    def _pull(self, trainer: int, ids: tuple[int, ...]) -> None:
        self.position[trainer] = self._lost(trainer, ids)
        self.dirty[trainer].clear()

    def _complete(self, trainer: int, ids: tuple[int, ...]) -> None:
        """Its process asks no more; another one would begin at 0."""
        self.log.release(trainer)
        self.position[trainer] = 0


def every_event(trainers: int) -> list[Event]:
    pushes = [("push", t, ids) for t in range(trainers) for ids in ((1,), (1, 2))]
    others = [(what, t, ()) for t in range(trainers) for what in ("pull", "lost")]
    return [*pushes, *others]


@pytest.mark.parametrize("least_ids", [ALWAYS, NEVER])
def test_after_every_sequence_of_events_an_answer_is_the_dirty_set(least_ids: int) -> None:
    events = every_event(2)

    for sequence in itertools.product(events, repeat=4):
        world = World(2, least_ids)
        world.do(("pull", 0, ()))
        for event in [*sequence, *(("pull", trainer, ()) for trainer in (0, 1, 0, 1))]:
            world.do(event)
        assert len(world.log) == 0, "what both have acknowledged is still there"


@pytest.mark.parametrize("least_ids", [ALWAYS, 20, NEVER])
@pytest.mark.parametrize("seed", range(20))
def test_in_long_random_schedules_an_answer_is_the_dirty_set(seed: int, least_ids: int) -> None:
    draw = random.Random(seed)
    world = World(4, least_ids)

    for _ in range(400):
        trainer = draw.randrange(4)
        ids = tuple(draw.sample(range(30), draw.randrange(8)))
        what = draw.choices(["push", "pull", "lost", "complete"], [60, 25, 10, 1])[0]
        world.do((what, trainer, ids))
    for trainer in range(4):
        world.do(("pull", trainer, ()))


@pytest.mark.parametrize("seed", range(5))
def test_compaction_changes_no_answer(seed: int) -> None:
    draw = random.Random(seed)
    logs = [ChangeLog(ALWAYS), ChangeLog(NEVER)]
    for log in logs:
        log.since(0, 0)

    answers = []
    for _ in range(60):
        trainer, ids = draw.randrange(3), np.array(draw.sample(range(12), 3), np.int64)
        reader, position = draw.randrange(3), draw.randrange(1, logs[0].end + 1)
        for log in logs:
            log.add(trainer, ids)
        answers.append([sorted(log.since(reader, position)) for log in logs])  # type: ignore[arg-type]
        for log in logs:
            log.since(0, 1)  # trainer 0 has acknowledged nothing
            log.since(reader, 1)

    assert all(compacted == whole for compacted, whole in answers)
    assert len(logs[0]) < len(logs[1])


def test_a_silent_reader_holds_at_most_the_newest_two_pushes_of_each_row() -> None:
    log, draw = ChangeLog(1000), np.random.default_rng(0)
    log.since(0, 0)

    longest = 0
    for number in range(2000):
        log.add(number % 3, draw.choice(500, 100, replace=False))
        longest = max(longest, len(log))

    assert longest <= 2 * (2 * 500) + 100
    assert log.since(0, 1) is not None


def test_while_nobody_reads_nothing_is_kept() -> None:
    log = ChangeLog()

    for trainer in range(3):
        log.add(trainer, np.arange(100, dtype=np.int64))

    assert len(log) == 0
    assert log.since(0, 0) is None
    assert log.since(1, 2) is None, "it cannot know what position 2 stands for"


def test_the_completion_of_the_slowest_reader_frees_what_only_it_needed() -> None:
    log = ChangeLog()
    log.since(0, 0)
    log.since(1, 0)
    log.add(2, np.arange(10, dtype=np.int64))
    log.since(0, log.end)
    held = len(log)

    log.release(1)

    assert (held, len(log)) == (10, 0)


def test_a_new_process_of_a_trainer_asks_for_every_row_again() -> None:
    log = ChangeLog()
    log.since(0, 0)
    log.add(1, np.array([5], np.int64))
    log.since(0, log.end)

    assert log.since(0, 0) is None


def test_the_log_keeps_a_copy_of_the_ids_it_is_given() -> None:
    log, ids = ChangeLog(), np.array([7, 9], np.int64)
    log.since(0, 0)
    log.add(1, ids)

    ids[:] = 0
    changed = log.since(0, 1)

    assert changed is not None
    assert changed.tolist() == [7, 9]
