"""A model as its cluster has it now, written to a directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from psrt.core.types import Array
from psrt.executor.memory import Scope
from psrt.trainer.inputs import Job
from psrt.trainer.models import export
from psrt.trainer.models.export import RowPages
from psrt.trainer.models.finite_model import FiniteModel
from psrt.trainer.models.inference import manifest_of


class Tables(Protocol):
    """Rows of sparse tables, wherever they are."""

    @property
    def tables(self) -> Sequence[str]: ...
    def rows(self, table: str) -> RowPages:
        """Pages of ids (n,) and rows (n, width)."""
        ...


class ModelSaver:
    """Saves the model of a job, whose dense parameters are in `scope`.

    `on_nan` is that of `[trainer]`; `say` gets a warning about values that are not finite.
    """

    def __init__(
        self, job: Job, scope: Scope, tables: Tables, on_nan: str, say: Callable[[str], None]
    ) -> None:
        self._job, self._scope, self._tables = job, scope, tables
        self._on_nan, self._say = on_nan, say

    def dense(self) -> dict[str, Array]:
        """Every dense parameter, trained or not."""
        parameters = self._job.program.parameters.values()
        return {p.name: self._scope[p.name] for p in parameters if not p.sparse}

    def save(self, directory: Path) -> None:
        """Write the model, and a line about it; raises `ProgramError` NOT_FINITE by `on_nan`."""
        manifest, tables = manifest_of(self._job), self._tables
        checks = FiniteModel(self._on_nan, self._say)
        sparse = {table: partial(tables.rows, table) for table in tables.tables}
        pages = {table: partial(checks.pages, table, rows) for table, rows in sparse.items()}
        export.save(directory, manifest, checks.dense(self.dense()), pages)
        rows = sum(manifest.rows(table) for table in manifest.sparse)
        self._say(f"saved {directory}: {len(manifest.dense)} dense parameters, {rows:,} rows")
