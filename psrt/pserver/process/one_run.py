"""Refuses trainers of another run of the same job, which a port taken over would bring here."""

from __future__ import annotations

from psrt.core.errors import ErrorCode, WireError
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Handler, Later, Peer
from psrt.rpc.wire import Message


def only_of_run(run: str, handler: Handler) -> Handler:
    """A handler that does what `handler` does for trainers of `run`; empty = for all.

    Callers that do not join, without a hash of a plan, belong to no run.
    """
    if not run:
        return handler

    def handle(message: Message, peer: Peer) -> Message | Later:
        hello = message.header.hello
        if message.header.method == Method.HELLO and hello.plan_hash and hello.run != run:
            raise of_another_run(message.header.trainer, hello, run)
        return handler(message, peer)

    return handle


def of_another_run(trainer: int, hello: pb.Hello, run: str) -> WireError:
    theirs = f"run {hello.run}" if hello.run else "no run"
    return WireError(
        f"trainer {trainer} of job {hello.job_id!r} belongs to {theirs}, this pserver to "
        f"run {run}; its HELLO was refused.",
        code=ErrorCode.JOB_MISMATCH,
        hint="Another launch has this port now: see why that of the trainer has lost its pservers.",
    )
