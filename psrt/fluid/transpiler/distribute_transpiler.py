"""Fluid's `DistributeTranspiler`, over `psrt.partition.transpiler`.

`transpile` makes the given program a trainer's: running it connects to the pservers. A pserver's
program has no ops; running it serves in this process. Its startup program does nothing, because
tables compute their initial values from their specs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from psrt.config.group_roles import selected_device
from psrt.config.load import environment
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.specs import Collective, CommunicationMode
from psrt.fluid.framework import FluidProgram, default_main_program, default_startup_program
from psrt.fluid.names import Variable
from psrt.fluid.transpiler.runtime_configs import ServerRuntimeConfig
from psrt.partition import transpiler as _psrt
from psrt.partition.slicing import cut
from psrt.partition.transpiler_config import DistributeTranspilerConfig, mode_of


class DistributedMode(IntEnum):
    """Modes of a job by Fluid's numbers; a program's own is that it was transpiled for."""

    SYNC = 0
    ASYNC = 1
    HALF_ASYNC = 2
    GEO = 3


class FluidTranspiler:
    """Fluid's `DistributeTranspiler`: `transpile` once, then get the part of this process."""

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        self.config = config or DistributeTranspilerConfig()
        self._transpiler = _psrt.DistributeTranspiler(self.config)
        self._program: FluidProgram | None = None
        self._startup: FluidProgram | None = None

    def transpile(
        self,
        trainer_id: int,
        program: FluidProgram | None = None,
        pservers: str = "127.0.0.1:6174",
        trainers: int | str = 1,
        sync_mode: bool | None = None,
        startup_program: FluidProgram | None = None,
        current_endpoint: str = "127.0.0.1:6174",
        slice_var_up: bool | None = None,
        split_method: Any = None,
        mode: CommunicationMode | None = None,
    ) -> None:
        """Place the parameters of `program` (default: the default main program) on `pservers`.

        `sync_mode`, `slice_var_up` and `split_method` override the config's. `current_endpoint` is
        that of this trainer where the mode of the config is "nccl2" or "collective": `trainers`
        then has the endpoints of all, and there are no pservers. `mode`, psrt's addition, overrides
        the mode flags of the config. Raises `ConfigError` for arguments that no job can have,
        `ProgramError` for a program that is no `Program`.
        """
        program = default_main_program() if program is None else program
        if not isinstance(program, FluidProgram):
            raise ProgramError(
                f"program is of type {type(program).__name__}, which is not a Program.",
                hint="Transpile the Program, and compile what get_trainer_program returns.",
            )
        if slice_var_up is not None:
            self.config.slice_var_up = slice_var_up
        if split_method is not None:
            self.config.split_method = split_method
        mode = mode_of(self.config, sync_mode) if mode is None else mode
        self._startup = startup_program
        if isinstance(mode, Collective):
            endpoints = group_endpoints(trainer_id, trainers, current_endpoint)
            self.transpile_group(trainer_id, program, endpoints, len(endpoints))
            return
        if isinstance(trainers, str):
            raise ConfigError(
                f"trainers is {trainers!r}, which names endpoints as for collectives.",
                hint='Give the number of trainers, or set mode = "collective" in the config.',
            )
        check_initial_arrays(program)
        freeze_untrained(program)
        self._transpiler.transpile(program.graph, trainer_id, pservers, trainers, mode)
        self._take(program)

    def transpile_group(
        self, trainer_id: int, program: FluidProgram, endpoints: Sequence[str], trainers: int
    ) -> None:
        """Make `program` that of a trainer without pservers; psrt's addition.

        `endpoints` are those of all trainers, or that of trainer 0. Raises as `transpile` does.
        """
        freeze_untrained(program)
        self._transpiler.transpile(
            program.graph,
            trainer_id,
            (),
            trainers,
            Collective(),
            trainer_endpoints=endpoints,
            device=selected_device(environment()),
        )
        self._take(program)

    def _take(self, program: FluidProgram) -> None:
        self._program, self._startup = program, self._startup or default_startup_program()
        program.job = self._transpiler.get_trainer_program()

    def get_trainer_program(self, wait_port: bool | None = None) -> FluidProgram:
        """Return the transpiled program: running it trains by pservers.

        `wait_port` overrides the config's, from the next connection on.
        """
        part = self._transpiler.get_trainer_program(wait_port)
        assert self._program is not None
        if wait_port is not None:
            self._program.job = part
        return self._program

    def get_pserver_program(self, endpoint: str) -> FluidProgram:
        """Return the program that serves the tables of the pserver at `endpoint`."""
        program = FluidProgram()
        program.job = self._transpiler.get_pserver_program(endpoint)
        program.origin = self._program or program
        return program

    def get_pserver_programs(self, endpoint: str) -> tuple[FluidProgram, FluidProgram]:
        """Return the pserver's program and its startup program."""
        return self.get_pserver_program(endpoint), self.get_startup_program(endpoint)

    def get_startup_program(
        self,
        endpoint: str = "",
        pserver_program: FluidProgram | None = None,
        startup_program: FluidProgram | None = None,
    ) -> FluidProgram:
        """Return a pserver's, which does nothing; without an endpoint this trainer's."""
        if not endpoint:
            return self._startup or default_startup_program()
        self._transpiler.get_pserver_program(endpoint)
        return FluidProgram()


DistributeTranspiler = FluidTranspiler  # its name in PaddlePaddle


def slice_variable(
    var_list: Sequence[Variable], slice_count: int, min_block_size: int
) -> list[str]:
    """Return `name:index:size` of each block that vars are cut into for `slice_count` pservers."""
    cuts = (
        cut(var.name, var.shape, slice_count, min_block_size=min_block_size, max_block_size=size)
        for var in var_list
        for size in [math.prod(var.shape)]
    )
    return [f"{block.parameter}:{block.index}:{block.size}" for blocks in cuts for block in blocks]


def group_endpoints(trainer_id: int, trainers: int | str, current_endpoint: str) -> list[str]:
    """Return the endpoints of trainers without pservers; raises `ConfigError` unless they fit."""
    listed = [each.strip() for each in str(trainers).split(",") if each.strip()]
    if not isinstance(trainers, str) or not listed:
        raise ConfigError(
            f"trainers is {trainers!r}, but without pservers it names the endpoints of trainers.",
            hint='Write trainers="10.0.0.1:6170,10.0.0.2:6170", the same in every process.',
        )
    if current_endpoint not in listed:
        raise ConfigError(
            f"current endpoint {current_endpoint!r} is not in {','.join(listed)}.",
            hint="Give current_endpoint= as it is listed in trainers.",
        )
    if listed.index(current_endpoint) != trainer_id:
        raise ConfigError(
            f"trainer_id is {trainer_id}, but {current_endpoint} is endpoint "
            f"{listed.index(current_endpoint)} of {','.join(listed)}.",
            hint="List the endpoints of trainers in order of their numbers.",
        )
    return listed


def freeze_untrained(program: FluidProgram) -> None:
    """Mark parameters that no loss trains: they stay as they begin, as in Fluid.

    A program that trains nothing is left as it is, for psrt's transpiler to refuse.
    """
    records = program.graph.parameters
    if any(parameter.optimizer is not None for parameter in records.values()):
        for name, parameter in records.items():
            if parameter.optimizer is None:
                records[name] = dataclasses.replace(parameter, trainable=False)


def check_initial_arrays(program: FluidProgram) -> None:
    """Raise `ProgramError` for a parameter that begins with an array: pservers have only specs."""
    names = program.graph.parameters.keys() & program.initial_arrays
    if names:
        raise ProgramError(
            f"{', '.join(sorted(names))} begins with an array, which pservers do not have: they "
            "compute initial values from an initializer.",
            hint="Train without pservers, or begin with a saved model: fleet.init_server(dir).",
        )


__all__ = ["DistributeTranspiler", "DistributeTranspilerConfig", "DistributedMode"]
__all__ += ["FluidTranspiler", "ServerRuntimeConfig", "slice_variable"]
