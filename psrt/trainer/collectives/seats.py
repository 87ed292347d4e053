"""The seat of this process, from settings or from what a launcher exports."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.collective.seat import GroupSeat
from psrt.config.group_roles import attempt, is_hosted
from psrt.config.load import environment
from psrt.core.errors import ConfigError


def seat_of(
    trainer_id: int, trainers: int, endpoints: Sequence[str], device: int = -1
) -> GroupSeat:
    """Return the seat of trainer `trainer_id`; all meet at the first of `endpoints`.

    Raises `ConfigError` without an endpoint, for one that is no `host:port`, and for another number
    of them than one for each trainer, or one for all.
    """
    if not endpoints:
        raise ConfigError(
            "mode collective has no address at which its trainers meet.",
            hint="Give --trainer-endpoints HOST:PORT,HOST:PORT, the same in every trainer; psrt "
            "launch and torchrun do that by themselves.",
        )
    if len(endpoints) not in (1, trainers):
        raise ConfigError(
            f"{len(endpoints)} trainer endpoints were named for {trainers} trainers.",
            hint="Name one endpoint for each trainer, in order of their numbers.",
        )
    host, _, port = endpoints[0].rpartition(":")
    if not (host and port.isdecimal()):
        raise ConfigError(
            f"the trainer endpoint {endpoints[0]!r} is not host:port.",
            hint="Write 10.0.0.1:6170,10.0.0.2:6170.",
        )
    environ = environment()
    hosted = is_hosted(environ, endpoints[0])
    return GroupSeat(trainer_id, trainers, host, int(port), hosted, attempt(environ), device)


__all__ = ["seat_of"]
