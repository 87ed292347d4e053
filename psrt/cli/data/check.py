"""`psrt data split` and `psrt data check`."""

from __future__ import annotations

from pathlib import Path

import click

from psrt.cli import results
from psrt.cli.data.options import format_options
from psrt.cli.progress import progress
from psrt.core.quantities import counted
from psrt.data.convert import file_parts
from psrt.data.formats import Format
from psrt.data.inspect import checking
from psrt.data.sources import expand, text_bytes


@click.command("split", epilog="\b\nExample:\n  psrt data split train.txt.gz -n 3 --out parts")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-n", "--parts", required=True, type=click.IntRange(1, 10_000), help="Files to make.")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory to write to; made if missing.",
)
@click.option("--gzip", "gzipped", is_flag=True, help="Write .gz files.")
@click.option("--replace", is_flag=True, help="Remove parts of an earlier split.")
@click.option(
    "--header/--no-header", default=None, help="Begin each part with the first line, or do not."
)
def split(
    *, file: Path, parts: int, out: Path, gzipped: bool, replace: bool, header: bool | None
) -> None:
    """Cut a text file into parts of consecutive lines, name-00000 … in --out.

    Without --header or --no-header, a first line that looks like names of columns is refused.

    Compressed files go to trainers whole, so that each trainer needs one. The lines of the parts
    are counted before they are published.
    """
    written = file_parts.split_file(file, parts, out, gzipped, replace, header)
    for path, lines in written:
        click.echo(f"{path}: {lines:,} lines")
    lines = sum(lines - bool(header) for _, lines in written) + bool(header)
    click.echo(f"{lines:,} lines in all, as in {file}")


@click.command("check", epilog="\b\nExample:\n  psrt data check data/*.txt --job ctr_dnn.toml")
@click.argument("files", nargs=-1, required=True, metavar="FILES…", type=click.Path())
@format_options
def check(*, files: tuple[str, ...], format: Format) -> int:
    """Read files to their ends and print all errors that a job would stop at.

    The first 20 errors are shown by file, line and slot, the rest is counted. Exit code 1 if there
    are any.
    """
    paths = expand(files)
    with progress("checking", sum(map(text_bytes, paths))) as advance:
        found = checking.check(paths, format, advance)
    for message in found.shown:
        results.write(message)
    if found.errors > len(found.shown):
        results.write(f"… and {found.errors - len(found.shown):,} more errors")
    results.write(
        f"{found.examples:,} examples are well formed; {counted(found.errors, 'error')} in "
        f"{found.files_with_errors} of {counted(len(paths), 'file')}"
    )
    return 1 if found.errors else 0
