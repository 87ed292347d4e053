"""Histories in which a job is ended and started again from its cuts, with other processes.

The steps of all trainers are dealt again if their number changes, as data are. Whatever an attempt
loses, the cut that the next one begins with has its steps once, and the others are trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from psrt.coordinator.retention import Retention
from psrt.pserver.checkpoints import SavedCut, Settings, complete_cuts, find_cut
from tests.sim.attempt import ANEW, EARLIER, Attempt, Repeated
from tests.sim.backups import is_backed_up
from tests.sim.cluster import SimCluster, SimPserver, SimTrainer
from tests.sim.cuts import LOST
from tests.sim.dealt_steps import Steps, all_steps, left_to, share_of
from tests.sim.dealt_training import DealtCluster
from tests.sim.history import Verdict, judged
from tests.sim.promises import Violation, held_by
from tests.sim.scenario import ALL_MODES, Scenario, Strike
from tests.sim.whole_cuts import Content, Doubts, check_content, content_of, plan_on
from tests.sim.world import MOST_SWITCHES, Process, World
from tests.support.geo import with_add

PAUSE_S = 1.0
"""Seconds between two attempts."""
PATIENCE_S = 3.0
"""Seconds after which nobody waits any more for pservers whose trainers have ended."""


def run_attempts(scenario: Scenario) -> Verdict:
    """Run a history with several attempts."""
    assert isinstance(scenario, Repeated)
    return judged(scenario, lambda world: AttemptsCluster(world, scenario), check)


class AttemptsCluster(DealtCluster):
    """The processes of one attempt after another, over one disk.

    `failures` are the ends of processes that no error of the catalogue may have, of all attempts.
    `doubts` are steps of trainers in Geo that were killed, and begun anew.
    """

    def __init__(self, world: World, scenario: Repeated) -> None:
        self.attempts, self.number = scenario.attempts, -1
        self.steps = all_steps(scenario.steps)
        self.failures: list[str] = []
        self.doubts = Doubts()
        self.has_replaced = False
        self._is_between = False
        self._over_s = math.inf  # when the last trainer of this attempt was over
        self._reported = 0
        self._left = set(self.steps)  # at the beginning of this attempt
        self._began_at: tuple[str, ...] = ()  # positions of the cut it began with; () = anew
        self._checked: set[int] = set()
        super().__init__(world, scenario)

    @property
    def attempt(self) -> Attempt:
        return self.attempts[self.number]

    def has_ended(self) -> bool:
        """True once the last attempt has ended; begins the next one before that."""
        if self._is_between or not (super().has_ended() or self._has_been_awaited()):
            return False
        if self.number == len(self.attempts) - 1:
            return True
        self._end(self.number)
        return False

    def _has_been_awaited(self) -> bool:
        """True if nobody waits any longer for the end of an attempt, which is not the last.

        Its trainers have ended some time ago; or pservers with backups were killed one after the
        other, so that a part of the job may be lost.
        """
        if self.number == len(self.attempts) - 1:
            return False
        if not all(trainer.is_over for trainer in self.trainers):
            self._over_s = self.world.now
        is_tired = self.scenario.has_backups and self.world.switches > MOST_SWITCHES / 2
        return is_tired or self.world.now > self._over_s + PATIENCE_S

    # --- attempts --------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start all processes of the next attempt."""
        self._is_between, self.number = False, self.number + 1
        attempt, now = self.attempt, self.world.now
        self.world.note(f"attempt {self.number} begins{attempt}")
        self.world.switches, self._over_s = 0, math.inf
        self.mode = ALL_MODES[attempt.mode]
        plan = plan_on(attempt.pservers)
        self.plan = with_add(plan) if self.is_geo else plan
        self.pservers = [SimPserver(each, Process(each)) for each in plan.endpoints]
        self.trainers = [SimTrainer(n, Process("")) for n in range(len(attempt.joins_s))]
        self.ends.clear()
        self.stopping.clear()
        self.trained_s = math.inf
        for pserver in self.pservers:
            self._start_pserver(pserver)
        for trainer, after_s in zip(self.trainers, attempt.joins_s, strict=True):
            self._later(after_s, partial(self._start_trainer, trainer))
        for after_s in attempt.cuts_s:
            self._later(after_s, self._ask_for_a_cut)
        for strike in attempt.strikes:
            role, number = strike.name.split()
            if int(number) < len(self.pservers if role == "pserver" else self.trainers):
                self._later(strike.at_s, partial(self._strike, strike))
        if attempt.ends_s:
            self.world.at(now + attempt.ends_s, partial(self._end, self.number))

    def _later(self, after_s: float, action: Callable[[], None]) -> None:
        """Do something in this attempt, unless it has ended by then."""
        mine = self.number

        def act() -> None:
            if self.number == mine and not self._is_between:
                action()

        self.world.at(self.world.now + after_s, act)

    def _end(self, number: int) -> None:
        """Kill all that runs of an attempt, check its cuts, and begin the next one later."""
        if number != self.number or self._is_between:
            return
        self._is_between = True
        self._fail_if_ends_are_wrong()
        self.world.note(f"attempt {number} ends")
        for process in [each.process for each in self.pservers]:
            self.world.kill(process)
        for process in [each.process for each in self.trainers]:
            self.world.kill(process)
        if self.attempt.loses_power:
            self.disk.restart()
        self.check_cuts()
        self.world.at(self.world.now + PAUSE_S, self._start)

    def _fail_if_ends_are_wrong(self) -> None:
        self.has_replaced |= any(trainer.starts > 1 for trainer in self.trainers)
        self.failures += [
            f"{name} {end}"
            for name, end in self.ends.items()
            if end.startswith(("INTERNAL", "crashed"))
        ]

    def check_cuts(self) -> None:
        """Raise `AssertionError` unless each complete cut has the steps before its positions."""
        numbers = complete_cuts(self.directory("check"))
        newest = max(numbers, default=0)
        assert newest >= self._reported, f"cut {self._reported} was complete, and is lost"
        for number in sorted(set(numbers) - self._checked):
            cut = find_cut(self.directory("check"), str(number))
            self.doubts.in_part |= self._given_up(cut)
            check_content(
                f"cut {number}",
                content_of(cut, self.is_geo),
                set(self.steps) - self._left_at(cut),
                self.is_geo,
                is_even=not self.has_replaced,
                doubts=self.doubts,
            )
            self._checked.add(number)
        self.cuts = len(self._checked)

    def _left_at(self, cut: SavedCut) -> set[tuple[int, int]]:
        """The steps behind the positions of a cut."""
        kept = [left_to(at, n, cut.trainers, self.steps) for n, at in enumerate(cut.positions)]
        return {step for steps in kept for step in steps}

    def _given_up(self, cut: SavedCut) -> set[tuple[int, int]]:
        """The shares of trainers that were lost: the job goes on without what they had not read."""
        begun, trainers = self._began_at, cut.trainers
        lost = [number for number, at in enumerate(cut.positions) if at == LOST]
        if len(begun) in (0, trainers):
            kept = [left_to(begun[n] if begun else "", n, trainers, self.steps) for n in lost]
        else:
            kept = [share_of(begun, n, trainers, self.steps) for n in lost]
        return {step for steps in kept for step in steps}

    def cut_reported(self, number: int) -> None:
        self._reported = max(self._reported, number)

    # --- what attempts have of their own ---------------------------------------------------------

    def _start_pserver(self, pserver: SimPserver) -> None:
        if pserver in self.pservers and not self._is_between:
            super()._start_pserver(pserver)

    def _strike(self, strike: Strike) -> None:
        """Let a fault strike; in the last attempt it kills a pserver once another has its tables.

        The job must complete then.
        """
        if self.number == len(self.attempts) - 1:
            pserver = self.pservers[int(strike.name.split()[1])]
            if not is_backed_up(self, pserver):
                self.world.note(f"{strike.name} has no backup yet, and is left alone")
                return
        super()._strike(strike)

    def _start_trainer(self, trainer: SimTrainer) -> None:
        if trainer in self.trainers and not self._is_between:
            super()._start_trainer(trainer)

    def _cut_settings(self, owner: str) -> Settings:
        return replace(super()._cut_settings(owner), retention=Retention(self.attempt.keeps))

    def _resumed(self, pserver: SimPserver, is_recovered: bool) -> SavedCut | None:
        """The cut that the flags of the attempt name, as each process finds it."""
        directory = self.directory(pserver.endpoint)
        numbers = complete_cuts(directory)
        if self.attempt.begins == ANEW or not numbers:
            self._left, self._began_at = set(self.steps), ()
            return None
        if not is_recovered and pserver.starts == 1:
            index = -2 if self.attempt.begins == EARLIER and len(numbers) > 1 else -1
            pserver.resumed = numbers[index]
        if self.attempt.begins == EARLIER and not pserver.resumed:
            return None  # there was no cut when the first process was started
        which = str(pserver.resumed) if self.attempt.begins == EARLIER else "latest"
        found = find_cut(directory, which)
        self.world.note(f"{pserver.endpoint} has the flag of cut {found.number}")
        if not is_recovered and pserver.starts == 1:
            self._left, self._began_at = self._left_at(found), tuple(found.positions)
        return found

    def cuts_of_backups(self, pserver: SimPserver) -> tuple[Settings | None, SavedCut | None]:
        return self._cut_settings(pserver.endpoint), self._resumed(pserver, is_recovered=False)

    def held(self) -> Content:
        """Content of all pservers in the end."""
        return Content(*held_by(self))

    # --- trainers --------------------------------------------------------------------------------

    def _train(self, number: int, first: int) -> None:
        self._train_as(number, len(self.trainers), is_successor=first > 0)

    def succeeds(self, todo: Steps) -> None:
        """In Geo a successor begins anew: what its predecessor had pushed counts once more.

        What that held of steps before the cut, and had not pushed, is lost.
        """
        if self.is_geo:
            self.doubts.repeated.update(todo)
            self.doubts.in_part |= set(self.steps) - self._left


def check(cluster: SimCluster) -> None:
    """Raise `Violation` or `AssertionError` unless every promise holds."""
    assert isinstance(cluster, AttemptsCluster)
    cluster._fail_if_ends_are_wrong()
    defects = [line for line in cluster.world.trace if "  defect: " in line]
    if found := [*defects, *cluster.failures]:
        raise Violation("; ".join(found))
    if set(cluster.ends.values()) != {"completed"}:
        raise Violation(f"the last attempt, which survives, did not complete: {cluster.ends}")
    cluster._checked.clear()  # bases of older ones may be gone
    cluster.check_cuts()
    check_content(
        "the job",
        cluster.held(),
        set(cluster.steps),
        cluster.is_geo,
        is_even=not cluster.has_replaced,
        doubts=cluster.doubts,
    )
