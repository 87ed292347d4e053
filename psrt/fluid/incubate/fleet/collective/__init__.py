"""Collective training by fleet: not here, and said so at the first use of a name."""

from __future__ import annotations

from typing import NoReturn

from psrt.core.errors import ConfigError


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):  # the import system asks for its own names
        raise AttributeError(name)
    raise ConfigError(
        f"fleet.collective.{name} is collective training, which psrt.fluid does not have.",
        hint="Use fleet of psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler with "
        "DistributedStrategyFactory.create_sync_strategy(): the same updates, with pservers.",
    )
