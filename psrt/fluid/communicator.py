"""A communicator started by hand: every name raises `ConfigError` at its first use."""

from __future__ import annotations

from typing import NoReturn

from psrt.fluid.names import refused


def __getattr__(name: str) -> NoReturn:
    raise refused(
        "fluid.communicator",
        name,
        "a communicator started by hand",
        "The first run of a transpiled program starts its own, and exe.close() or "
        "fleet.stop_worker() ends it; its knobs are those of TrainerRuntimeConfig.",
    )
