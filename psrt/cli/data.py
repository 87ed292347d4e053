"""`psrt data`: make the files a job trains on, and say what to do with them."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from psrt.data import criteo as criteo_table
from psrt.data import synthetic
from psrt.data.files import expand, text_bytes
from psrt.data.sharded import PARTS, Destination, ShardedWriter

_LINE_EVERY_S = 2.0
_EXAMPLES = """\b
Examples:
  psrt data synth-ctr --out data/synth --rows 200000 --files 2
  psrt data criteo train.tsv.gz --out data/criteo --files 2
"""


@click.group(epilog=_EXAMPLES)
def data() -> None:
    """Make training files.

    Both commands write MultiSlot text, train-00000.txt … and test-00000.txt …, and print the lines
    of a job file that read it.
    """


def destination_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --out, --files, --gzip and --replace, given to `command` as one `destination`."""

    @click.option(
        "--out",
        required=True,
        type=click.Path(file_okay=False, path_type=Path),
        help="Directory to write to; made if missing.",
    )
    @click.option(
        "--files",
        default=2,
        show_default=True,
        type=click.IntRange(1, 10_000),
        help="Files per part; at least one per trainer.",
    )
    @click.option("--gzip", "gzipped", is_flag=True, help="Write .txt.gz files.")
    @click.option(
        "--replace", is_flag=True, help="Remove the train-* and test-* files now in --out."
    )
    @functools.wraps(command)
    def with_destination(
        *, out: Path, files: int, gzipped: bool, replace: bool, **others: Any
    ) -> None:
        command(destination=Destination(out, files, gzipped, replace), **others)

    return with_destination


@data.command("criteo", epilog="\b\nExample:\n  psrt data criteo train.tsv.gz --out data/criteo")
@click.argument("inputs", nargs=-1, required=True, metavar="IN.tsv[.gz]…")
@destination_options
@click.option(
    "--test-fraction",
    default=0.1,
    show_default=True,
    type=click.FloatRange(0, 1, max_open=True),
    help="Share of the rows that go to the test files, by a hash of the row and the seed.",
)
@click.option("--seed", default=0, show_default=True, help="Another seed, other test rows.")
@click.option("--bucket-ints", is_flag=True, help="Add slots I1 … I13: integers as bucket ids.")
def criteo(
    *,
    inputs: tuple[str, ...],
    destination: Destination,
    test_fraction: float,
    seed: int,
    bucket_ints: bool,
) -> None:
    """Convert the public Criteo table (label, I1 … I13, C1 … C26, tab-separated)."""
    paths = expand(inputs)
    conversion = criteo_table.Conversion(test_fraction, seed, bucket_ints)
    with progress("converting", sum(text_bytes(path) for path in paths)) as advance:
        writer = criteo_table.convert(
            paths,
            destination,
            conversion,
            lambda rows, size_bytes: advance(size_bytes),
        )
    tell(writer, "C1 … C26, I1 … I13" if bucket_ints else "C1 … C26")


@data.command("synth-ctr", epilog="\b\nExample:\n  psrt data synth-ctr --out data/synth")
@destination_options
@click.option("--rows", default=200_000, show_default=True, help="Training rows.")
@click.option("--test-rows", default=50_000, show_default=True, help="Test rows.")
@click.option("--seed", default=0, show_default=True, help="Same seed, same files.")
@click.option("--ids-per-slot", default=500, show_default=True, help="Ids of the largest slot.")
@click.option("--skew", default=2.0, show_default=True, help="Exponent of Zipf's law in a slot.")
def synth_ctr(
    *,
    destination: Destination,
    rows: int,
    test_rows: int,
    seed: int,
    ids_per_slot: int,
    skew: float,
) -> None:
    """Generate Criteo-shaped rows whose best possible AUC is known."""
    planted = synthetic.Planted(rows, test_rows, seed, ids_per_slot, skew)
    with progress("generating", rows + test_rows) as advance:
        writer, report = synthetic.generate(planted, destination, advance)
    tell(writer, "C1 … C26")
    click.echo(
        f"best possible test AUC {report.best_auc:.4f} (the planted model's own; "
        f"also in {destination.directory / synthetic.REPORT_NAME})"
    )


@contextmanager
def progress(label: str, length: int) -> Iterator[Callable[[int], None]]:
    """Yields `advance(amount)`: a bar at a terminal, otherwise a line every two seconds."""
    if sys.stderr.isatty():
        with click.progressbar(length=max(1, length), label=label, file=sys.stderr) as bar:
            yield bar.update
        return
    done, next_line_s = 0, time.monotonic() + _LINE_EVERY_S

    def advance(amount: int) -> None:
        nonlocal done, next_line_s
        done += amount
        if time.monotonic() >= next_line_s:
            next_line_s = time.monotonic() + _LINE_EVERY_S
            click.echo(f"{label}: {min(100, 100 * done // max(1, length))} %", err=True)

    yield advance


def tell(writer: ShardedWriter, id_slots: str) -> None:
    """What was written, and the lines of a job file that read it."""
    parts = [part for part in PARTS if writer.rows[part]]
    for part in parts:
        rows = writer.rows[part]
        rate = 100 * writer.clicks[part] / rows
        names = f"{writer.paths(part)[0]} … {writer.paths(part)[-1].name}"
        click.echo(f"{part}: {rows:,} rows, {rate:.1f} % clicks, in {names}")
    click.echo(f"slots: click (1 float), dense_input (13 floats), {id_slots} (1 id each)")
    click.echo("next: put these lines into your job file and run `psrt launch` on it")
    click.echo("  [data]")
    for part in parts:
        pattern = writer.paths(part)[0].resolve().with_name(f"{part}-*{_suffix(writer)}")
        click.echo(f'  {part} = ["{pattern}"]')


def _suffix(writer: ShardedWriter) -> str:
    return ".txt.gz" if writer.destination.gzipped else ".txt"
