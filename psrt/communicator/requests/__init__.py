"""requests: files in reading order.

known_ids         Lists of ids that pservers remember, so that a push need not send again what
                  a pull has sent
requests          One request to one pserver: its parts, their tensors, and where the answer
                  goes
residuals         What narrow gradients have lost: kept on the trainer and added to the next
                  one (error feedback)
router            Gradients → parts per pserver, and where the rows and blocks of the answers go
snapshots         The buffers that whole dense parameters arrive in
endpoint_threads  Small threads for each pserver, so that a step talks to all of them at once
pserver_group     All pservers of a plan, as one trainer speaks to them
"""

from __future__ import annotations

from psrt.communicator.requests.endpoint_threads import BACKSTOP_S, EndpointThreads, results
from psrt.communicator.requests.pserver_group import PendingCalls, PserverGroup
from psrt.communicator.requests.requests import Request, count_steps
from psrt.communicator.requests.router import Router
from psrt.communicator.requests.snapshots import Snapshots

__all__ = [
    "BACKSTOP_S",
    "EndpointThreads",
    "PendingCalls",
    "PserverGroup",
    "Request",
    "Router",
    "Snapshots",
    "count_steps",
    "results",
]
