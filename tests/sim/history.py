"""One history of a scenario: its run, its verdict and its trace."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psrt.communicator.requests import known_ids
from tests.sim.cluster import SimCluster
from tests.sim.patching import simulated
from tests.sim.promises import Violation, check
from tests.sim.scenario import Scenario
from tests.sim.world import Endless, World

LONGEST_S = 300.0


@dataclass
class Verdict:
    """Result of one history: `ends` by process name, the `violation` or "", and the trace."""

    scenario: Scenario
    ends: dict[str, str]
    violation: str
    trace: list[str]
    cuts: int = 0

    @property
    def highlights(self) -> list[str]:
        return [line for line in self.trace if not line.endswith("is sent")]

    def __str__(self) -> str:
        """The history without the frames that arrived as they should."""
        ends = [f"  {name}: {end}" for name, end in sorted(self.ends.items())]
        return "\n".join(
            [str(self.scenario), *self.highlights, *ends, self.violation or "no violation"]
        )


def run(scenario: Scenario) -> Verdict:
    """Run the history of a scenario."""
    return judged(scenario, lambda world: SimCluster(world, scenario), check)


def judged(
    scenario: Scenario,
    cluster_in: Callable[[World], SimCluster],
    check: Callable[[SimCluster], None],
) -> Verdict:
    """Run the history of a cluster; `check` raises for a promise that it breaks."""
    world = World(f"{scenario.seed} {scenario.mode}")
    cluster = cluster_in(world)
    violation = ""
    with simulated(world), logged(world), _short_lists_remembered():
        try:
            world.run(cluster.has_ended, LONGEST_S)
            check(cluster)
        except (Violation, Endless, AssertionError) as error:
            violation = f"{type(error).__name__}: {error}"
        finally:
            ends = dict(cluster.ends)  # what is unwound ends, too
            world.close()
    return Verdict(scenario, ends, violation, world.trace, cluster.cuts)


@contextmanager
def logged(world: World) -> Iterator[None]:
    """Put warnings and errors of the simulated processes into the trace, instead of the log."""
    logger, notes = logging.getLogger("psrt"), _Notes(world)
    before = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [notes], False
    try:
        yield
    finally:
        logger.handlers, logger.propagate = before


class _Notes(logging.Handler):
    """Notes of the thread that made it: another one is no fiber, but of a test before this one."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world, self._thread = world, threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread != self._thread:
            return
        what = "defect" if record.exc_info else "log"
        self._world.note(f"{what}: {record.getMessage()}")


@contextmanager
def _short_lists_remembered() -> Iterator[None]:
    """Let pservers remember lists of ids that are as short as the ledger's."""
    before = known_ids.FEWEST_IDS
    known_ids.FEWEST_IDS = 1
    try:
        yield
    finally:
        known_ids.FEWEST_IDS = before
