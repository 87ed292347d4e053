"""The ticks of a part: local cuts that go to its backup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psrt.core.clock import Clock
from psrt.pserver.checkpoints import LocalCut, LocalCuts
from psrt.pserver.decisions import DurablePoint, PserverState, point_of
from psrt.pserver.eviction import Upkeep
from psrt.pserver.serving.durable.durability import Durability
from psrt.pserver.serving.durable.part_facts import local_facts
from psrt.pserver.serving.effect_runner import EffectRunner
from psrt.pserver.tables import TableRegistry

REPLICA = "replica"
"""The consumer of changes for a backup."""

SWEEP_S = 0.02
"""Wait for a sweep under way; then a tick is put off."""


class PartSource:
    """Takes the ticks of a part that this process serves; one thread calls this."""

    def __init__(
        self,
        incarnation: int,
        runner: EffectRunner,
        tables: TableRegistry,
        upkeep: Upkeep,
        durability: Durability,
        clock: Clock,
    ) -> None:
        self.incarnation = incarnation
        self._runner, self._tables, self._upkeep = runner, tables, upkeep
        self._durability, self._clock = durability, clock
        self._cuts: LocalCuts[DurablePoint] = LocalCuts(REPLICA, tables)
        self._sent: Mapping[str, Any] = {}

    def take(self, is_full: bool) -> LocalCut[DurablePoint] | None:
        """Changes since the latest confirmed tick, or everything; None if there are none.

        Raises `DeadlineError` while a sweep is under way.
        """
        with self._upkeep.put_off(SWEEP_S):
            return self._runner.between_updates(lambda state, now: self._taken(state, now, is_full))

    def confirm(self, cut: LocalCut[DurablePoint]) -> None:
        """Record that the backup has a tick: its pushes are durable."""
        self._cuts.confirm(cut)
        self._sent = cut.facts
        self._durability.progress.confirm(cut.point, self._clock.now())

    def give_up(self, cut: LocalCut[DurablePoint]) -> None:
        """Record that the backup may lack a tick."""
        self._cuts.give_up(cut)

    def _taken(
        self, state: PserverState, now: float, is_full: bool
    ) -> LocalCut[DurablePoint] | None:
        if state.job is None or not self._cuts.can_take:
            return None
        specs = [table.spec for table in self._tables.all()]
        facts = local_facts(state, 0, self.incarnation, specs)
        facts["began_at"] = self._durability.began_at
        if facts == self._sent and not is_full:
            return None
        return self._cuts.take(facts, point_of(state, now), is_full)
