"""Tables of a job that begin with a saved source, without processes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from psrt.core.specs import (
    DenseTableSpec,
    SparseTableSpec,
    TableSpec,
    WarmRule,
    WarmStart,
    to_json,
    to_plain,
)
from psrt.partition.vshards import shard_bounds
from psrt.pserver.tables import TableRegistry
from psrt.pserver.warm import WarmTables
from psrt.trainer.models.model_dir import FORMAT, VERSION


def placed(specs: Sequence[TableSpec], pservers: int) -> list[list[TableSpec]]:
    """The tables of each pserver: near-equal blocks of dense parameters, and virtual shards."""
    shards, found = shard_bounds(pservers), []
    for index in range(pservers):
        mine: list[TableSpec] = []
        for spec in specs:
            if isinstance(spec, SparseTableSpec):
                mine.append(replace(spec, first_shard=shards[index], last_shard=shards[index + 1]))
            else:
                first, last = (spec.size * at // pservers for at in (index, index + 1))
                name = f"{spec.parameter}.block{index}"
                mine.append(replace(spec, name=name, offset=first, size=last - first))
        found.append(mine)
    return found


def tables_on(
    pservers: int, specs: Sequence[TableSpec], warm: WarmStart | None = None
) -> list[list[Any]]:
    """The tables of each of some pservers, filled by a warm start."""
    found = []
    for mine in placed(specs, pservers):
        starts, registry = WarmTables(), TableRegistry(stripes=2, hours=lambda: 480_000)
        if warm is not None:
            starts.open(to_json(warm), specs)
        registry.register(mine, prepare=starts.fill)
        found.append(registry.all())
    return found


def warm_from(source: Path, *rules: WarmRule, **fields: Any) -> WarmStart:
    return WarmStart(str(source), rules, **fields)


def rows_of(pservers: Sequence[Sequence[Any]], name: str) -> dict[int, np.ndarray]:
    """All rows of a sparse table by id."""
    found: dict[int, np.ndarray] = {}
    for table in (each for tables in pservers for each in tables if each.spec.name == name):
        cursor, is_done = 0, False
        while not is_done:
            ids, rows, cursor = table.export(cursor, 1 << 20)
            found |= dict(zip(ids.tolist(), rows, strict=True))
            is_done = cursor == 0
    return found


def values_of(pservers: Sequence[Sequence[Any]], parameter: str) -> np.ndarray:
    """The elements of a dense parameter."""
    blocks = [
        (table.spec.offset, table.read()[0])
        for tables in pservers
        for table in tables
        if isinstance(table.spec, DenseTableSpec) and table.spec.parameter == parameter
    ]
    return np.concatenate([values for _, values in sorted(blocks, key=lambda block: block[0])])


def write_model(
    directory: Path, specs: Sequence[TableSpec], pservers: Sequence[Sequence[Any]]
) -> None:
    """Write what --save writes for these tables, without a program."""
    sums: dict[str, str] = {}

    def put(name: str, values: np.ndarray) -> str:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, values)
        sums[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return name

    dense, sparse = {}, {}
    for spec in specs:
        if isinstance(spec, DenseTableSpec):
            values = values_of(pservers, spec.parameter).reshape(spec.shape)
            dense[spec.parameter] = put(f"dense/{spec.parameter}.npy", values)
            continue
        rows, pages = [*rows_of(pservers, spec.name).items()], []
        for number, some in enumerate((rows[:40], rows[40:])):
            ids = put(f"sparse/{spec.name}-{number}.ids.npy", np.array([i for i, _ in some], "i8"))
            values = put(f"sparse/{spec.name}-{number}.rows.npy", np.array([r for _, r in some]))
            pages.append({"ids": ids, "rows": values, "count": len(some)})
        sparse[spec.name] = pages
    plain = {
        "format": FORMAT,
        "version": VERSION,
        "job": "small",
        "software": "psrt",
        "program": "",
        "tables": [to_plain(spec) for spec in specs],
        "dense": dense,
        "sparse": sparse,
        "sha256": sums,
    }
    (directory / "manifest.json").write_text(json.dumps(plain))
