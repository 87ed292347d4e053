"""`psrt scale`: another number of trainers for a running job."""

from __future__ import annotations

import click

from psrt.cli import results
from psrt.cli.options import access_options
from psrt.core.randomness import system_random
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method

CONNECT_S = 10.0

_EPILOG = """\b
Examples:
  psrt scale --endpoint 127.0.0.1:41217 --trainers 3       endpoints as psrt launch prints them
  psrt trainer --endpoints a:6170,b:6170 --trainers 3 --trainer-id 2 job.toml &
  psrt scale --endpoint a:6170 --trainers 3                on several hosts: start, then scale
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--endpoint",
    required=True,
    metavar="HOST:PORT",
    help="The first pserver of the job, which coordinates its cuts.",
)
@click.option(
    "--trainers",
    required=True,
    type=click.IntRange(min=1),
    help="The number of trainers with which the job goes on.",
)
@click.option(
    "--timeout-s",
    default=600.0,
    show_default=True,
    type=click.FloatRange(min=0.001),
    help="Longest wait for the cut, in seconds.",
)
@access_options
def scale(*, endpoint: str, trainers: int, timeout_s: float) -> None:
    """Change the number of trainers of a running job.

    The job makes a cut, at which all trainers stop for a moment. It goes on from there with the new
    number: what is left of the data is dealt again, so each example is trained once an epoch.
    Parameters stay in memory. The pservers need --checkpoint-dir.

    psrt launch starts and ends trainers by itself. Without it, start new ones with the new
    --trainers, before or after this command; those whose --trainer-id is too high end by
    themselves.

    Prints the number of the cut. If the cut cannot be made, nothing changes, and the error has the
    reason. Jobs in mode geo, jobs with durability = replica, and scripts cannot change theirs.
    """
    client = Client(endpoint, 0, system_random.getrandbits(63), "grpc", pb.Hello())
    try:
        client.connect(min(CONNECT_S, timeout_s))
        header = pb.Header(cut=pb.Cut(trainers=trainers))
        reply = client.call(Method.CHECKPOINT, header=header, timeout_s=timeout_s)
    finally:
        client.close()
    results.write(f"cut {reply.header.cut.number}: the job goes on with {trainers} trainers")
