"""`psrt checkpoint`: the group."""

from __future__ import annotations

import click

from psrt.cli.lazy import LazyGroup, Subcommand

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

SUBCOMMANDS = {
    "list": Subcommand(
        "psrt.cli.checkpoint.listing",
        "list_cuts",
        "List the cuts of a directory, the oldest first.",
    ),
    "show": Subcommand(
        "psrt.cli.checkpoint.listing",
        "show",
        "Show the job, positions of trainers, tables and parts of a cut.",
    ),
    "verify": Subcommand(
        "psrt.cli.checkpoint.checking",
        "verify",
        "Read every byte of cuts and compare all checksums.",
    ),
    "save": Subcommand(
        "psrt.cli.checkpoint.making",
        "save",
        "Ask a running job for a cut now, and wait until it is complete.",
    ),
    "prune": Subcommand(
        "psrt.cli.checkpoint.making",
        "prune",
        "Delete old cuts, and incomplete ones that are older than the newest complete cut.",
    ),
    "compact": Subcommand(
        "psrt.cli.checkpoint.compacting",
        "compact_cut",
        "Merge an incremental cut and those that it builds on into one full cut.",
    ),
    "diff": Subcommand(
        "psrt.cli.checkpoint.diffing", "diff", "Show how parameters differ between two cuts."
    ),
    "export": Subcommand(
        "psrt.cli.checkpoint.exporting",
        "export",
        "Write the parameters of a cut to a new directory OUT.",
    ),
}


@click.group(cls=LazyGroup, subcommands=SUBCOMMANDS, epilog=_EPILOG)
def checkpoint() -> None:
    """Show, check, compare, export, make and delete the cuts of jobs.

    A cut is one consistent state of a whole job on disk. Pservers write cuts below
    --checkpoint-dir, and a job that is started with --resume goes on from one. DIR is a directory,
    or a URL such as s3://bucket/job.
    """
