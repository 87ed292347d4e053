"""Collective training by fleet: every name raises `ConfigError` at its first use."""

from __future__ import annotations

from psrt.fluid.names import refusing

__getattr__ = refusing(
    "fleet.collective",
    "collective training",
    "Use fleet of psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler with "
    "DistributedStrategyFactory.create_sync_strategy(): the same updates, with pservers.",
)
