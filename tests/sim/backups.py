"""Pservers with backups: their processes, and the tables of the part that each one serves."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import SavedCut, Settings
from psrt.pserver.replicas import PartHost
from psrt.pserver.serving.service import PserverService
from tests.sim.world import Process

if TYPE_CHECKING:
    from tests.sim.cluster import SimCluster, SimPserver

EVERY_S = 0.02


def start_with_backups(
    cluster: SimCluster,
    pserver: SimPserver,
    process: Process,
    cuts: tuple[Settings | None, SavedCut | None],
) -> None:
    """Let `process` serve its part, and back up others; it makes `cuts`, and begins with one."""
    dial = cluster.network.dial(process)
    host = PartHost(
        partial(PserverService, stripes=1, wait_timeout_s=10.0, carrier=dial),
        lambda error: cluster.pserver_ended(pserver, process, error),
        EVERY_S,
        CrashReport(),
        cuts[0],
        dial,
        resumed=cuts[1],
    )
    pserver.host, pserver.service = host, host.own
    host.start()
    cluster.network.listen(pserver.endpoint, process, host.handle)


def is_backed_up(cluster: SimCluster, pserver: SimPserver) -> bool:
    """True if another process has a copy of each part that `pserver` serves at present."""
    if pserver.host is None:
        return False
    number = cluster.pservers.index(pserver)
    epochs = {each["part"]: each for each in pserver.host.describe()}
    served = {part: each["epoch"] for part, each in epochs.items() if each["role"] == "serves"}
    if number not in epochs:
        served[number] = 0
    copies = {
        (each["part"], each["epoch"])
        for other in cluster.pservers
        if other is not pserver and other.host is not None
        for each in other.host.describe()
        if each["role"] == "copy"
    }
    return set(served.items()) <= copies


def services_of(cluster: SimCluster) -> list[PserverService]:
    """The service of each part in its newest epoch."""
    newest: dict[int, tuple[int, PserverService]] = {}
    for number, pserver in enumerate(cluster.pservers):
        assert pserver.host is not None
        newest.setdefault(number, (0, pserver.host.own))
        for part, (epoch, service) in pserver.host.served().items():
            if epoch > newest.get(part, (-1, None))[0]:
                newest[part] = epoch, service
    return [service for _, service in newest.values()]
