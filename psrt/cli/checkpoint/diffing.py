"""`psrt checkpoint diff`: how far the parameters of two cuts are apart."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import click

from psrt.cli import results
from psrt.cli.checkpoint import contents
from psrt.cli.progress import progress
from psrt.core.columns import aligned
from psrt.pserver.checkpoints import SavedCut, find_cut
from psrt.pserver.saved import TableDifference, cut_state, differences, open_cut_at
from psrt.storage.locate import directory_at

_HEADS = (
    *("parameter", "kind", "shape", "added", "removed", "changed", "in both"),
    *("largest", "mean", "norm"),
)

_EPILOG = """\b
Examples:
  psrt checkpoint diff checkpoints 3 latest          two cuts of one directory
  psrt checkpoint diff checkpoints#3 other#7         of two directories
  psrt checkpoint diff checkpoints other --json      the newest of each
"""


@click.command("diff", epilog=_EPILOG)
@click.argument("sources", nargs=-1, required=True, metavar="DIR A B | DIR[#A] DIR[#B]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def diff(*, sources: tuple[str, ...], as_json: bool) -> None:
    """Show how parameters differ between two cuts.

    The table has rows of sparse tables, and elements of dense parameters, that were added, removed
    and changed. largest and mean are those of the absolute change of a weight, over all weights
    that both cuts have; norm is the Euclidean norm of the change. Optimizer state is not compared.
    The cuts may be of jobs with different numbers of pservers.
    """
    before, after = _cuts(sources)
    with progress("comparing", contents.size_bytes(before) + contents.size_bytes(after)) as advance:
        found = list(differences(cut_state(before), cut_state(after), advance))
    if as_json:
        names = {"before": _plain(before), "after": _plain(after)}
        results.write(
            json.dumps(names | {"parameters": [_finite(each) for each in found]}, indent=1)
        )
        return
    results.write(f"from {_name(before)} to {_name(after)}\n")
    results.write("\n".join(aligned([_HEADS, *map(_row, found)], left=(0, 1, 2))))


def _cuts(sources: tuple[str, ...]) -> tuple[SavedCut, SavedCut]:
    if len(sources) == 3:
        directory = directory_at(sources[0])
        return find_cut(directory, sources[1]), find_cut(directory, sources[2])
    if len(sources) == 2:
        return open_cut_at(sources[0]), open_cut_at(sources[1])
    raise click.UsageError("name a directory and two of its cuts, or two directories.")


def _row(each: TableDifference) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (each.added, each.removed, each.changed, each.common))
    numbers = (f"{value:.4g}" for value in (each.largest, each.mean, each.norm))
    if each.state == "reshaped":
        numbers = ("-" for _ in range(3))
    return each.name, each.kind, _shape(each), *counts, *numbers


def _shape(each: TableDifference) -> str:
    shapes = [shape for shape in (each.shape_before, each.shape_after) if shape]
    return " → ".join(dict.fromkeys(_one_shape(each.kind, shape) for shape in shapes))


def _one_shape(kind: str, shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, ("ids", *shape) if kind == "sparse" else shape))


def _name(cut: SavedCut) -> str:
    return f"cut {cut.number} of {cut.directory.location} ({contents.progress_of(cut)})"


def _plain(cut: SavedCut) -> dict[str, Any]:
    return {"directory": cut.directory.location, "cut": cut.number}


def _finite(each: TableDifference) -> dict[str, Any]:
    """A difference as JSON, which has no NaN and no infinity."""
    plain = asdict(each)
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in plain.items()
    }
