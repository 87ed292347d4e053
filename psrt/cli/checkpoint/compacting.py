"""`psrt checkpoint compact`: a cut that builds on others made full."""

from __future__ import annotations

import click

from psrt.cli import results
from psrt.cli.checkpoint import contents
from psrt.cli.progress import progress
from psrt.pserver.checkpoints import compact, find_cut
from psrt.storage.locate import directory_at

_EPILOG = """\b
Examples:
  psrt checkpoint compact checkpoints           the newest cut
  psrt checkpoint compact checkpoints 12
  psrt checkpoint compact checkpoints && psrt checkpoint prune checkpoints --keep 1
"""


@click.command("compact", epilog=_EPILOG)
@click.argument("location", metavar="DIR", type=click.Path())
@click.argument("which", metavar="[N|latest]", default="latest")
def compact_cut(*, location: str, which: str) -> None:
    """Merge an incremental cut and those that it builds on into one full cut.

    The cut keeps its number and its state: the newest row of an id wins, and deleted rows vanish.
    Older cuts stay; prune deletes them. This is for directories of jobs that have ended.
    """
    cut = find_cut(directory_at(location), which)
    before, needed = contents.size_bytes(cut), contents.base_text(cut)
    with progress("compacting", before) as advance:
        was_merged = compact(cut, advance)
    if not was_merged:
        results.write(f"cut {cut.number} is full already, {before:,} bytes")
        return
    after = contents.size_bytes(find_cut(cut.directory, str(cut.number)))
    results.write(
        f"cut {cut.number}: full, {after:,} bytes; it continued cut {needed}, {before:,} bytes"
    )
