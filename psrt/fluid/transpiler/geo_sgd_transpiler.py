"""`GeoSgdTranspiler`: the transpiler of mode Geo."""

from __future__ import annotations

from typing import Any

from psrt.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig, FluidTranspiler


class GeoSgdTranspiler(FluidTranspiler):
    """`DistributeTranspiler` whose config means Geo, whatever its other flags."""

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        config = config or DistributeTranspilerConfig()
        config.sync_mode, config.geo_sgd_mode = False, True
        super().__init__(config)

    def transpile(self, *args: Any, **options: Any) -> None:
        """Place the parameters, as `DistributeTranspiler` does; `sync_mode` has no effect."""
        super().transpile(*args, **(options | {"sync_mode": False}))


__all__ = ["GeoSgdTranspiler"]
