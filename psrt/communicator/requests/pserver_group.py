"""Calls of one trainer to all pservers of a plan: push and pull; `job_calls` has the others.

Each call goes to its pservers in parallel and ends when all have answered, or with the first
failure. The caller makes and closes the clients; this object owns the threads.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from psrt.communicator.base import Versions
from psrt.communicator.requests.copies import Copies
from psrt.communicator.requests.endpoint_threads import EndpointThreads, results
from psrt.communicator.requests.job_calls import NO_SPAN, JobCalls, ignore_cut
from psrt.communicator.requests.kept_calls import KeptCalls
from psrt.communicator.requests.lineage import Lineage
from psrt.communicator.requests.recovery import DurablePushes
from psrt.communicator.requests.requests import Request
from psrt.communicator.requests.retained import RetainedPushes
from psrt.communicator.requests.router import Router
from psrt.communicator.requests.snapshots import empty_dense
from psrt.core.counters import Counters
from psrt.core.errors import ConfigError, ErrorCode, TableError
from psrt.core.precision import WirePrecision
from psrt.core.threads import CrashReport
from psrt.core.types import F32, I64
from psrt.partition.buckets import MAX_INFLIGHT
from psrt.partition.plan import PartitionPlan
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import METHODS, Method
from psrt.rpc.wire import Message

T = TypeVar("T")

log = logging.getLogger("psrt.communicator")


class PendingCalls:
    """Calls under way to several pservers, or to buckets of them."""

    def __init__(
        self,
        endpoints: Sequence[int],
        futures: Sequence[Future[dict[str, int]]],
        names: Sequence[str],
    ) -> None:
        self._endpoints, self._futures, self._names = endpoints, futures, names

    @property
    def is_done(self) -> bool:
        """True if `wait` would return, or raise, at once."""
        done = [future for future in self._futures if future.done()]
        return len(done) == len(self._futures) or any(future.exception() for future in done)

    def wait(self, doing: str, timeout_s: float) -> Versions:
        """Wait until all replies are written; returns the versions read."""
        versions = results(self._futures, self._names, doing, timeout_s)
        return {
            (endpoint, table): version
            for endpoint, read in zip(self._endpoints, versions, strict=True)
            for table, version in read.items()
        }


class PserverGroup(JobCalls):
    """All pservers of `plan`; `call_timeout_s` limits every call without a deadline of its own.

    `makes_cuts` is True if the job writes cuts. `proposed_cut` is the newest that the reply to an
    EXCHANGE named. Arrays that are made by `copies` do not change once they are pushed.
    """

    def __init__(
        self,
        plan: PartitionPlan,
        clients: Sequence[Client],
        *,
        call_timeout_s: float,
        wire: WirePrecision | None = None,
        retained: RetainedPushes | None = None,
        kept_calls: KeptCalls | None = None,
    ) -> None:
        endpoints = tuple(client.endpoint for client in clients)
        if endpoints != plan.endpoints:
            raise ConfigError(
                f"clients for {', '.join(endpoints)} do not fit a plan for "
                f"{', '.join(plan.endpoints)}: one client per endpoint, in the order of the plan"
            )
        self.plan = plan
        self.copies = Copies() if retained is None else retained.copies
        self.router = Router(plan, wire, None if retained is None else self.copies)
        self.lineage = Lineage(len(endpoints))
        self.call_timeout_s = call_timeout_s
        self.counters = Counters()
        self.crashes = CrashReport()
        self.proposed_cut = self._resizing_cut = self._trainers_from_it = 0
        self.kept_calls = kept_calls or KeptCalls(plan, clients)
        self.on_cut, self.taken_cut = ignore_cut, 0
        self._clients = tuple(clients)
        self._threads = self.endpoint_threads("pserver")
        if retained is not None:
            self.durable = DurablePushes(clients, retained, call_timeout_s, self.crashes)
        self._pushed = self.counters.counter("push_bytes", "bytes of tensors sent to pservers")
        self._pulled = self.counters.counter("pull_bytes", "bytes of tensors received")
        self._unsaid = self.counters.counter(
            "unsaid_bytes", "bytes of ids not sent again, because a pserver remembered them"
        )
        self._misses = self.counters.counter(
            "id_lists_missed", "pushes repeated with ids, because a pserver had forgotten them"
        )

    @property
    def is_hurried(self) -> bool:
        """True if this process was asked to end."""
        return any(client.is_hurried for client in self._clients)

    def endpoint_threads(self, purpose: str, threads: int = 1) -> EndpointThreads:
        """Further threads for each pserver, for calls that must not queue behind others."""
        threads = max(threads, MAX_INFLIGHT) if self.router.has_buckets else threads
        return EndpointThreads(self.plan.endpoints, purpose, self.crashes, threads)

    def pull_dense(
        self, dense: Mapping[str, F32], timeout_s: float | None = None, *, exact: bool = True
    ) -> Versions:
        """Fill whole parameters, in float32 or, unless `exact`, as they travel in each step."""
        requests = self.router.requests()
        self.router.pull_dense(requests, dense, exact)
        self.lineage.stamp_reads(requests)
        return self.call(Method.PULL, requests, timeout_s)

    def pull_all_dense(self, timeout_s: float) -> dict[str, F32]:
        """All dense parameters in new float32 arrays."""
        dense = empty_dense(self.plan.dense_shapes)
        self.pull_dense(dense, timeout_s)
        return dense

    def pull_rows(self, wanted: Mapping[str, I64]) -> tuple[dict[str, F32], Versions]:
        """Rows (n, width) of distinct ids (n,) per table, and the versions read."""
        requests = self.router.requests()
        rows = self.router.pull_rows(requests, wanted)
        self.lineage.stamp_reads(requests)
        return rows, self.call(Method.PULL, requests)

    def call(
        self,
        method: Method,
        requests: Sequence[Request],
        timeout_s: float | None = None,
        threads: EndpointThreads | None = None,
    ) -> Versions:
        """Send and wait, for `call_timeout_s` by default.

        With a single pserver the calling thread sends: waking another thread costs more than the
        rest of a small call. With several it must be free to raise the first failure.
        """
        timeout_s = self.call_timeout_s if timeout_s is None else timeout_s
        asked = self._asked(method, requests)
        if len(self._clients) == 1 and len(asked) == 1:
            read = self._call(method, asked[0], timeout_s)
            return {(0, table): version for table, version in read.items()}
        answer = self._submit(threads or self._threads, method, asked, timeout_s)
        return answer.wait(method.name, timeout_s)

    def submit(
        self,
        threads: EndpointThreads,
        method: Method,
        requests: Sequence[Request],
        timeout_s: float,
    ) -> PendingCalls:
        """Send without waiting; pservers with an empty request are left out."""
        return self._submit(threads, method, self._asked(method, requests), timeout_s)

    def _asked(self, method: Method, requests: Sequence[Request]) -> list[Request]:
        """The requests to send; pushes among them get their keys, and are kept if durable."""
        asked = [request for request in requests if _is_asked(method, request)]
        if not METHODS[method].has_push_key:
            return asked
        if self.durable is not None:
            self.durable.keep(method, asked)
            return asked
        for request in asked:
            request.header.push_key.CopyFrom(self._clients[request.endpoint].next_push_key())
        return asked

    def _submit(
        self, threads: EndpointThreads, method: Method, asked: Sequence[Request], timeout_s: float
    ) -> PendingCalls:
        futures = [
            threads.submit(request.endpoint, partial(self._call, method, request, timeout_s))
            for request in asked
        ]
        endpoints = [request.endpoint for request in asked]
        return PendingCalls(endpoints, futures, [self.plan.endpoints[i] for i in endpoints])

    def close(self) -> None:
        if self.durable is not None:
            self.durable.close()
        self._threads.close()

    def _call(self, method: Method, request: Request, timeout_s: float) -> dict[str, int]:
        log.debug("%r to %s", method, self._clients[request.endpoint].endpoint)
        with NO_SPAN if self.timeline is None else self.span(request.purpose):
            reply = self._send(method, request, timeout_s)
        self._seen(reply.header.cut)
        if self.durable is not None:
            self.durable.durable(request.endpoint, reply.header.durable_to)
        self._pushed.add(request.tensor_bytes)
        self._unsaid.add(request.unsaid_bytes)
        self._pulled.add(sum([tensor.nbytes for tensor in reply.tensors]))
        return request.receive(reply)

    def _seen(self, cut: pb.Cut) -> None:
        self.proposed_cut = max(self.proposed_cut, cut.number)
        self.announced(cut)
        if self.durable is not None:
            self.durable.completed(cut.complete)

    def _send(self, method: Method, request: Request, timeout_s: float) -> Message:
        """The reply; sends remembered ids after all if the pserver has forgotten them.

        A pserver refuses such a push before it admits it, so the retry keeps the push key.
        """
        send = partial(
            self._clients[request.endpoint].call,
            method,
            header=request.header,
            tensors=request.tensors,
            into=request.into,
            timeout_s=timeout_s,
        )
        try:
            return send()
        except TableError as error:
            if error.code is not ErrorCode.ID_LIST_UNKNOWN or not request.send_all_ids():
                raise
            log.debug("%s: %s", self.plan.endpoints[request.endpoint], error.message)
        self._misses.add()
        self.router.known_ids.missed(request.endpoint)
        return send()


def _is_asked(method: Method, request: Request) -> bool:
    """False for an empty request that counts no steps."""
    may_be_left_out = method is Method.PULL or (method is Method.PUSH and not request.header.step)
    return not (request.is_empty and may_be_left_out)
