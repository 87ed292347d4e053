"""Calls besides pushes that a recovered pserver gets again: meetings, and values to begin with.

A pserver goes on from a state that may be older than these calls, and nobody would make them again:
others would wait for a trainer that has met them, and dense parameters would begin with the values
of their specs. Each trainer sends its own before its pushes, so they come before any update.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np

from psrt.core.types import F32
from psrt.partition.plan import PartitionPlan
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PUSH_DENSE


class KeptCalls:
    """The calls of one trainer to `clients`, in the order of `plan`; any thread calls this.

    The first pserver keeps the clocks of meetings.
    """

    def __init__(self, plan: PartitionPlan, clients: Sequence[Client]) -> None:
        self._plan, self._clients = plan, tuple(clients)
        self._meetings: dict[str, list[pb.Meet]] = {}
        self._first: dict[str, F32] = {}
        self._lock = threading.Lock()

    def meet(self, meet: pb.Meet, timeout_s: float) -> pb.MeetReply:
        """Send MEET and wait for the reply.

        Of each clock the two latest times are kept, as pservers keep notes: others may still ask
        for those of the time before.
        """
        with self._lock:
            own = {each.reached: each for each in (*self._meetings.get(meet.clock, ()), meet)}
            self._meetings[meet.clock] = [own[time] for time in sorted(own)[-2:]]
        header = pb.Header(meet=meet)
        reply = self._clients[0].call(Method.MEET, header=header, timeout_s=timeout_s)
        return reply.header.meet_reply

    def give(self, values: Mapping[str, F32], timeout_s: float) -> None:
        """Let whole dense parameters begin with `values`, unless they were updated already."""
        for client in self._clients:
            _give(self._plan, client, values, timeout_s)

    def keep(self, values: Mapping[str, F32]) -> None:
        """Give copies of these values again to each recovered pserver.

        All trainers keep equal ones: whoever is the first to send its pushes again, parameters
        begin with them.
        """
        copies = {name: np.array(each, np.float32) for name, each in values.items()}
        with self._lock:
            self._first = copies

    def send_again(self, client: Client, timeout_s: float) -> None:
        """Repeat to a recovered pserver what concerns it; a repetition changes nothing."""
        with self._lock:
            meetings = [each for of_one in self._meetings.values() for each in of_one]
            first = self._first
        for met in meetings if client is self._clients[0] else ():
            meet = pb.Meet(clock=met.clock, reached=met.reached, note=met.note)
            client.call(Method.MEET, header=pb.Header(meet=meet), timeout_s=timeout_s)
        _give(self._plan, client, first, timeout_s)


def _give(plan: PartitionPlan, client: Client, values: Mapping[str, F32], timeout_s: float) -> None:
    """Send a pserver the values of its blocks, one call for each."""
    for block in plan.blocks:
        spec = block.spec
        if block.endpoint != client.endpoint or spec.parameter not in values:
            continue
        header = pb.Header(parts=[pb.Part(kind=PUSH_DENSE, table=spec.name)])
        whole = np.ascontiguousarray(values[spec.parameter], np.float32).reshape(-1)
        part = whole[spec.offset : spec.offset + spec.size]
        client.call(Method.GIVE, header=header, tensors=[part], timeout_s=timeout_s)
