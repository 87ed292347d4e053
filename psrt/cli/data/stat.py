"""`psrt data stat`: statistics of data files, slot by slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from psrt.cli import results
from psrt.cli.data.options import format_options
from psrt.cli.progress import progress
from psrt.core.columns import aligned
from psrt.core.errors import ConfigError, DataError
from psrt.data.formats import Format
from psrt.data.inspect import IdCounts, SlotStatistics, draw_skew, statistics
from psrt.data.reading import reader_of
from psrt.data.slots import Batch
from psrt.data.sources import Files, expand, text_bytes

_BATCH_SIZE = 4096
_BAR_CHARACTERS = 40
_HEADS = ("slot", "values each", "missing", "distinct ids", "top 1 % of ids", "low … mean … high")
_STAT_EPILOG = """\b
Examples:
  psrt data stat data/train-*.txt --job ctr_dnn.toml
  psrt data stat part-0 --slots label:uint64:1,words:uint64 --histogram words
"""


@click.command("stat", epilog=_STAT_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILES…", type=click.Path())
@format_options
@click.option("--label", metavar="SLOT", help="[default: the first slot of one value]")
@click.option(
    "--histogram",
    "drawn",
    multiple=True,
    metavar="SLOT",
    help="Draw how often its ids occur.  [default: the slot with the most distinct ids]",
)
@click.option(
    "--exact-ids",
    default=statistics.EXACT_IDS,
    show_default=True,
    type=click.IntRange(min=1),
    help="Distinct ids of a slot to count exactly; beyond it a sample of them is counted.",
)
@click.option(
    "--png",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw occurrences over rank for each slot of ids; needs psrt-cluster[plot].",
)
def stat(
    *,
    files: tuple[str, ...],
    format: Format,
    label: str | None,
    drawn: tuple[str, ...],
    exact_ids: int,
    png: Path | None,
) -> None:
    """Print statistics of files: examples, values, ids and their skew, and the label's rate.

    missing is the share of examples without a value; the top 1 % are the ids that occur most, and
    their share of all occurrences. low, mean and high are of floats.
    """
    paths = expand(files)
    for name in (*drawn, *([label] if label else [])):
        if name not in {slot.name for slot in format.slots}:
            raise ConfigError(f"there is no slot {name!r} in these files.")
    with progress("reading", sum(map(text_bytes, paths))) as advance:
        found = statistics.gather(_batches(paths, format, advance), format.slots, exact_ids)
    examples = next(iter(found.values())).examples
    if not examples:
        raise DataError(f"{', '.join(map(str, paths))}: there are no examples.")
    results.write(f"{examples:,} examples in {len(paths)} files")
    _show_label(found, label)
    results.write("\n".join(aligned([_HEADS, *map(_row, found.values())])))
    counted = {name: s.ids for name, s in found.items() if s.slot.dtype == "uint64" and s.values}
    _show_skew(counted, drawn)
    if png is not None:
        draw_skew(png, {name: ids.counts() for name, ids in counted.items()})
        results.write(f"drawn: {png}")


def histogram(counts: Sequence[int]) -> Iterator[str]:
    """Yield a line per element: the ids that occur 2^k … 2^(k+1) − 1 times, with a bar."""
    highest = max(counts)
    for power, count in enumerate(counts):
        low, high = 1 << power, (2 << power) - 1
        times = f"{low:,}" if low == high else f"{low:,} … {high:,}"
        bar = "█" * round(_BAR_CHARACTERS * count / highest)
        yield f"{times + ' times':>26}  {count:>12,} ids  {bar}".rstrip()


def _batches(
    paths: Sequence[Path | str], format: Format, advance: Callable[[int], None]
) -> Iterator[Batch]:
    reader = reader_of(format, _BATCH_SIZE, Files(), advance)
    for path in paths:
        yield from reader.read(path)
    if (last := reader.finish()) is not None:
        yield last


def _show_label(found: dict[str, SlotStatistics], label: str | None) -> None:
    label = label or next((name for name, s in found.items() if s.slot.size == 1), None)
    if label is not None and (values := found[label].values):
        rate = 100 * (values - found[label].zeros) / values
        results.write(f"label {label}: {rate:.2f} % are not 0")


def _row(found: SlotStatistics) -> tuple[str, ...]:
    each = f"{found.values / found.examples:.2f}"
    if found.slot.size is None:
        each += f" (up to {found.longest:,})"
    missing = f"{100 * found.missing / found.examples:.2f} %"
    if found.slot.dtype == "float":
        mean = found.total / max(1, found.values)
        spread = f"{found.low:.4g} … {mean:.4g} … {found.high:.4g}" if found.values else ""
        return found.slot.name, each, missing, "", "", spread
    ids = found.ids
    distinct = f"{'≈ ' if ids.sampled > 1 else ''}{ids.distinct:,}"
    return found.slot.name, each, missing, distinct, f"{100 * ids.top_share():.1f} %", ""


def _show_skew(counted: dict[str, IdCounts], drawn: tuple[str, ...]) -> None:
    for name, ids in counted.items():
        if ids.sampled > 1:
            results.write(f"{name}: one of {ids.sampled} ids was counted, by a hash of the id")
    most = max(counted, key=lambda name: counted[name].distinct, default=None)
    for name in drawn or ([most] if most else []):
        if name in counted:
            results.write(f"\nhow often an id of {name} occurs:")
            results.write("\n".join(histogram(counted[name].histogram().tolist())))
