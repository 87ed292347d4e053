"""Specs of tables, as plain frozen data: the contract between trainers and pservers.

A pserver has no access to programs: the partition plan gives it `TableSpec`s. Values of untouched
parameters are pure functions of the spec (see `psrt.kernels.tables.initialize`), so a spec also
defines the content of a table before its first update.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from psrt.core.specs.admission import DEFAULT_SCORE, Admission, Score
from psrt.core.specs.lifecycle import Growth, Lifecycle
from psrt.core.specs.optimizers import Optimizer
from psrt.core.specs.regularizers import Regularizer
from psrt.core.specs.schedules import LearningRate

# --- initializers ---


@dataclass(frozen=True)
class Constant:
    """Every element is `value`."""

    value: float = 0.0


@dataclass(frozen=True)
class Uniform:
    """Independent draws, low ≤ x ≤ high."""

    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True)
class Normal:
    """Independent draws of this mean and standard deviation."""

    mean: float = 0.0
    std: float = 1.0


@dataclass(frozen=True)
class TruncatedNormal:
    """A normal number within 2 `std` of `mean`; other draws are repeated."""

    mean: float = 0.0
    std: float = 1.0


Initializer: TypeAlias = Constant | Uniform | Normal | TruncatedNormal

# --- tables ---

VIRTUAL_SHARDS = 1024


@dataclass(frozen=True)
class DenseTableSpec:
    """One block of one dense parameter.

    `name` is unique in the job (`fc_0.w_0.block1`; a parameter of one block keeps its own name).
    `shape` is that of the parameter; the block covers elements `[offset, offset + size)` of its
    flattened form. The initial value of element i is a pure function of (`seed`, i). `regularizer`
    is applied in every update, before the optimizer. `section` is the number of a bucket: blocks of
    one bucket of a pserver travel and are updated together, buckets in parallel.
    """

    name: str
    parameter: str
    shape: tuple[int, ...]
    offset: int
    size: int
    initializer: Initializer
    optimizer: Optimizer
    learning_rate: LearningRate
    seed: int
    regularizer: Regularizer | None = None
    section: int = 0


@dataclass(frozen=True)
class SparseTableSpec:
    """One sparse table, or the part of it that one pserver holds.

    `width` is the number of weights of a row. This pserver owns virtual shards
    `[first_shard, last_shard)` of `virtual_shards`. Column c of an untouched row is a pure function
    of (`seed`, id, c). `padding_id`, if set, is a row that reads as zeros and ignores gradients.
    `regularizer` applies to the rows that are pushed. `admission` selects ids that may own a row
    (None: all), `score` weighs shows and clicks, `lifecycle` ends rows (None: never), and `growth`
    lets rows start short. `storage`, one of STORAGES, is the type of weights in memory; arithmetic
    is float32.
    """

    name: str
    width: int
    initializer: Initializer
    optimizer: Optimizer
    learning_rate: LearningRate
    seed: int
    first_shard: int = 0
    last_shard: int = VIRTUAL_SHARDS
    virtual_shards: int = VIRTUAL_SHARDS
    padding_id: int | None = None
    regularizer: Regularizer | None = None
    admission: Admission | None = None
    score: Score = DEFAULT_SCORE
    lifecycle: Lifecycle | None = None
    growth: Growth | None = None
    storage: str = "float32"

    @property
    def keeps_seen(self) -> bool:
        """True if a row stores the hour of its last push."""
        return self.lifecycle is not None and self.lifecycle.ttl_days > 0

    @property
    def keeps_counts(self) -> bool:
        """True if a row counts its shows and clicks."""
        drops_by_score = self.lifecycle is not None and self.lifecycle.delete_score > 0
        return drops_by_score or self.growth is not None


TableSpec: TypeAlias = DenseTableSpec | SparseTableSpec
