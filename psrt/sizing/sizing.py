"""Size of the cluster that a job needs: the load of each pserver, and their least number.

    plan of S pservers, how tables are used ─▶ PserverLoad each ─▶ limits ─▶ Sizing

Three limits decide: memory, link and cores of a pserver. Each is applied to the pserver that is
closest to it, since that one delays all others. Pure arithmetic; `footprint`, `traffic` and `costs`
explain the numbers, and `benchmarks/size_model` compares them with real processes.
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
    """Resources of one pserver; bytes a second on its link are each way, `stripes` per table."""

    memory_bytes: int
    link_bytes_per_s: float
    cores: int
    stripes: int

    def used(self, load: PserverLoad) -> dict[str, float]:
        """The used fraction of each limit; 1 is all."""
        return {
            "memory": load.memory_bytes / self.memory_bytes,
            "network": load.link_bytes_per_s / self.link_bytes_per_s,
            "cpu": load.cpu_used(self.cores),
        }


@dataclass(frozen=True)
class Sizing:
    """`least` pservers for each limit; empty if the number was given."""

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
        """The limit that needs most pservers; empty if the number was given."""
        return max(self.least, key=lambda limit: self.least[limit], default="")

    @property
    def fullest(self) -> PserverLoad:
        return max(self.loads, key=lambda load: load.memory_bytes)

    @property
    def busiest(self) -> PserverLoad:
        return max(self.loads, key=lambda load: load.link_bytes_per_s)

    @property
    def used(self) -> dict[str, float]:
        """The used fraction of each limit on the pserver closest to it."""
        used = [self.limits.used(load) for load in self.loads]
        return {name: max(each[name] for each in used) for name in used[0]}

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
    """The sizing for `pservers`, or for the least number of them that stays within the limits.

    `plan_of(S)` is the partition plan for S pservers. Raises `ConfigError` if as many pservers as
    virtual shards are too few.
    """
    if pservers:
        return _sizing(plan_of(pservers), workload, limits, {})
    by_one = _sizing(plan_of(1), workload, limits, {}).used
    least = dict.fromkeys(by_one, 1)
    over = {limit: used for limit, used in by_one.items() if used > 1}
    if over:
        _check_possible(over, _sizing(plan_of(VIRTUAL_SHARDS), workload, limits, {}).used)
    for limit, used in over.items():
        least[limit] = _least(plan_of, workload, limits, limit, used)
    return _sizing(plan_of(max(least.values())), workload, limits, least)


def _least(plan_of: PlanOf, workload: Workload, limits: Limits, limit: str, by_one: float) -> int:
    """The least number of pservers within one limit, of which a single pserver uses `by_one`.

    The search begins at that number: more pservers never lower the sum of their needs.
    """
    numbers = range(min(VIRTUAL_SHARDS, max(2, int(by_one))), VIRTUAL_SHARDS + 1)
    return next(n for n in numbers if _sizing(plan_of(n), workload, limits, {}).used[limit] <= 1)


def _check_possible(over: Iterable[str], at_best: Mapping[str, float]) -> None:
    for limit in over:
        if at_best[limit] > 1:
            raise ConfigError(
                f"with {VIRTUAL_SHARDS} pservers, the most there can be, one still needs "
                f"{at_best[limit]:.1f} times its {limit}.",
                hint="Fewer calls help cpu: larger steps, or a mode that makes fewer of them, such "
                "as geo. Otherwise have fewer trainers or rows, or give pservers more.",
            )


def _sizing(
    plan: PartitionPlan, workload: Workload, limits: Limits, least: dict[str, int]
) -> Sizing:
    loads = loads_of(plan, workload, limits.stripes)
    return Sizing(plan, workload, limits, loads, least)


__all__ = ["Limits", "Sizing", "size"]
