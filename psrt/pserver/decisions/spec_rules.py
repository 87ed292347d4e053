"""Validation of table specs: a REGISTER may come from any process.

`specs.from_json` checks kinds and field names only. Everything that a table relies on later is
checked here, so that a registered table can be created, read and updated without further checks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from psrt.core.errors import ConfigError, ErrorCode, TableError
from psrt.core.specs import (
    LAYER_WISE,
    STORAGES,
    DenseTableSpec,
    Initializer,
    Regularizer,
    SparseTableSpec,
    TableSpec,
    check_schedule,
    from_json,
    number_problems,
    optimizer_problems,
    option_problems,
)

_INT64 = range(-(1 << 63), 1 << 63)
_MAX_WIDTH = 1 << 20
_MAX_SIZE = 1 << 40
_MAX_SHARDS = 1 << 20
_MAX_BUCKETS = 1 << 10


def read_spec(text: str) -> TableSpec:
    """Parse a spec in canonical JSON; raises `ConfigError` or `TableError` unless it is usable."""
    spec = from_json(text)
    if not isinstance(spec, DenseTableSpec | SparseTableSpec):
        raise ConfigError(
            f"REGISTER holds a {type(spec).__name__}, which is not a table spec; it was refused.",
            hint="Install the same psrt release on trainers and pservers.",
        )
    problem = next(_problems(spec), "")
    if problem:
        raise TableError(
            f"table {spec.name!r} cannot be registered: {problem}.",
            code=ErrorCode.CONFIG_INVALID,
            hint="Compare with the docstrings of psrt.core.specs.",
        )
    check_schedule(spec.learning_rate)
    return spec


def _problems(spec: TableSpec) -> Iterator[str]:
    if not _is_text(spec.name):
        yield "its name is not a text"
    if not _is_int(spec.seed, _INT64):
        yield f"its seed {spec.seed!r} is not a 64-bit integer"
    yield from number_problems("initializer", spec.initializer, Initializer)
    yield from optimizer_problems(spec.optimizer)
    if spec.regularizer is not None:
        yield from number_problems("regularizer", spec.regularizer, Regularizer)
    if isinstance(spec, DenseTableSpec):
        yield from _block_problems(spec)
    else:
        yield from _rows_problems(spec)


def _block_problems(spec: DenseTableSpec) -> Iterator[str]:
    if not isinstance(spec.shape, tuple) or not all(
        _is_int(n, range(1, _MAX_SIZE)) for n in spec.shape
    ):
        yield f"its shape {spec.shape!r} is not a list of positive whole numbers"
        return
    if not _is_int(spec.size, range(1, _MAX_SIZE)) or not _is_int(spec.offset, range(_MAX_SIZE)):
        yield f"it covers {spec.size!r} elements from {spec.offset!r}"
        return
    if spec.offset + spec.size > math.prod(spec.shape):
        yield (
            f"elements {spec.offset} to {spec.offset + spec.size} are outside a parameter of "
            f"shape {spec.shape}"
        )
    if not _is_int(spec.section, range(_MAX_BUCKETS)):
        yield f"its section is {spec.section!r}"
    if isinstance(spec.optimizer, LAYER_WISE) and spec.size < math.prod(spec.shape):
        yield (
            f"{type(spec.optimizer).__name__} takes norms of a whole parameter, and the block is "
            f"{spec.size} elements of one of shape {spec.shape}"
        )


def _rows_problems(spec: SparseTableSpec) -> Iterator[str]:
    if not _is_int(spec.width, range(1, _MAX_WIDTH)):
        yield f"its width is {spec.width!r}"
    if spec.storage not in STORAGES:
        yield f"its storage {spec.storage!r} is none of {', '.join(STORAGES)}"
    if not _is_int(spec.virtual_shards, range(1, _MAX_SHARDS)):
        yield f"it has {spec.virtual_shards!r} virtual shards"
        return
    shards = range(spec.virtual_shards + 1)
    if not _is_int(spec.first_shard, shards) or not _is_int(spec.last_shard, shards):
        yield f"it holds virtual shards {spec.first_shard!r} to {spec.last_shard!r}"
        return
    if spec.first_shard >= spec.last_shard:
        yield f"its virtual shards, {spec.first_shard} to {spec.last_shard}, are none"
    if spec.padding_id is not None and not _is_int(spec.padding_id, _INT64):
        yield f"its padding id {spec.padding_id!r} is not a 64-bit integer"
    yield from option_problems(spec, spec.width)


def _is_text(value: object) -> bool:
    """Return True if protobuf can encode it: JSON may contain half of a surrogate pair."""
    return isinstance(value, str) and value.encode("utf-8", "ignore").decode() == value != ""


def _is_int(value: object, allowed: range) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in allowed
