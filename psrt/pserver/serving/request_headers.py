"""Fields of request headers, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from psrt.core.errors import ErrorCode, TableError, WireError
from psrt.core.specs import Async, Geo, HalfAsync, Ssp, Sync, from_json
from psrt.pserver.decisions import JobIdentity, Lane, PushProgress, RecordedLineage, Steps
from psrt.rpc import pb
from psrt.rpc.methods import Method

Found: TypeAlias = Sequence[tuple[str, int]]
"""Endpoint and incarnation of each pserver of a job, in the order of the plan."""


def number_in(found: Found, incarnation: int) -> int | None:
    """The number of a pserver among those that a trainer found, None = it is not there."""
    numbers = (number for number, (_, each) in enumerate(found) if each == incarnation)
    return next(numbers, None)


def caller_of(header: pb.Header) -> tuple[int, int]:
    """Trainer and incarnation: every call of a trainer carries both."""
    return header.trainer, header.push_key.incarnation


def sequence_of(header: pb.Header) -> int:
    """The sequence of a push; raises `WireError` without one."""
    sequence: int = header.push_key.sequence
    if sequence == 0:
        raise WireError(
            f"trainer {header.trainer} sent gradients without a push key; they were refused.",
            hint="push_key.sequence counts 1, 2, 3 … per trainer process and pserver.",
        )
    return sequence


def progress_of(header: pb.Header) -> PushProgress | None:
    """The progress of the trainer that a push names, None for one that keeps none."""
    if not header.HasField("lineage"):
        return None
    named = header.lineage
    covers = [(Lane(named.bucket, c.name), Steps(c.first, c.last)) for c in named.covered]
    facts = named.origin, named.settled, named.position, named.following
    return PushProgress(*facts, tuple(covers))


def lineage_reply(known: RecordedLineage | None) -> pb.Lineage | None:
    """The recorded progress of a trainer, for the reply to REGISTER."""
    if known is None:
        return None
    return pb.Lineage(
        origin=known.origin,
        settled=known.settled,
        position=known.position,
        following=known.following,
        completed=known.completed,
        ended=known.ended,
        covered=[
            pb.Covered(bucket=lane.bucket, name=lane.name, first=steps.first, last=steps.last)
            for lane, steps in known.covered()
        ],
    )


def job_of(hello: pb.Hello) -> JobIdentity:
    """The job that a HELLO names; raises `WireError` unless its mode is one."""
    mode = from_json(hello.mode)
    if not isinstance(mode, Sync | Async | Ssp | HalfAsync | Geo):
        raise WireError(
            f"HELLO names no communication mode: {hello.mode!r}; it was refused.",
            hint="Install the same psrt release on trainers and pservers.",
        )
    facts = hello.job_id, hello.plan_hash, hello.trainers, mode, hello.plan
    return JobIdentity(*facts, durability=hello.durability)


def no_method(header: pb.Header) -> WireError:
    """The error for a call of a method that is unknown here."""
    return WireError(
        f"this pserver has no method {header.method}; the call was refused.",
        code=ErrorCode.WIRE_UNKNOWN_METHOD,
        hint="See that the endpoint is that of a pserver, and compare the psrt releases.",
    )


def no_memory(header: pb.Header, error: MemoryError) -> TableError:
    """The error for a call during which memory ran out."""
    return TableError(
        f"{Method(header.method).name} of trainer {header.trainer} was given up: no memory "
        f"({error!r}).",
        code=ErrorCode.TABLE_FULL,
        hint="Give the job more pservers, or the host of this one more memory.",
    )
