"""Health of a pserver's process, and its progress in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from psrt.pserver.replicas import PartHost
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire import Message


def check(host: PartHost, server: Server) -> str:
    """Return progress; raises if the server does not work, and waits as long as a call would.

    A call for facts takes the locks that all calls take, and the loop of gRPC has to answer, too.
    """
    server.check()
    reply = host.handle(
        Message(pb.Header(method=Method.STATUS)), Peer("service manager", "here", lasts=False)
    )
    assert not isinstance(reply, Later)
    return describe(json.loads(reply.header.status_json))


def describe(status: Mapping[str, Any]) -> str:
    """The content of STATUS in one line."""
    if not status.get("job_id"):
        return "waits for trainers"
    rows = sum(table.get("rows", 0) for table in status["tables"])
    done = f"round {status['round']:,}" if status["rounds"] else f"step {status['global_step']:,}"
    running = sum(trainer["state"] == "running" for trainer in status["trainers"])
    return f"job {status['job_id']}: {done}, {rows:,} rows, {running} trainers run"
