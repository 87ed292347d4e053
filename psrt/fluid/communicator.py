"""A communicator started by hand: every name raises `ConfigError` at its first use."""

from __future__ import annotations

from psrt.fluid.names import refusing

__getattr__ = refusing(
    "fluid.communicator",
    "a communicator started by hand",
    "The first run of a transpiled program starts its own, and exe.close() or "
    "fleet.stop_worker() ends it; its knobs are those of TrainerRuntimeConfig.",
)
