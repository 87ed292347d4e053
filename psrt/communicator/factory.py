"""Constructor of the communicator of a mode."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from psrt.communicator.async_ import AsyncCommunicator, SspCommunicator
from psrt.communicator.base import Communicator
from psrt.communicator.geo import GeoCommunicator, LocalParameters
from psrt.communicator.requests import KeptCalls, PserverGroup, RetainedPushes
from psrt.communicator.sync import HalfAsyncCommunicator, SyncCommunicator
from psrt.core.errors import ConfigError, InternalError
from psrt.core.precision import WirePrecision
from psrt.core.specs import Async, Collective, CommunicationMode, Geo, HalfAsync, Ssp, Sync
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
    own: LocalParameters | None = None,
    wire: WirePrecision | None = None,
    retained_bytes: int = 0,
    kept_calls: KeptCalls | None = None,
    gives_gradients: bool = False,
) -> Communicator:
    """A communicator for one trainer; `clients` are one per endpoint, in the order of the plan.

    `on_wait` receives the name of a pserver that `start` still waits for. The caller closes the
    clients. `own` are the parameters that the trainer updates itself, for `Geo` only. `wire` is the
    precision of tensors in calls, float32 by default. Pushes are kept in up to `retained_bytes`
    until they are durable, 0 = not at all; `kept_calls` are sent again with them. A caller that
    `gives_gradients` never writes to one after `finish`, so none is copied. Raises `ConfigError`
    for `Geo` without `own`, or with backups.
    """
    if wire is not None and isinstance(mode, Geo):
        wire = wire.only_dense([spec.name for spec in plan.sparse])
    _check_backups(mode, clients)
    deltas = clients[0].hello.durability in ("delta", "replica")
    retained = RetainedPushes(clients, retained_bytes, deltas) if retained_bytes else None
    limits = {"call_timeout_s": call_timeout_s}
    pservers = PserverGroup(
        plan, clients, **limits, wire=wire, retained=retained, kept_calls=kept_calls
    )
    try:
        return _of_mode(mode, pservers, on_wait, own, gives_gradients)
    except BaseException:
        pservers.close()
        raise


def _of_mode(
    mode: CommunicationMode,
    pservers: PserverGroup,
    on_wait: Callable[[str], None],
    own: LocalParameters | None,
    gives_gradients: bool,
) -> Communicator:
    match mode:
        case Sync():
            return SyncCommunicator(pservers, on_wait)
        case HalfAsync():
            return HalfAsyncCommunicator(pservers, on_wait)
        case Async():
            return AsyncCommunicator(mode, pservers, on_wait, gives_gradients)
        case Ssp():
            return SspCommunicator(mode, pservers, on_wait, gives_gradients)
        case Geo():
            if own is None:
                raise ConfigError(
                    "mode Geo trains on the trainer, but no parameters of its own were given",
                    hint="Give make() the parameters that the executor trains.",
                )
            return GeoCommunicator(mode, pservers, on_wait, own)
        case Collective():
            raise InternalError("mode collective has no pservers")


def _check_backups(mode: CommunicationMode, clients: Sequence[Client]) -> None:
    if isinstance(mode, Geo) and clients[0].hello.durability == "replica":
        raise ConfigError(
            "mode geo has no backups: each trainer holds a copy of the parameters, and a backup "
            "that takes over does not know what each of them has pulled.",
            hint="Set durability = delta or cut in [job]: a killed pserver is started again.",
        )


__all__ = ["make"]
