"""`psrt checkpoint`: the group."""

from __future__ import annotations

import click

from psrt.cli.checkpoint import checking, compacting, diffing, exporting, listing, making

_EPILOG = """\b
Examples:
  psrt launch --checkpoint-dir checkpoints job.toml
  psrt checkpoint list checkpoints
  psrt checkpoint show checkpoints latest
  psrt checkpoint verify checkpoints all
  psrt checkpoint save --endpoint 127.0.0.1:6170
  psrt checkpoint prune checkpoints --keep 3
  psrt checkpoint compact checkpoints
  psrt checkpoint diff checkpoints 3 latest
  psrt checkpoint export checkpoints latest --to numpy parameters
  psrt launch --checkpoint-dir checkpoints --resume latest job.toml
"""


@click.group(epilog=_EPILOG)
def checkpoint() -> None:
    """Show, check, compare, export, make and delete the cuts of jobs.

    A cut is one consistent state of a whole job on disk. Pservers write cuts below
    --checkpoint-dir, and a job that is started with --resume goes on from one. DIR is a directory,
    or a URL such as s3://bucket/job.
    """


for _command in (
    *listing.COMMANDS,
    checking.verify,
    *making.COMMANDS,
    compacting.compact_cut,
    diffing.diff,
    exporting.export,
):
    checkpoint.add_command(_command)
