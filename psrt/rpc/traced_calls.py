"""Spans of calls: that of a caller, which the header names, and that of the pserver below it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from psrt.core import tracing
from psrt.rpc import pb
from psrt.rpc.methods import NAMES, UNKNOWN
from psrt.rpc.serving import Peer

_NOTHING = nullcontext()


def span_of_carrier(header: pb.Header, where: str) -> AbstractContextManager[None]:
    """A span of a call to `where`, inside a traced step; the header names it."""
    return _NOTHING if tracing.current() is None else _named(header, where)


def span_of_request(header: pb.Header, peer: Peer) -> AbstractContextManager[None]:
    """A span of a call that came in with this header, if its caller is traced, and admitted."""
    if not header.traceparent or peer.grant is None:
        return _NOTHING
    method = NAMES.get(header.method, UNKNOWN)
    facts = {"rpc.method": method, "psrt.trainer": header.trainer}
    return tracing.span_of_call("serve", header.traceparent, **facts)


@contextmanager
def _named(header: pb.Header, where: str) -> Iterator[None]:
    facts = {"rpc.method": NAMES[header.method], "server.address": where}
    with tracing.span("carrier", "client", **facts):
        header.traceparent = tracing.traceparent()
        yield
