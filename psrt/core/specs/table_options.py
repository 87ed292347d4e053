"""Options of a sparse table in addition to its shape and optimizer: plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.core.errors import ConfigError
from psrt.core.specs.admission import DEFAULT_SCORE, Admission, Score
from psrt.core.specs.lifecycle import Growth, Lifecycle
from psrt.core.specs.policy_rules import option_problems

STORAGES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class TableOptions:
    """Options with the fields of `psrt.core.specs.SparseTableSpec`; see docs/reference/tables.md.

    Pservers apply them. A trainer without pservers keeps every row that it updates, whole and in
    float32. Illegal options raise `ConfigError`.
    """

    admission: Admission | None = None
    score: Score = DEFAULT_SCORE
    lifecycle: Lifecycle | None = None
    growth: Growth | None = None
    storage: str = "float32"

    def __post_init__(self) -> None:
        problem = next(option_problems(self), "")
        if not problem and self.storage not in STORAGES:
            problem = f"its storage {self.storage!r} is none of {', '.join(STORAGES)}"
        if problem:
            raise ConfigError(
                f"options of a sparse table were refused: {problem}.",
                hint="docs/reference/tables.md lists all options and their limits.",
            )


DEFAULT_OPTIONS = TableOptions()
