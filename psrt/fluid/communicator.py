"""Fluid's `Communicator`: the connection of a trainer's program, begun and ended by hand.

The first run of a transpiled program begins its own, so `start` is for programs that want it
earlier. Its knobs are those of `TrainerRuntimeConfig`.
"""

from __future__ import annotations

from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.framework import FluidProgram
from psrt.fluid.names import missing
from psrt.fluid.running import connected, disconnect, global_scope
from psrt.fluid.transpiler import DistributedMode
from psrt.partition.transpiler import TrainerProgram


class FluidCommunicator:
    """The connection of `program`, a trainer's part of a transpiled one.

    The other arguments have no effect: the program knows its mode and its pservers. Raises
    `ProgramError` for a program that was not transpiled.
    """

    def __init__(
        self,
        program: FluidProgram,
        mode: DistributedMode | None = None,
        kwargs: Any = None,
        envs: Any = None,
    ) -> None:
        if not isinstance(program, FluidProgram) or not isinstance(program.job, TrainerProgram):
            raise ProgramError(
                "A Communicator was made for a program that is no part of a cluster.",
                hint="Give what DistributeTranspiler.get_trainer_program returns, or "
                "fleet.main_program.",
            )
        self._program = program

    def start(self) -> None:
        """Connect to the pservers; without effect if the program is connected."""
        if not self.is_running():
            connected(self._program, global_scope())

    def stop(self) -> None:
        """Send pending gradients, and complete this trainer."""
        disconnect(self._program)

    def is_running(self) -> bool:
        """Return whether the program is connected."""
        return self._program.connection is not None


Communicator = FluidCommunicator  # its name in PaddlePaddle


__all__ = ["Communicator", "DistributedMode", "FluidCommunicator"]


def __getattr__(name: str) -> object:
    raise missing("fluid.communicator", name, __all__)
