"""`psrt checkpoint save` and `psrt checkpoint prune`: cuts made and deleted by hand."""

from __future__ import annotations

import click

from psrt.cli import results
from psrt.cli.options import access_options
from psrt.coordinator.retention import Retention
from psrt.core.randomness import system_random
from psrt.pserver.checkpoints import Bases, complete_cuts, files_by_cut, remove_cut
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.storage.directory import Directory
from psrt.storage.locate import directory_at

CONNECT_S = 10.0


@click.command("save", epilog="\b\nExample:\n  psrt checkpoint save --endpoint 127.0.0.1:6170")
@click.option(
    "--endpoint",
    required=True,
    metavar="HOST:PORT",
    help="The first pserver of the job, which coordinates its cuts.",
)
@click.option(
    "--timeout-s",
    default=600.0,
    show_default=True,
    type=click.FloatRange(min=0.001),
    help="Longest wait for the cut, in seconds.",
)
@access_options
def save(*, endpoint: str, timeout_s: float) -> None:
    """Ask a running job for a cut now, and wait until it is complete.

    Prints the number of the cut. Training goes on meanwhile. A cut that is under way does not
    count: the command waits for the next one, which has all pushes that were answered before. The
    pservers need --checkpoint-dir.
    """
    client = Client(endpoint, 0, system_random.getrandbits(63), "grpc", pb.Hello())
    try:
        client.connect(min(CONNECT_S, timeout_s))
        header = pb.Header(cut=pb.Cut(anew=True))
        reply = client.call(Method.CHECKPOINT, header=header, timeout_s=timeout_s)
    finally:
        client.close()
    results.write(str(reply.header.cut.number))


_PRUNE_EPILOG = """\b
Examples:
  psrt checkpoint prune checkpoints --keep 3 --dry-run
  psrt checkpoint prune checkpoints --keep 3 --keep-every 10
"""


@click.command("prune", epilog=_PRUNE_EPILOG)
@click.argument("location", metavar="DIR", type=click.Path())
@click.option("--keep", required=True, type=click.IntRange(min=1), help="Newest cuts to keep.")
@click.option(
    "--keep-every",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Also keep every cut whose number is a multiple of this; 0 = none.",
)
@click.option("--dry-run", is_flag=True, help="Print the cuts; delete nothing.")
def prune(*, location: str, keep: int, keep_every: int, dry_run: bool) -> None:
    """Delete old cuts, and incomplete ones that are older than the newest complete cut.

    Cuts that a kept one builds on are kept, too; compact makes a cut that needs no other.
    Running jobs delete their own old cuts by --checkpoint-keep; this is for directories of jobs
    that have ended. Do not delete the cut that a starting job reads.
    """
    directory = directory_at(location)
    numbers = _superfluous(directory, Retention(keep, keep_every))
    for number in numbers:
        if not dry_run:
            remove_cut(directory, number)
        results.write(f"cut {number}: {'to be deleted' if dry_run else 'deleted'}")
    if not numbers:
        results.write("nothing to delete")


def _superfluous(directory: Directory, retention: Retention) -> list[int]:
    """The numbers of cuts to delete, newest first: none is left without one that it builds on.

    A newer cut without a manifest may be under way.
    """
    complete = complete_cuts(directory)
    leftovers = [n for n in files_by_cut(directory) if complete and n < complete[-1]]
    broken = set(leftovers) - set(complete)
    dropped = retention.dropped(complete, Bases(directory).of)
    return sorted({*dropped, *broken}, reverse=True)
