"""Chooses the communicator of a mode."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from psrt.communicator.async_ import AsyncCommunicator
from psrt.communicator.base import Communicator
from psrt.communicator.pservers import Pservers
from psrt.communicator.sync import SyncCommunicator
from psrt.core.errors import ConfigError
from psrt.core.specs import Async, CommunicationMode, Sync
from psrt.partition.plan import PartitionPlan
from psrt.rpc.client import Client

log = logging.getLogger("psrt.communicator")


def make(
    mode: CommunicationMode,
    plan: PartitionPlan,
    clients: Sequence[Client],
    *,
    call_timeout_s: float,
    on_wait: Callable[[str], None] = log.info,
) -> Communicator:
    """A communicator for one trainer; `clients` are one per endpoint, in the order of the plan.

    `on_wait` is told which pserver `start` still waits for. The caller closes the clients.
    """
    pservers = Pservers(plan, clients, call_timeout_s=call_timeout_s)
    match mode:
        case Sync():
            return SyncCommunicator(pservers, on_wait)
        case Async():
            return AsyncCommunicator(mode, pservers, on_wait)
        case _:
            raise ConfigError(
                f"communication mode {type(mode).__name__} is not offered yet",
                hint='Use mode = "sync" or mode = "async".',
            )
