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
    """A cluster on paper, and how a job would use it. Sizes and rates have units (64GiB, 10Gbit/s).

    What is empty or 0 is taken from the job: rows are the heights of its tables, the batch is that
    of its data. Without a speed only memory decides how many pservers it takes.
    """

    trainers: int = setting(1, "Trainers of the job.", minimum=1)
    batch: int = setting(0, "Examples of one step of one trainer; 0 = the job's.", minimum=0)
    rows: tuple[str, ...] = setting(
        (), "Rows a table will hold, TABLE=N (5M, 1e9); others as high as the program says."
    )
    ids: tuple[str, ...] = setting(
        (), "Ids of one example looked up in a table, TABLE=N; others as the data vars declare."
    )
    distinct: float = setting(
        1.0,
        "Part of the ids of a step that is left when each stands once: 0.3 of skewed ids.",
        minimum=0.0,
    )
    growth: float = setting(
        1.0,
        "β of distinct ids ∝ stepsᵝ (Heaps): 1 = every step brings new ones; counts in geo.",
        minimum=0.0,
    )
    sample: int = setting(
        0, "Measure distinct ids and growth on so many batches of the data; 0 = do not.", minimum=0
    )
    steps_per_s: float = setting(
        0.0, "Steps per second of one trainer; 0 = not known.", minimum=0.0
    )
    examples_per_s: float = setting(
        0.0, "The same as examples per second of one trainer.", minimum=0.0
    )
    pservers: int = setting(0, "Number of pservers; 0 = the least that are enough.", minimum=0)
    pserver_memory: str = setting("64GiB", "Memory that one pserver may take.")
    pserver_bandwidth: str = setting(
        "10Gbit/s", "What the link of a host carries, each way; trainers have the same."
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
