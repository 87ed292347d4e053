"""A cut that a trainer asks for, and waits for: pservers write it as fast as they can."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from psrt.core.errors import PsrtError
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method

HURRY_S = 1.0
"""Time limit of the call to a pserver that does not coordinate; without it the cut takes longer."""


def ask_for_cut(clients: Sequence[Client], timeout_s: float, behind: int) -> int:
    """Ask the first pserver for a cut behind `behind`; its number once complete.

    Raises the error of a cut that is given up.
    """
    for client in clients[1:]:
        with suppress(PsrtError):
            hurry = pb.Header(cut=pb.Cut(hurry=True))
            client.call(Method.CHECKPOINT, header=hurry, timeout_s=HURRY_S)
    header = pb.Header(cut=pb.Cut(newest=behind, hurry=True))
    reply = clients[0].call(Method.CHECKPOINT, header=header, timeout_s=timeout_s)
    return int(reply.header.cut.number)
