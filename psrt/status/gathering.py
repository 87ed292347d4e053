"""Facts of all pservers of a job, asked side by side, each with the same deadline."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from psrt.core.errors import PsrtError
from psrt.core.randomness import system_random
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
        self.endpoints = tuple(endpoints)
        self._timeout_s = timeout_s
        self._clients = [
            Client(endpoint, 0, system_random.getrandbits(63), "grpc", pb.Hello(), retry=_ONCE)
            for endpoint in endpoints
        ]

    def gather(self) -> ClusterFacts:
        """The facts of all pservers now; takes the timeout at most."""
        if not self._clients:
            return ClusterFacts(())
        with ThreadPoolExecutor(min(_MOST_AT_ONCE, len(self._clients))) as pool:
            return ClusterFacts(tuple(pool.map(self._ask, self._clients)))

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def _ask(self, client: Client) -> PserverFacts | Unreachable:
        try:
            reply = client.call(Method.STATUS, timeout_s=self._timeout_s)
        except PsrtError as error:
            return Unreachable(client.endpoint, error.message, error.code.name, error.hint)
        status = json.loads(reply.header.status_json)
        return PserverFacts.of(client.endpoint, time.monotonic(), status, time.time())


class PlanGatherer:
    """Facts of a job, gathered by one of its pservers: its own, and those of the others.

    `own` returns the content of STATUS here; it names the pservers of the plan, which trainers
    have found. Before there is a plan, the facts are those of this pserver at `endpoint`.
    """

    def __init__(self, own: Callable[[], Mapping[str, Any]], timeout_s: float) -> None:
        self.endpoint = "this pserver"
        self._own, self._timeout_s = own, timeout_s
        self._others = Gatherer((), timeout_s)

    def gather(self) -> ClusterFacts:
        """The facts of all pservers, in the order of the plan."""
        status = json.loads(json.dumps(self._own()))
        plan: Mapping[str, int] = status.get("pservers", {})
        mine = [each for each, found in plan.items() if found == status.get("incarnation")]
        here = mine[0] if mine else self.endpoint
        facts = PserverFacts.of(here, time.monotonic(), status, time.time())
        self._meet([endpoint for endpoint in plan if endpoint != here])
        found = {each.endpoint: each for each in self._others.gather().pservers}
        return ClusterFacts(tuple({**dict.fromkeys(plan, facts), here: facts, **found}.values()))

    def close(self) -> None:
        self._others.close()

    def _meet(self, others: Sequence[str]) -> None:
        """Ask these pservers from now on."""
        if self._others.endpoints != tuple(others):
            self._others.close()
            self._others = Gatherer(others, self._timeout_s)


def others_of_plan(facts: ClusterFacts) -> list[str]:
    """Endpoints of pservers of the plan that were not asked.

    One that was asked by another name for its host is recognised by the incarnation of its tables.
    """
    asked = {each.endpoint for each in facts.pservers}
    known = {each.incarnation for each in facts.reached}
    plan = {name: number for each in facts.reached for name, number in each.pservers.items()}
    return [name for name, number in plan.items() if name not in asked and number not in known]
