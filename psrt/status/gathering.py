"""Facts of all pservers of a job, asked side by side, each with the same deadline."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from psrt.core.errors import PsrtError
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.retry import RetryPolicy
from psrt.status.facts import ClusterFacts, PserverFacts, Unreachable

_MOST_AT_ONCE = 32
_ONCE = RetryPolicy(budget_s=0.0)


class Gatherer:
    """Asks the pservers at `endpoints` again and again; `close` ends the connections."""

    def __init__(self, endpoints: Sequence[str], timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._clients = [
            Client(endpoint, 0, random.getrandbits(63), "grpc", pb.Hello(), retry=_ONCE)
            for endpoint in endpoints
        ]

    def gather(self) -> ClusterFacts:
        """The facts of all pservers now; takes the timeout at most."""
        with ThreadPoolExecutor(min(_MOST_AT_ONCE, len(self._clients))) as pool:
            return ClusterFacts(tuple(pool.map(self._ask, self._clients)))

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def _ask(self, client: Client) -> PserverFacts | Unreachable:
        try:
            reply = client.call(Method.STATUS, timeout_s=self._timeout_s)
        except PsrtError as error:
            return Unreachable(client.endpoint, error.message, error.code.name)
        status = json.loads(reply.header.status_json)
        return PserverFacts.of(client.endpoint, time.monotonic(), status, time.time())
