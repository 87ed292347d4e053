"""Facts of a model as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.cli.models.facts import DenseFacts, RowFacts
from psrt.core.columns import aligned

_SHOWN_VALUES = 4


def lines_of(dense: Sequence[DenseFacts], tables: Sequence[RowFacts]) -> list[str]:
    """A table of the tables, one of the dense parameters, then rows."""
    lines: list[str] = []
    if tables:
        lines += ["", *aligned([_TABLE_HEADS, *map(_table_row, tables)])]
    if dense:
        lines += ["", *aligned([_DENSE_HEADS, *map(_dense_row, dense)])]
    for table in tables:
        if table.top:
            rows = [_row(id_, norm, row) for id_, norm, row in table.top]
            lines += ["", f"largest rows of {table.name}", *aligned(rows)]
    return lines


def row_line(table: str, id_: int, row: Sequence[float] | None) -> str:
    """The row of one id, or that it has none of its own."""
    if row is None:
        return f"{table} {id_}: never trained; it has the initial values of its id"
    return f"{table} {id_}: {' '.join(f'{value:g}' for value in row)}"


_TABLE_HEADS = ("table", "rows", "width", "mean norm", "largest norm", "zero rows", "not finite")
_DENSE_HEADS = ("parameter", "shape", "norm", "smallest", "largest", "not finite")


def _table_row(facts: RowFacts) -> tuple[str, ...]:
    return (
        facts.name,
        f"{facts.rows:,}",
        str(facts.width),
        f"{facts.mean_norm:.4g}",
        f"{facts.largest_norm:.4g}",
        f"{facts.zero_rows:,}",
        f"{facts.not_finite_rows:,}",
    )


def _dense_row(facts: DenseFacts) -> tuple[str, ...]:
    shape = " × ".join(map(str, facts.shape))
    numbers = (facts.norm, facts.smallest, facts.largest)
    shown = ("-" if number is None else f"{number:.4g}" for number in numbers)
    return facts.name, shape, *shown, "-" if facts.not_finite is None else str(facts.not_finite)


def _row(id_: int, norm: float, row: Sequence[float]) -> tuple[str, ...]:
    values = [f"{value:.4g}" for value in row[:_SHOWN_VALUES]]
    return f"  {id_}", f"{norm:.4g}", *values, "…" if len(row) > _SHOWN_VALUES else ""
