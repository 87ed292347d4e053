"""Histories in which the number of trainers changes, while links break and processes stand still.

The steps of all trainers are dealt again at each change, as data are. Each must be applied once.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from psrt.communicator.base import Beginning, Communicator, Position
from psrt.communicator.factory import make
from psrt.core import specs
from psrt.core.errors import ErrorCode, PsrtError
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from tests.sim.cluster import SimCluster, SimTrainer, described
from tests.sim.dealt_steps import Steps
from tests.sim.history import Verdict, judged
from tests.sim.ledger import PLAN, gradients_of, ids_of, row_of
from tests.sim.promises import Violation, check_ends, check_tables, is_beyond
from tests.sim.scenario import ProcessFault, Scenario, Strike, drawn
from tests.sim.training import CALL_TIMEOUT_S, RETAINED_BYTES, START_TIMEOUT_S, STEP_S
from tests.sim.world import Process, World

LATER = 9
"""Number of a process whose rows are never trained."""
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


class ResizedCluster(SimCluster):
    """A cluster whose trainers follow changes of their number; `sizes` has those that came."""

    def __init__(self, world: World, scenario: Scenario, changes: Sequence[Change]) -> None:
        self._changes = changes
        self.sizes = [len(scenario.steps)]
        self._processes = 100
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

    def _end_of(self, number: int, first: int) -> str:
        size = self.sizes[-1]
        try:
            while number < size:
                size = self._train(number, size)
        except PsrtError as error:
            return described(error)
        except Exception as error:
            return f"crashed: {error!r}"
        return "completed"

    def _train(self, number: int, size: int) -> int:
        """Train until the end of the job, or another number of trainers; returns that, or 0."""
        communicator, clients = self._connected(number, size)
        communicator.follow_resizes()
        try:
            self._train_all(communicator, number, size)
        except PsrtError:
            if not (resized := communicator.resized_to):
                raise
            self.world.note(f"trainer {number} of {size}: there are {resized} now")
            return resized
        finally:
            communicator.close()
            for client in clients:
                client.close()
        return 0

    def _train_all(self, communicator: Communicator, number: int, size: int) -> None:
        todo: Steps = []

        def begin(found: Beginning) -> Position:
            todo[:] = self._dealt(found, number, size)
            communicator.marks("0")
            self.world.note(f"trainer {number} of {size} has {len(todo)} steps")
            return partial(json.dumps, todo)

        communicator.begins_at(begin)
        communicator.start(START_TIMEOUT_S)
        communicator.pull_rows({"emb": ids_at(todo, 0)})
        for done, (owner, step) in enumerate(todo, 1):
            communicator.begin({"emb": ids_at(todo, done)})
            self.world.sleep(self.world.random.uniform(0, STEP_S))
            self.ledger.sent.add(row_of(owner, 0, step))
            communicator.continues_at(partial(json.dumps, todo[done:]))
            communicator.marks(str(done))
            communicator.finish(gradients_of(owner, 0, step))
        communicator.flush(CALL_TIMEOUT_S)
        self._trained.add(number)
        if len(self._trained) >= size:
            self.trained_s = min(self.trained_s, self.world.now)
        if self.scenario.ends_with_cut:
            communicator.declare_trained()
        communicator.stop(CALL_TIMEOUT_S)

    def _dealt(self, found: Beginning, number: int, size: int) -> Steps:
        """The steps of a trainer: its own, or its share of those that are left."""
        if found.positions:
            left = [tuple(each) for text in found.positions for each in json.loads(text)]
            return left[number::size]
        if found.cut:
            return [(owner, step) for owner, step in json.loads(found.position)]
        return [(number, step) for step in range(self.scenario.steps[number])]

    def _connected(self, number: int, size: int) -> tuple[Communicator, list[Client]]:
        self._processes += 1
        hello = pb.Hello(job_id="simulated", plan_hash=self.plan.hash(), trainers=size)
        hello.mode, hello.durability = specs.to_json(self.mode), self.scenario.durability
        dial = self.network.dial(self.trainers[number].process)
        clients = [Client(e, number, self._processes, dial, hello) for e in PLAN.endpoints]
        made = make(
            self.mode,
            self.plan,
            clients,
            call_timeout_s=CALL_TIMEOUT_S,
            retained_bytes=RETAINED_BYTES if self.scenario.is_durable else 0,
        )
        return made, clients


def ids_at(todo: Steps, index: int):
    """The ids of a step of a list; behind its end, of one that is never trained."""
    owner, step = todo[index] if index < len(todo) else (LATER, 0)
    return ids_of(owner, 0 if index < len(todo) else LATER, step)


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
