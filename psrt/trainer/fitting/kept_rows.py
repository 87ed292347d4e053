"""Rows of the tables of a cluster, kept after its pservers have ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from psrt.core.errors import ProgramError
from psrt.core.types import F32, I64
from psrt.graph.program import Program
from psrt.partition.plan import build_plan
from psrt.trainer.models import RowPages, SavedTable

Pages = Sequence[tuple[I64, F32]]


class KeptRows:
    """A source of rows: `pages` (ids (n,), rows (n, width)) by table, initial values otherwise."""

    def __init__(self, program: Program, pages: Mapping[str, Pages]) -> None:
        self._pages = pages
        specs = build_plan(program.parameters.values(), ["here"]).sparse
        self._tables = {s.name: SavedTable(s, pages[s.name]) for s in specs if s.name in pages}

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Return rows (n, width) of any ids (n,) of each table."""
        for name in wanted:
            if name not in self._tables:
                raise ProgramError(
                    f"The rows of {name} are not here: trainer 0 keeps those of a cluster.",
                    hint="Predict with the result of trainer 0, or with the model that it saves.",
                )
        return {name: self._tables[name].read(ids) for name, ids in wanted.items()}

    def pages(self) -> dict[str, Callable[[], RowPages]]:
        """Return the pages of each table, from the first."""
        return {name: partial(iter, pages) for name, pages in self._pages.items()}
