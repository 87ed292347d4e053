"""The cluster that a job is sized for: `psrt plan --size`, `[size]` in TOML, `PSRT_SIZE_*`."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.config.settings import setting
from psrt.core.errors import ConfigError

MOST_STRIPES = 16
"""Limit of stripes on hosts with many cores: a request costs a call for each stripe it touches."""


def stripes_for(cores: int) -> int:
    """Return the default number of lock groups of a sparse table on a pserver with `cores`."""
    return max(1, min(cores, MOST_STRIPES))


@dataclass(frozen=True)
class SizeConfig:
    """A cluster to size for a job. Sizes and rates have units (64GiB, 10Gbit/s).

    Settings that are empty or 0 come from the job: rows are the heights of its tables, the batch is
    that of its data. Without a speed, only memory determines the number of pservers.
    """

    trainers: int = setting(1, "Trainers of the job.", minimum=1)
    batch: int = setting(0, "Examples of one step of one trainer; 0 = the job's.", minimum=0)
    rows: tuple[str, ...] = setting(
        (), "Rows of a table, TABLE=N (5M, 1e9); other tables have the height in the program."
    )
    ids: tuple[str, ...] = setting(
        (), "Ids of one example looked up in a table, TABLE=N; others by the data vars."
    )
    distinct: float = setting(1.0, "Distinct ids ÷ ids of a step: 0.3 for skewed ids.", minimum=0.0)
    growth: float = setting(
        1.0,
        "β of distinct ids ∝ stepsᵝ (Heaps), for mode geo: 1 = every step brings new ids.",
        minimum=0.0,
    )
    sample: int = setting(
        0, "Batches of the data on which to measure distinct ids and growth; 0 = do not.", minimum=0
    )
    steps_per_s: float = setting(0.0, "Steps per second of one trainer; 0 = unknown.", minimum=0.0)
    examples_per_s: float = setting(
        0.0, "Examples per second of one trainer, in place of steps_per_s.", minimum=0.0
    )
    pservers: int = setting(0, "Number of pservers; 0 = the fewest that suffice.", minimum=0)
    pserver_memory: str = setting("64GiB", "Memory of one pserver.")
    pserver_bandwidth: str = setting(
        "10Gbit/s", "Bandwidth of a host's link, each way; trainers have links of this speed, too."
    )
    pserver_cores: int = setting(8, "Cores of a pserver's host.", minimum=1)
    stripes: int = setting(
        0, "Lock groups of a sparse table of a pserver; 0 = one per core, at most 16.", minimum=0
    )

    def __post_init__(self) -> None:
        if not 0 < self.distinct <= 1:
            raise ConfigError(
                f"distinct is {self.distinct:g}, which is no part of the ids.",
                hint="It is above 0 and at most 1, where every id of a step stands once.",
            )
        if self.growth > 1:
            raise ConfigError(
                f"growth is {self.growth:g}: distinct ids cannot grow faster than steps.",
                hint="It is at most 1, where every step brings new ones; --sample measures it.",
            )
