"""From one program to the part of every process of a job, with Fluid's names.

    transpiler = DistributeTranspiler(config)
    transpiler.transpile(program, trainer_id, pservers="a:6170,b:6170", trainers=2)
    transpiler.get_pserver_program("a:6170")   the tables of the pserver at a:6170
    transpiler.get_trainer_program()           the program of this trainer, and the plan

All processes of a job transpile one program with equal arguments, except for the id, and get equal
plans: nothing is sent here. Unlike Fluid's, a pserver program has no ops, since a pserver runs no
programs, and a startup program has nothing to run: the spec of a table defines its initial values.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from psrt.core.errors import ConfigError, ProgramError
from psrt.core.precision import WirePrecision
from psrt.core.specs import Collective, CommunicationMode, TableSpec, WarmStart, to_json
from psrt.graph.program import Program
from psrt.partition.arguments import endpoints_of, trainer_numbers, yes_or_no
from psrt.partition.dispatchers import chosen
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.partition.transpile import program_for
from psrt.partition.transpiler_config import DistributeTranspilerConfig, checked_mode, mode_of

JOB_ID = "transpiled"


@dataclass(frozen=True)
class TrainerProgram:
    """One trainer's part of a job.

    `program` is the user's program without the updates that happen on pservers. With `wait_port`
    the trainer waits for pservers that are not up yet. `wire` is the precision of tensors in calls.
    `retained_bytes` is memory for pushes that are not durable yet, 0 = none are kept; `durability`
    is that of the job. In mode Collective the endpoints of the plan are those of trainers, and
    gradients travel between GPUs if `device` is one. `run` is the run that this process belongs to,
    empty = it names none.
    """

    program: Program
    plan: PartitionPlan
    mode: CommunicationMode
    trainer_id: int
    trainers: int
    job_id: str
    wait_port: bool = True
    wire: WirePrecision = field(default_factory=WirePrecision)
    retained_bytes: int = 0
    durability: str = "none"
    run: str = ""
    device: int = -1


@dataclass(frozen=True)
class PserverProgram:
    """One pserver's part of a job: `specs` are the tables of the pserver at `endpoint`."""

    endpoint: str
    plan: PartitionPlan
    specs: tuple[TableSpec, ...]
    mode: CommunicationMode
    trainers: int
    job_id: str


@dataclass(frozen=True)
class StartupProgram:
    """The state before a process begins: for a pserver, the tables at `endpoint`.

    A trainer's has no endpoint and no tables: it pulls every parameter when it connects.
    """

    endpoint: str = ""
    specs: tuple[TableSpec, ...] = ()


class DistributeTranspiler:
    """Call `transpile` once, then get the parts; `say` prints the balance if `print_log` is set."""

    def __init__(
        self, config: DistributeTranspilerConfig | None = None, say: Callable[[str], None] = print
    ) -> None:
        self.config = config or DistributeTranspilerConfig()
        self._say = say
        self._made: TrainerProgram | None = None

    def transpile(
        self,
        program: Program,
        trainer_id: int,
        pservers: str | Sequence[str],
        trainers: int = 1,
        mode: CommunicationMode | None = None,
        job_id: str = JOB_ID,
        warm_start: WarmStart | None = None,
        trainer_endpoints: str | Sequence[str] = (),
        device: int = -1,
    ) -> None:
        """Place the parameters of `program` on `pservers`, "host:port,host:port" or a list.

        `mode` defaults to that of the config (`mode_of`). `job_id` names the job in the handshake:
        a pserver refuses trainers of another job. Tables begin with the values of `warm_start`,
        whose source pservers read. In mode Collective there are no pservers, and the trainers are
        at `trainer_endpoints`, one for each or that of trainer 0; gradients travel between GPUs if
        `device` is the number of one. Raises `ConfigError` for impossible arguments, `ProgramError`
        for a program that trains nothing.
        """
        config = self.config
        mode = mode_of(config) if mode is None else checked_mode(mode)
        endpoints = endpoints_of(trainer_endpoints if isinstance(mode, Collective) else pservers)
        trainer_id, trainers = trainer_numbers(trainer_id, trainers)
        _check_program(program)
        plan = build_plan(
            program.parameters.values(),
            endpoints,
            slice_var_up=config.slice_var_up,
            min_block_size=config.min_block_size,
            dispatcher=chosen(config.split_method),
            mode=mode,
        )
        if warm_start is not None:
            plan = replace(plan, warm_start=to_json(warm_start))
        runs = program_for(program, mode)
        self._made = TrainerProgram(
            runs, plan, mode, trainer_id, trainers, job_id, config.wait_port, device=device
        )
        if config.print_log:
            self._say(plan.balance())

    def get_trainer_program(self, wait_port: bool | None = None) -> TrainerProgram:
        """The part of this trainer; `wait_port` overrides the config's."""
        made = self._transpiled()
        if wait_port is None:
            return made
        return replace(made, wait_port=yes_or_no("wait_port", wait_port))

    def get_pserver_program(self, endpoint: str) -> PserverProgram:
        """The part of the pserver at `endpoint`; raises `ConfigError` for an unknown one."""
        made = self._transpiled()
        plan = made.plan
        if isinstance(made.mode, Collective):
            raise ConfigError(
                f"{endpoint!r} was asked for the program of a pserver, but the job trains without.",
                hint="In mode collective every process runs the program of a trainer.",
            )
        if endpoint not in plan.endpoints:
            near = difflib.get_close_matches(str(endpoint), plan.endpoints, 1, cutoff=0.8)
            raise ConfigError(
                f"{endpoint!r} is no pserver of this job, which has {', '.join(plan.endpoints)}.",
                hint=f"Did you mean {near[0]}?"
                if near
                else "The endpoint of a pserver must be among those given to transpile, letter by "
                "letter.",
            )
        specs = tuple(plan.specs_for(endpoint))
        return PserverProgram(endpoint, plan, specs, made.mode, made.trainers, made.job_id)

    def get_pserver_programs(self, endpoint: str) -> tuple[PserverProgram, StartupProgram]:
        """The part of the pserver at `endpoint`, and its startup program."""
        return self.get_pserver_program(endpoint), self.get_startup_program(endpoint)

    def get_startup_program(self, endpoint: str = "") -> StartupProgram:
        """The startup program of the pserver at `endpoint`, or of this trainer."""
        if not endpoint:
            return StartupProgram()
        return StartupProgram(endpoint, self.get_pserver_program(endpoint).specs)

    def _transpiled(self) -> TrainerProgram:
        if self._made is None:
            raise ProgramError(
                "The transpiler was asked for a program before it was given one.",
                hint="Call transpile(program, trainer_id, pservers, trainers) first.",
            )
        return self._made


def _check_program(program: Program) -> None:
    if not isinstance(program, Program):
        raise ProgramError(
            f"program is of type {type(program).__name__}, which is not a psrt.Program.",
            hint="Give the program that layers were called in, as psrt.program() made it.",
        )
    if not program.trained():
        raise ProgramError(
            "The program trains nothing, so there is nothing to place on pservers.",
            hint="Call minimize(loss) of an optimizer before transpile.",
        )


__all__ = ["DistributeTranspiler", "PserverProgram", "StartupProgram", "TrainerProgram"]
