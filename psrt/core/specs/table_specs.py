"""What a pserver must know about tables, as plain frozen data: the contract between rooms.

A pserver knows no programs; the partition plan hands it `TableSpec`s. Every spec has one canonical
JSON form (`to_json`), used on the wire, in the plan hash, in manifests and in conflict messages.
Values of untouched parameters are pure functions of the spec (see
`psrt.kernels.tables.initialize`), so a spec also says what a table holds before its first update.
Modes, schedules, optimizers and regularizers have files of their own; everybody imports them from
here.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from psrt.core.errors import ConfigError
from psrt.core.specs.admission import (
    DEFAULT_SCORE,
    Admission,
    CountFilter,
    Probability,
    Score,
    ShowClick,
)
from psrt.core.specs.ctr_optimizers import CtrAdagrad, CtrAdam, CtrSgd, CtrSharedAdam, CtrStdAdagrad
from psrt.core.specs.lifecycle import Growth, Lifecycle
from psrt.core.specs.modes import MODES, Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync
from psrt.core.specs.optimizers import (
    LAYER_WISE,
    SHARED_STATE,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Add,
    DecayedAdagrad,
    Ftrl,
    Lamb,
    LarsMomentum,
    Momentum,
    Optimizer,
    RmsProp,
    Sgd,
    moves_all_rows,
    scales_by_shows,
    without_show_scale,
)
from psrt.core.specs.regularizers import L1Decay, L2Decay, Regularizer
from psrt.core.specs.schedules import (
    ConstantRate,
    CosineDecay,
    ExponentialDecay,
    InverseTimeDecay,
    LearningRate,
    NaturalExpDecay,
    NoamDecay,
    PiecewiseDecay,
    PolynomialDecay,
    Warmup,
)
from psrt.core.specs.table_options import DEFAULT_OPTIONS, STORAGES, TableOptions

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
    """A normal number within 2 `std` of `mean`: others are drawn again."""

    mean: float = 0.0
    std: float = 1.0


Initializer: TypeAlias = Constant | Uniform | Normal | TruncatedNormal

# --- tables ---

VIRTUAL_SHARDS = 1024


@dataclass(frozen=True)
class DenseTableSpec:
    """One block of one dense parameter.

    `name` is unique in the job (`fc_0.w_0.block1`; a parameter of one block keeps its own name);
    `shape` is the whole parameter's; the block covers elements `[offset, offset + size)` of its
    flattened form. Element i of the parameter starts at a pure function of (`seed`, i).
    `regularizer` counts in every update, before the optimizer. Blocks of one `section` of a pserver
    travel and are updated together, those of several beside each other.
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
    """One sparse table, or the share of it that one pserver holds.

    `width` is the number of weights of a row. This pserver owns virtual shards
    `[first_shard, last_shard)` of `virtual_shards`. Column c of an untouched row is a pure function
    of (`seed`, id, c). `padding_id`, when set, is a row that reads as zeros and ignores gradients.
    `regularizer` counts for the rows that are pushed. `admission` says which ids may own a row,
    None all; `score` what an id's shows and clicks are worth; `lifecycle` when rows end, None
    never; `growth`, when set, lets rows start short. `storage` is how weights lie in memory, one
    of STORAGES; they are computed with in float32.
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
        """Whether a row says in which hour it was pushed last."""
        return self.lifecycle is not None and self.lifecycle.ttl_days > 0

    @property
    def keeps_counts(self) -> bool:
        """Whether a row counts its shows and clicks."""
        drops_by_score = self.lifecycle is not None and self.lifecycle.delete_score > 0
        return drops_by_score or self.growth is not None


TableSpec: TypeAlias = DenseTableSpec | SparseTableSpec

# --- canonical form ---

_ALIASES = (
    *(Initializer, LearningRate, Optimizer, Regularizer, Admission),
    *(TableSpec, CommunicationMode),
)
_PARTS = (Score, Lifecycle, Growth, TableOptions)
_KINDS: dict[str, type] = {
    cls.__name__: cls for cls in (*(cls for alias in _ALIASES for cls in get_args(alias)), *_PARTS)
}


def to_plain(spec: Any) -> Any:
    """Dataclasses become dicts with a `kind`, tuples become lists; other values stay."""
    if dataclasses.is_dataclass(spec) and not isinstance(spec, type):
        fields = {f.name: to_plain(getattr(spec, f.name)) for f in dataclasses.fields(spec)}
        return {"kind": type(spec).__name__, **fields}
    if isinstance(spec, list | tuple):
        return [to_plain(item) for item in spec]
    return spec


def from_plain(plain: Any, levels: int = 32) -> Any:
    """Inverse of `to_plain` (lists become tuples), for what is nested at most `levels` deep.

    Raises `ConfigError` for an unknown kind or field: what arrives here may come from a stranger.
    """
    if not isinstance(plain, dict | list):
        return plain
    if levels == 0:
        raise ConfigError("spec is nested deeper than any that psrt has")
    if isinstance(plain, list):
        return tuple(from_plain(item, levels - 1) for item in plain)
    kind = plain.get("kind")
    cls = _KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        named = repr(kind) if isinstance(kind, str) else f"of type {type(kind).__name__}"
        raise ConfigError(f"spec of unknown kind {named}")
    fields = {
        name: from_plain(value, levels - 1) for name, value in plain.items() if name != "kind"
    }
    try:
        return cls(**fields)
    except TypeError as error:
        raise ConfigError(f"spec {cls.__name__}: {error}") from error


def to_json(spec: Any) -> str:
    """The canonical text: sorted keys, no blanks; equal specs give equal text."""
    return json.dumps(to_plain(spec), sort_keys=True, separators=(",", ":"))


def from_json(text: str) -> Any:
    """Inverse of `to_json`; raises `ConfigError` on anything that is not a spec."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"spec is not JSON: {error}") from error
    return from_plain(plain)


def differences(ours: Any, theirs: Any) -> str:
    """The fields in which two specs differ, `name: ours != theirs`, for conflict messages."""
    if type(ours) is not type(theirs):
        return f"kind: {type(ours).__name__} != {type(theirs).__name__}"
    pairs = (
        (f.name, getattr(ours, f.name), getattr(theirs, f.name)) for f in dataclasses.fields(ours)
    )
    return "; ".join(f"{name}: {a!r} != {b!r}" for name, a, b in pairs if a != b)


__all__ = [
    "DEFAULT_OPTIONS",
    "LAYER_WISE",
    "MODES",
    "SHARED_STATE",
    "STORAGES",
    "VIRTUAL_SHARDS",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Add",
    "Admission",
    "Async",
    "CommunicationMode",
    "Constant",
    "ConstantRate",
    "CosineDecay",
    "CountFilter",
    "CtrAdagrad",
    "CtrAdam",
    "CtrSgd",
    "CtrSharedAdam",
    "CtrStdAdagrad",
    "DecayedAdagrad",
    "DenseTableSpec",
    "ExponentialDecay",
    "Ftrl",
    "Geo",
    "Growth",
    "HalfAsync",
    "Initializer",
    "InverseTimeDecay",
    "L1Decay",
    "L2Decay",
    "Lamb",
    "LarsMomentum",
    "LearningRate",
    "Lifecycle",
    "Momentum",
    "NaturalExpDecay",
    "NoamDecay",
    "Normal",
    "Optimizer",
    "PiecewiseDecay",
    "PolynomialDecay",
    "Probability",
    "Regularizer",
    "RmsProp",
    "Score",
    "Sgd",
    "ShowClick",
    "SparseTableSpec",
    "Ssp",
    "Sync",
    "TableOptions",
    "TableSpec",
    "TruncatedNormal",
    "Uniform",
    "Warmup",
    "differences",
    "from_json",
    "from_plain",
    "moves_all_rows",
    "scales_by_shows",
    "to_json",
    "to_plain",
    "without_show_scale",
]
