"""Collective training by fleet: every name raises `ConfigError` at its first use."""

from __future__ import annotations

from typing import NoReturn

from psrt.fluid.names import refused


def __getattr__(name: str) -> NoReturn:
    raise refused(
        "fleet.collective",
        name,
        "collective training",
        "Use fleet of psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler with "
        "DistributedStrategyFactory.create_sync_strategy(): the same updates, with pservers.",
    )
