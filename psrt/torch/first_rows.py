"""Rows as a saved model without program and dense parameters, and tables that begin with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from psrt.core.specs import WarmStart, to_json
from psrt.core.types import F32, I64
from psrt.partition.plan import build_plan
from psrt.pserver.tables import TableRegistry
from psrt.pserver.warm import WarmTables
from psrt.torch.declared import DeclaredParameter
from psrt.trainer.models import Manifest, RowPages, export

PAGE_ROWS = 1 << 17

Pages = Mapping[str, Callable[[], RowPages]]


def write_rows(directory: str | Path, declared: Iterable[DeclaredParameter], pages: Pages) -> None:
    """Write pages of (ids, rows) by table as a saved model."""
    export.check_target(Path(directory))
    plan = build_plan(declared, ["all"], slice_var_up=False)
    manifest = Manifest("", "psrt", "", plan.specs_for("all"))
    export.save(Path(directory), manifest, {}, pages)


def warm_start_text(directory: str) -> str:
    """The warm start of `directory` as pservers read it, "" for none."""
    if not directory:
        return ""
    source = directory if "://" in directory else str(Path(directory).absolute())
    return to_json(WarmStart(source))


def fill_from(tables: TableRegistry, declared: Iterable[DeclaredParameter], text: str) -> None:
    """Fill new tables of this process from a warm start; those it lacks keep initial values."""
    plan = build_plan(declared, ["all"], slice_var_up=False)
    warm = WarmTables()
    warm.open(text, plan.specs_for("all"))
    for table in tables.all():
        warm.fill(table)


def fill_with(
    tables: TableRegistry, declared: Iterable[DeclaredParameter], weights: Mapping[str, F32]
) -> None:
    """Fill new tables of this process with weights (n, width) for the ids 0 … n − 1."""
    own = [each for each in declared if each.name in weights]
    with TemporaryDirectory(prefix="psrt-rows-") as place:
        directory = str(Path(place) / "rows")
        write_rows(directory, own, pages_of(weights))
        fill_from(tables, own, warm_start_text(directory))


def pages_of(weights: Mapping[str, F32]) -> Pages:
    """Pages of weights (n, width) for the ids 0 … n − 1, by table."""
    return {name: partial(_numbered, rows) for name, rows in weights.items()}


def _numbered(rows: F32) -> Iterator[tuple[I64, F32]]:
    for first in range(0, len(rows), PAGE_ROWS):
        part = rows[first : first + PAGE_ROWS]
        yield np.arange(first, first + len(part), dtype=np.int64), part


__all__ = ["PAGE_ROWS", "fill_from", "fill_with", "pages_of", "warm_start_text", "write_rows"]
