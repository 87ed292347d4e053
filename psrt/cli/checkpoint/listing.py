"""`psrt checkpoint list` and `psrt checkpoint show`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from psrt.cli import results
from psrt.cli.checkpoint import contents
from psrt.core.columns import aligned
from psrt.core.errors import StorageError
from psrt.pserver.checkpoints import SavedCut, complete_cuts, files_by_cut, find_cut
from psrt.storage.directory import Directory
from psrt.storage.locate import directory_at

_HEADS = ("cut", "state", "written", "at", "mode", "pservers", "trainers", "base", "files", "MB")
_TEXTS = (1, 2, 3, 4)
_TABLE_HEADS = ("table", "kind", "shape", "elements or rows", "pieces", "version", "optimizer")


@click.command("list", epilog="\b\nExample:\n  psrt checkpoint list checkpoints")
@click.argument("location", metavar="DIR", type=click.Path())
def list_cuts(*, location: str) -> None:
    """List the cuts of a directory, the oldest first.

    A cut without a manifest is incomplete: it is being written, or a crash left it. No job begins
    with it. Base is the cut that an incremental one continues. MB are those of its own array files.
    """
    directory = directory_at(location)
    files, complete = files_by_cut(directory), set(complete_cuts(directory))
    if not files:
        results.write(f"{location} has no cuts.")
        return
    rows = [_row(directory, number, len(files[number]), number in complete) for number in files]
    results.write("\n".join(aligned([_HEADS, *rows], left=_TEXTS)))


_SHOW_EPILOG = """\b
Examples:
  psrt checkpoint show checkpoints              the newest cut
  psrt checkpoint show checkpoints 12
  psrt checkpoint show checkpoints 12 --json | jq '.tables[].name'
"""


@click.command("show", epilog=_SHOW_EPILOG)
@click.argument("location", metavar="DIR", type=click.Path())
@click.argument("which", metavar="[N|latest]", default="latest")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(*, location: str, which: str, as_json: bool) -> None:
    """Show the job, positions of trainers, tables and parts of a cut."""
    cut = find_cut(directory_at(location), which)
    if as_json:
        results.write(json.dumps(contents.plain(cut), indent=1))
        return
    sections = (_job(cut), _positions(cut), _tables(cut), _parts(cut))
    results.write("\n\n".join("\n".join(section) for section in sections))


def _row(directory: Directory, number: int, files: int, is_complete: bool) -> tuple[str, ...]:
    if not is_complete:
        return _no_cut(number, "incomplete", files)
    try:
        cut = find_cut(directory, str(number))
    except StorageError as error:
        click.echo(error.full_text(), err=True)
        return _no_cut(number, "damaged", files)
    job = cut.manifest["job"]
    return (
        *(str(number), "complete", _written(cut), contents.progress_of(cut), job["mode"]["kind"]),
        *(str(len(cut.parts)), str(job["trainers"]), contents.base_text(cut), str(files)),
        f"{contents.own_bytes(cut) / 1e6:,.1f}",
    )


def _no_cut(number: int, state: str, files: int) -> tuple[str, ...]:
    return str(number), state, *(("-",) * 6), str(files), "-"


def _written(cut: SavedCut) -> str:
    return str(cut.manifest.get("written", "-")).replace("+00:00", "Z")


def _job(cut: SavedCut) -> Iterator[str]:
    job = cut.manifest["job"]
    options = ", ".join(f"{k} {v}" for k, v in job["mode"].items() if k != "kind")
    yield f"cut {cut.number} of job {job['id']}, written {_written(cut)}"
    yield f"mode {job['mode']['kind']}" + (f" ({options})" if options else "")
    yield f"{contents.progress_of(cut)}, {job['trainers']} trainers, {len(cut.parts)} pservers"
    yield _size(cut)


def _size(cut: SavedCut) -> str:
    size = f"{contents.own_bytes(cut):,} bytes"
    if not cut.bases:
        return f"full, {size}"
    return f"continues cut {contents.base_text(cut)}, {size}; {contents.size_bytes(cut):,} with it"


def _positions(cut: SavedCut) -> list[str]:
    positions = contents.plain(cut)["positions"]
    rows = [(each, contents.position_text(positions[each])) for each in sorted(positions, key=int)]
    return aligned([("trainer", "goes on after"), *rows], left=(1,))


def _tables(cut: SavedCut) -> list[str]:
    rows = [
        (
            *(table["name"], table["kind"], _shape(table), f"{table['size']:,}"),
            *(str(table["blocks"]), f"{table['version']:,}", table["optimizer"]),
        )
        for table in contents.tables(cut)
    ]
    return aligned([_TABLE_HEADS, *rows], left=(0, 1, 2, 6))


def _shape(table: contents.Plain) -> str:
    return " × ".join(map(str, table.get("shape", ("ids", table.get("width")))))


def _parts(cut: SavedCut) -> list[str]:
    rows = [
        (part["endpoint"], file["name"], f"{file['bytes']:,}")
        for part in contents.parts(cut)
        for file in part["files"]
    ]
    return aligned([("pserver", "file", "bytes"), *rows], left=(0, 1))
