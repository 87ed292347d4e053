"""Histories in which the number of trainers changes, while links break and processes stand still.

The steps of all trainers are dealt again at each change, as data are. Each must be applied once.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from psrt.communicator.base import Beginning
from psrt.core.errors import ErrorCode, PsrtError
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from tests.sim.cluster import SimCluster, SimTrainer, described
from tests.sim.dealt_steps import Steps
from tests.sim.dealt_training import DealtCluster
from tests.sim.history import Verdict, judged
from tests.sim.ledger import PLAN, row_of
from tests.sim.promises import Violation, check_ends, check_tables, is_beyond
from tests.sim.scenario import ProcessFault, Scenario, Strike, drawn
from tests.sim.training import CALL_TIMEOUT_S
from tests.sim.world import Process, World

MOST_TRAINERS = 4
MOST_ATTEMPTS = 5
BACK_S = 0.5
"""Seconds in which trainers have joined again after a change; a kill before may end the job."""


@dataclass(frozen=True)
class Change:
    """Somebody asks for `trainers` trainers, `after_s` after the change before."""

    after_s: float
    trainers: int


def drawn_changes(seed: int, mode: str) -> tuple[Scenario, tuple[Change, ...]]:
    """A scenario without kills, and changes of its number of trainers."""
    other, draw = drawn(seed, mode, pservers_die=False), random.Random(f"changes {seed} {mode}")
    pauses = [each for each in other.strikes if each.fault is ProcessFault.PAUSE]
    changes = [
        Change(round(draw.uniform(0.01, 0.15), 4), draw.randint(1, MOST_TRAINERS))
        for _ in range(draw.choice([1, 1, 2, 3]))
    ]
    steps = tuple(draw.randint(5, 40) for _ in other.steps)
    scenario = replace(
        other,
        steps=steps,
        strikes=tuple(pauses),
        restarts=0,
        joins_s=tuple(0.0 for _ in steps),
        failing_syncs=(),
        cuts_in_a_row=1,
    )
    return scenario, tuple(changes)


def durable_changes(
    seed: int, mode: str, has_deltas: bool, are_killed: bool
) -> tuple[Scenario, tuple[Change, ...]]:
    """Changes of a durable job, as `drawn_changes`; pservers `are_killed`, and started again."""
    (other, changes), draw = drawn_changes(seed, mode), random.Random(f"kills {seed} {mode}")
    kills = [
        Strike(
            round(draw.uniform(0.2, 1.2), 4),
            ProcessFault.KILL,
            f"pserver {draw.randrange(2)}",
            round(draw.uniform(0.1, 1), 2),
        )
        for _ in range(draw.choice([1, 1, 2]) if are_killed else 0)
    ]
    return (
        replace(
            other,
            is_durable=True,
            has_deltas=has_deltas,
            strikes=(*other.strikes, *kills),
            steps=tuple(count + 20 for count in other.steps),
        ),
        changes,
    )


def run_changes(scenario: Scenario, changes: Sequence[Change]) -> Verdict:
    """Run a history with changes of the number of trainers."""

    def cluster_in(world: World) -> SimCluster:
        return ResizedCluster(world, scenario, changes)

    return judged(scenario, cluster_in, _check)


class ResizedCluster(DealtCluster):
    """A cluster whose trainers follow changes of their number; `sizes` has those that came."""

    def __init__(self, world: World, scenario: Scenario, changes: Sequence[Change]) -> None:
        self._changes = changes
        self.sizes = [len(scenario.steps)]
        self.processes = 100
        self._changing_s: list[tuple[float, float]] = []  # from a request until trainers are back
        self._trained: set[int] = set()
        self._is_asking = True
        super().__init__(world, scenario)
        self.world.at(self.world.now, self._ask_for_changes)

    def has_ended(self) -> bool:
        """True once all processes have ended, and the operator will start no others."""
        return not self._is_asking and super().has_ended()

    @property
    def survives(self) -> bool:
        """True if the job must complete: no pserver was killed during a change, or beyond help."""
        killed = [each.killed_s for each in self.pservers]
        was_hit = any(first <= each <= last for each in killed for first, last in self._changing_s)
        return not was_hit and not any(is_beyond(self, each) for each in self.pservers)

    def _ask_for_changes(self) -> None:
        process = Process("operator")

        def main() -> None:
            for change in self._changes:
                self.world.sleep(change.after_s)
                if not self._change(process, change.trainers):
                    break
            self._is_asking = False

        self.world.spawn(process, "main", main)

    def _change(self, process: Process, trainers: int) -> bool:
        """Ask until the number has changed or is refused; False if nobody answers."""
        asked_s = self.world.now
        for _ in range(MOST_ATTEMPTS):
            client = Client(PLAN.endpoints[0], 0, 1, self.network.dial(process), pb.Hello())
            try:
                header = pb.Header(cut=pb.Cut(trainers=trainers))
                client.call(Method.CHECKPOINT, header=header, timeout_s=CALL_TIMEOUT_S)
            except PsrtError as error:
                self.world.note(f"{trainers} trainers: {described(error)}")
                self._changing_s.append((asked_s, self.world.now + BACK_S))
                if error.code is ErrorCode.CUT_GIVEN_UP:
                    return True
                if "already" not in error.message:
                    continue
            finally:
                client.close()
            self._changing_s.append((asked_s, self.world.now + BACK_S))
            self._start_missing(trainers)
            return True
        return False

    def _start_missing(self, trainers: int) -> None:
        self.world.note(f"the job goes on with {trainers} trainers")
        before = self.sizes[-1]
        if trainers != before:
            self._trained.clear()
        self.sizes.append(trainers)
        for number in range(before, trainers):
            trainer = SimTrainer(number, Process(""))
            self.trainers[number : number + 1] = [trainer]
            self.ends.pop(f"trainer {number}", None)
            self._start_trainer(trainer)

    def _train(self, number: int, first: int) -> None:
        size = self.sizes[-1]
        while number < size:
            size = self._train_as(number, size)

    def stops(self, number: int) -> None:
        """A trainer begins to stop: it trains no more, unless the number changes."""
        self._trained.add(number)
        if len(self._trained) >= self.sizes[-1]:
            self.trained_s = min(self.trained_s, self.world.now)

    def _dealt(self, found: Beginning, number: int, trainers: int) -> Steps:
        """The steps of a trainer: its own, or its share of those that are left."""
        if found.cut:
            return super()._dealt(found, number, trainers)
        return [(number, step) for step in range(self.scenario.steps[number])]


def _check(cluster: SimCluster) -> None:
    """Raise `Violation` unless every promise holds."""
    assert isinstance(cluster, ResizedCluster)
    trained = {end for name, end in cluster.ends.items() if name.startswith("trainer")}
    beyond = any(is_beyond(cluster, each) for each in cluster.pservers)
    check_ends(cluster, trained, cluster.scenario.is_gentle and cluster.survives and not beyond)
    if beyond:
        return
    cluster.ledger.trainers = max(cluster.sizes)
    if trained == {"completed"}:
        counts = enumerate(cluster.scenario.steps)
        every = {row_of(trainer, 0, step) for trainer, n in counts for step in range(n)}
        if cluster.ledger.sent != every:
            raise Violation(f"steps were left out: {sorted(every - cluster.ledger.sent)}")
        cluster.ledger.acknowledged = every
    check_tables(cluster)
