"""Random schedules of trainers that join late, finish early, are slow and lose messages, by mode.

Real pservers in process. Gradients are whole numbers and the rate is 1, so what the tables hold in
the end tells exactly whether a push was lost or applied twice. A schedule is a function of its
number: a failure names it, and `run(mode, number)` repeats the same trainers, steps and faults
(threads may still take turns in another way).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from psrt.communicator.async_ import merge_queue
from psrt.communicator.base import Communicator, Gradients
from psrt.core import specs
from psrt.core.tensors import SelectedRows
from psrt.pserver.serving.service import PserverService
from psrt.rpc.methods import Method
from psrt.rpc.retry import RetryPolicy
from tests.support.cluster import in_threads
from tests.support.communicators import ENDPOINTS, Builder, Cluster, ModeUnderTest, plan_of
from tests.support.inproc import Fault

SCHEDULES, BLOCKS = 96, 8
MORE = (pytest.param(block, marks=pytest.mark.long) for block in range(4, BLOCKS))
SOME = [0, 1, 2, 3, *MORE]
LONG_S = 30.0
PLAN = plan_of(specs.Constant(0.0), rate=1.0)
UNIT = 12
"""All gradients are multiples of it: their mean over up to four trainers is whole."""
MOST_TRAINERS, MOST_STEPS = 3, 4
FAULTS = (Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.DUPLICATE)
METHODS = (Method.PULL, Method.REGISTER, Method.COMPLETE, Method.MEET)
MARK = 1 << 40
"""Row MARK + t counts the steps of trainer t."""

MODES = {
    "sync": ModeUnderTest(specs.Sync(), Method.EXCHANGE, mean=True),
    "async": ModeUnderTest(specs.Async(send_wait_times=0)),
    "async-merging": ModeUnderTest(
        specs.Async(max_merge_var_num=3, send_queue_size=3, send_wait_times=1, thread_pool_size=2)
    ),
    "half-async": ModeUnderTest(specs.HalfAsync()),
    "ssp": ModeUnderTest(specs.Ssp(max_steps_ahead=1)),
    "geo": ModeUnderTest(specs.Geo(update_frequency=2)),
}
LEAST_PART = 1e-2
"""In Geo pushes carry parts of gradients; what is lost or applied twice is more than this."""


@dataclass(frozen=True)
class Step:
    """Ids, their gradient rows, dense gradients; how often the trainer gives way before it ends;
    which gradients it offers before."""

    gradients: Gradients
    pauses: int
    offered: tuple[str, ...]

    @property
    def ids(self) -> np.ndarray:
        rows = self.gradients["emb"]
        assert isinstance(rows, SelectedRows)
        return rows.ids


@dataclass(frozen=True)
class Schedule:
    """`steps[trainer]`; trainer t > 0 joins when trainer t - 1 is at its step `joins[t]`, or has
    completed, or with `stops_together` is about to: it waits for the others to have trained."""

    steps: tuple[tuple[Step, ...], ...]
    joins: tuple[int, ...]
    faults: tuple[tuple[int, Fault, Method, int, int], ...]
    stops_together: bool


def schedule_of(number: int, under_test: ModeUnderTest) -> Schedule:
    draw = random.Random(f"{under_test} {number}")
    trainers = draw.randint(1, MOST_TRAINERS)
    steps = [
        tuple(step_of(draw, trainer) for _ in range(draw.randint(0, MOST_STEPS)))
        for trainer in range(trainers)
    ]
    joins = [draw.randint(0, farthest(under_test.mode, len(steps[t - 1]))) for t in range(trainers)]
    faults = [
        (
            draw.randrange(2),
            draw.choice(FAULTS),
            draw.choice([under_test.carrier, under_test.carrier, *METHODS]),
            draw.randint(0, 8),
            draw.randint(1, 2),
        )
        for _ in range(draw.randint(0, 6))
    ]
    return Schedule(
        tuple(steps), tuple(joins), tuple(faults), isinstance(under_test.mode, specs.Geo)
    )


def farthest(mode: specs.CommunicationMode, steps: int) -> int:
    """The last step a trainer can get to while another has not joined."""
    match mode:
        case specs.Sync():
            return 0
        case specs.Ssp(max_steps_ahead=ahead):
            return min(ahead, steps)
        case _:
            return steps


def step_of(draw: random.Random, trainer: int) -> Step:
    ids = [MARK + trainer, *draw.sample(range(6), draw.randint(0, 3))]
    values = [[whole(draw) for _ in range(3)] for _ in ids]
    values[0][0] = -float(UNIT)
    gradients = {
        "b": np.array([whole(draw) for _ in range(3)], np.float32),
        "w": np.array([whole(draw) for _ in range(8)], np.float32).reshape(4, 2),
        "emb": SelectedRows(np.array(ids, np.int64), np.array(values, np.float32), unique=True),
    }
    names = tuple(draw.sample(list(gradients), draw.randint(0, 3)))
    return Step(gradients, draw.choice([0, 0, 1, 5, 20]), names)


def whole(draw: random.Random) -> float:
    return float(UNIT * draw.randint(-3, 3))


# --- one schedule ---------------------------------------------------------------------------------


class Trainer:
    """Runs the steps of one trainer; `reached[n]` is set when it is at its step n."""

    def __init__(
        self, number: int, communicator: Communicator, schedule: Schedule, ahead: int | None
    ) -> None:
        self._number, self._communicator, self._ahead = number, communicator, ahead
        self._schedule, self._steps = schedule, schedule.steps[number]
        self.reached = [threading.Event() for _ in range(len(self._steps) + 1)]
        self.before: Trainer | None = None

    def run(self) -> None:
        try:
            if self.before is not None:
                assert self.before.reached[self._schedule.joins[self._number]].wait(LONG_S)
            self._communicator.start(LONG_S)
            self._train()
            if self._schedule.stops_together:
                self._arrived()
            self._communicator.stop(LONG_S)
        finally:
            self._arrived()
            self._communicator.close()

    def _arrived(self) -> None:
        for event in self.reached:
            event.set()

    def _train(self) -> None:
        if self._steps:
            self._communicator.pull_rows({"emb": self._steps[0].ids})
        for n, step in enumerate(self._steps):
            self.reached[n].set()
            if n + 1 < len(self._steps):
                marks = [MARK + trainer for trainer in range(len(self._schedule.steps))]
                self._communicator.begin({"emb": np.array(marks, np.int64)})
            for name in step.offered:
                self._communicator.offer(name, step.gradients[name])
            for _ in range(step.pauses):
                time.sleep(0)  # gives way; waits for nothing
            pulled = self._communicator.finish(step.gradients)
            if "emb" in pulled.rows:
                self._check_staleness(n + 1, pulled.rows["emb"][:, 0] / UNIT)

    def _check_staleness(self, step: int, progress: np.ndarray) -> None:
        """Check that the values under `step` have enough updates of every other trainer."""
        if self._ahead is None:
            return
        for trainer, steps in enumerate(self._schedule.steps):
            if trainer != self._number:
                assert progress[trainer] >= min(step - self._ahead, len(steps))


def run(mode: str, number: int) -> None:
    under_test = MODES[mode]
    schedule = schedule_of(number, under_test)
    builder = Builder("pserver", RetryPolicy(initial_s=0.0002, budget_s=LONG_S))
    try:
        cluster = builder(under_test, len(schedule.steps), plan=PLAN)
        for server, fault, method, after, times in schedule.faults:
            cluster.servers[server].faults.script(fault, method, after=after, times=times)
        ahead = getattr(under_test.mode, "max_steps_ahead", None)
        trainers = [
            Trainer(number, communicator, schedule, ahead)
            for number, communicator in enumerate(cluster.trainers)
        ]
        for before, after in pairwise(trainers):
            after.before = before  # type: ignore[attr-defined]
        in_threads([trainer.run for trainer in trainers])
        check(cluster, schedule, under_test)
    finally:
        builder.close()


def check(cluster: Cluster, schedule: Schedule, under_test: ModeUnderTest) -> None:
    expected = expected_tables(schedule.steps, under_test.mean)
    held = held_tables(cluster)
    assert not any(held[name].any() for name in held.keys() - expected.keys())
    for name, values in expected.items():
        off = LEAST_PART if schedule.stops_together else 0.0
        held_values = held.get(name, np.zeros_like(values))
        np.testing.assert_allclose(held_values, values, rtol=0.0, atol=off, err_msg=str(name))
    if not under_test.mean:
        total = sum(map(len, schedule.steps))
        for pserver in cluster.pservers:
            assert isinstance(pserver, PserverService)
            assert pserver.status()["global_step"] == total


def expected_tables(steps: Sequence[Sequence[Step]], mean: bool) -> dict[str | int, np.ndarray]:
    """Minus the sum of all gradients, or round by round minus the mean of those who took part."""
    tables: dict[str | int, np.ndarray] = {"b": np.zeros(3), "w": np.zeros(8)}
    for round_number in range(MOST_STEPS):
        taken = [each[round_number] for each in steps if len(each) > round_number]
        for step in taken:
            for key, gradient in flat(step.gradients):
                part = gradient / len(taken) if mean else gradient
                tables[key] = tables.get(key, np.zeros_like(part)) - part
    return tables


def flat(gradients: Gradients) -> Iterator[tuple[str | int, np.ndarray]]:
    for name, gradient in gradients.items():
        if isinstance(gradient, SelectedRows):
            yield from zip(gradient.ids.tolist(), gradient.values.astype(np.float64), strict=True)
        else:
            yield name, gradient.reshape(-1).astype(np.float64)


def held_tables(cluster: Cluster) -> dict[str | int, np.ndarray]:
    """Values on the pservers, by parameter or id."""
    held: dict[str | int, np.ndarray] = {}
    for pserver in cluster.pservers:
        assert isinstance(pserver, PserverService)
        ids, rows, _ = pserver.tables.sparse("emb").export(0, 1 << 10)
        held |= dict(zip(ids.tolist(), rows, strict=True))
    blocks = {
        placed.spec.name: cluster.pservers[ENDPOINTS.index(placed.endpoint)]
        .tables.dense(placed.spec.name)
        .read()[0]
        for placed in PLAN.blocks
    }
    held["b"], held["w"] = blocks["b"], np.concatenate([blocks["w.block0"], blocks["w.block1"]])
    return held


@pytest.fixture(autouse=True)
def everything_may_leave_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_queue, "EARLY_BYTES", 16)


@pytest.mark.parametrize("block", SOME)
@pytest.mark.parametrize("mode", MODES)
def test_no_schedule_hangs_loses_a_push_or_applies_one_twice(mode: str, block: int) -> None:
    for number in range(block, SCHEDULES, BLOCKS):
        try:
            run(mode, number)
        except BaseException as error:
            raise AssertionError(f"schedule {number} of mode {mode}: {error!r}") from error
