"""Collective training by fleet: names that can be imported, and raise `ConfigError` when used."""

from __future__ import annotations

from psrt.fluid.names import RefusingFleet, refusing, refusing_class

_ROOM = "fleet.collective"
_WHAT = "collective training"
_HINT = (
    "Use fleet of psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler with "
    "DistributedStrategyFactory.create_sync_strategy(): the same updates, with pservers."
)

fleet = RefusingFleet(_ROOM, _WHAT, _HINT)
DistributedStrategy = refusing_class(_ROOM, "DistributedStrategy", _WHAT, _HINT)
CollectiveOptimizer = refusing_class(_ROOM, "CollectiveOptimizer", _WHAT, _HINT)

__getattr__ = refusing(_ROOM, _WHAT, _HINT)
