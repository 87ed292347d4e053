"""How large a cluster a job needs: the load of each pserver, and the least number that is enough.

    plan of S pservers, how tables are used ─▶ PserverLoad each ─▶ limits ─▶ Sizing

Three limits decide: memory, link and cores of a pserver. Each counts for the pserver that it is
tightest for, since that one holds up all others. Pure arithmetic; what the numbers rest on is said
in `footprint`, `traffic` and `costs`, and compared with real processes by
`benchmarks/size_model.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from psrt.core.errors import ConfigError
from psrt.core.specs import VIRTUAL_SHARDS
from psrt.partition.plan import PartitionPlan
from psrt.sizing.loads import PserverLoad, TrainerLoad, Workload, loads_of

PlanOf = Callable[[int], PartitionPlan]


@dataclass(frozen=True)
class Limits:
    """What one pserver has: memory, bytes a second each way on its link, and cores; and how many
    stripes it keeps a table in."""

    memory_bytes: int
    link_bytes_per_s: float
    cores: int
    stripes: int

    def used(self, load: PserverLoad) -> dict[str, float]:
        """The part of each that a pserver uses; 1 is all."""
        return {
            "memory": load.memory_bytes / self.memory_bytes,
            "network": load.link_bytes_per_s / self.link_bytes_per_s,
            "cpu": load.cpu_used(self.cores),
        }


@dataclass(frozen=True)
class Sizing:
    """`least` is how many pservers each limit asks for; empty if the number was given."""

    plan: PartitionPlan
    workload: Workload
    limits: Limits
    loads: tuple[PserverLoad, ...]
    least: dict[str, int]

    @property
    def pservers(self) -> int:
        return len(self.loads)

    @property
    def decided_by(self) -> str:
        """The limit that asks for most pservers; empty if the number was given."""
        return max(self.least, key=lambda limit: self.least[limit], default="")

    @property
    def fullest(self) -> PserverLoad:
        return max(self.loads, key=lambda load: load.memory_bytes)

    @property
    def busiest(self) -> PserverLoad:
        return max(self.loads, key=lambda load: load.link_bytes_per_s)

    @property
    def used(self) -> dict[str, float]:
        """The part of each limit that is used where it is tightest."""
        parts = [self.limits.used(load) for load in self.loads]
        return {name: max(part[name] for part in parts) for name in parts[0]}

    @property
    def trainer(self) -> TrainerLoad:
        calls = [(number, call) for number, load in enumerate(self.loads) for call in load.calls]
        return TrainerLoad(
            sum(call.up_bytes for _, call in calls),
            sum(call.down_bytes for _, call in calls),
            sum(call.per_step for _, call in calls),
            self.workload.steps_per_s,
        )


def size(plan_of: PlanOf, workload: Workload, limits: Limits, pservers: int = 0) -> Sizing:
    """`pservers` of them, or the least number whose every pserver stays within the limits.

    `plan_of(S)` is the partition plan for S pservers. Raises `ConfigError` if not even as many
    pservers as there are virtual shards are enough.
    """
    if pservers:
        return _sizing(plan_of(pservers), workload, limits, {})
    at_once = _sizing(plan_of(1), workload, limits, {}).used
    least = dict.fromkeys(at_once, 1)
    over = {limit: part for limit, part in at_once.items() if part > 1}
    if over:
        _check_possible(over, _sizing(plan_of(VIRTUAL_SHARDS), workload, limits, {}).used)
    for limit, part in over.items():
        least[limit] = _least(plan_of, workload, limits, limit, part)
    return _sizing(plan_of(max(least.values())), workload, limits, least)


def _least(plan_of: PlanOf, workload: Workload, limits: Limits, limit: str, at_once: float) -> int:
    """The least number of pservers that stay within one limit, of which one uses `at_once`.

    Begins at what that says: more pservers never lower the sum of what is needed.
    """
    numbers = range(min(VIRTUAL_SHARDS, max(2, int(at_once))), VIRTUAL_SHARDS + 1)
    return next(n for n in numbers if _sizing(plan_of(n), workload, limits, {}).used[limit] <= 1)


def _check_possible(over: Iterable[str], at_best: Mapping[str, float]) -> None:
    for limit in over:
        if at_best[limit] > 1:
            raise ConfigError(
                f"with {VIRTUAL_SHARDS} pservers, as many as there can be, one still needs "
                f"{at_best[limit]:.1f} times its {limit}.",
                hint="Fewer calls help cpu: larger steps, or a mode that makes less of them, such "
                "as geo. Otherwise have fewer trainers or rows, or give pservers more.",
            )


def _sizing(
    plan: PartitionPlan, workload: Workload, limits: Limits, least: dict[str, int]
) -> Sizing:
    loads = loads_of(plan, workload, limits.stripes)
    return Sizing(plan, workload, limits, loads, least)
