"""A cluster: pservers, then trainers, as processes of an engine that run and end together.

`Cluster` starts commands by its engine, reports exits, signals and time to `Supervisor`, and
executes its instructions. One thread runs one loop: a turn waits at most `_TURN_S` for messages of
the engine and then checks everything else.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import NoReturn

from psrt.core.clock import Clock
from psrt.core.errors import DeadlineError
from psrt.launch import report
from psrt.launch.children import Child, Engine
from psrt.launch.plan import PSERVER, ChildId, Command
from psrt.launch.ready_files import TrainersOf, endpoint_in, no_trainers, trainers_in
from psrt.launch.replacements import RECOVER, again_of, standing_by
from psrt.launch.supervise import Instruction, Phase, Recover, StandBy, Supervisor, Terminate

Say = Callable[[str], None]
_COORDINATOR = ChildId(PSERVER, 0)
_TURN_S = 0.05


class Cluster:
    """The children of one launch, in the order of their start; `engine` starts them.

    Within its `with` block, SIGINT and SIGTERM go to the supervisor instead of raising, and SIGUSR1
    to the first pserver; after it no child runs. A pserver that is started again has flags `again`.
    With `limit_signal` that signal ends the job instead, as SIGTERM does: its time limit is near.
    """

    def __init__(
        self,
        engine: Engine,
        supervisor: Supervisor,
        clock: Clock,
        say: Say,
        again: Sequence[str] = (RECOVER,),
        limit_signal: signal.Signals | None = None,
    ) -> None:
        self.processes: list[Child] = []
        self._engine, self._supervisor, self._again = engine, supervisor, again
        self._clock = clock
        self._say = say
        self._limit_signal = limit_signal
        self._signals: list[int] = []
        self._exits = ExitStack()
        self._trainers = 0  # 0: their number does not change
        self._trainers_of: TrainersOf = no_trainers

    def __enter__(self) -> Cluster:
        self._exits.enter_context(captured(self._signals))
        self._exits.callback(self._engine.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def host_of(self, child: ChildId) -> str:
        return self._engine.host_of(child)

    @property
    def has_met_limit(self) -> bool:
        """True if `limit_signal` has ended the job."""
        return self._supervisor.outcome.signal == self._limit_signal is not None

    @property
    def exit_code(self) -> int:
        """The exit code of a launch in which no child failed."""
        number = self._supervisor.outcome.signal
        return 0 if number is None else 128 + number

    def start(self, commands: Iterable[Command]) -> None:
        for command in commands:
            self.processes.append(self._engine.start(command, self._clock.now()))
            self._supervisor.started(command.child)

    def follow_resizes(self, trainers_of: TrainersOf, trainers: int) -> None:
        """Start trainers when the job, which has `trainers`, goes on with more of them."""
        self._trainers_of, self._trainers = trainers_of, trainers

    def wait_open(self, timeout_s: float) -> bool:
        """Return True once the engine can start processes, False if the launch is stopping.

        Raises `DeadlineError` after `timeout_s`.
        """
        deadline = self._clock.now() + timeout_s
        while self._supervisor.phase is Phase.STARTING:
            if self._engine.is_open():
                return True
            if self._clock.now() >= deadline:
                raise DeadlineError(
                    f"{self._engine.name} did not start its processes within {timeout_s:g} s; "
                    "psrt stopped it.",
                    hint="Raise --ready-timeout-s, or see its own messages.",
                )
            self._turn()
        return False

    def wait_ready(self, timeout_s: float) -> list[str]:
        """Return the endpoints of all processes once each serves; empty if the job is stopping.

        Raises `DeadlineError` after `timeout_s`.
        """
        deadline = self._clock.now() + timeout_s
        while self._supervisor.phase is Phase.STARTING:
            for process in self.processes:
                process.endpoint = process.endpoint or endpoint_in(process.command.result)
            late = [process for process in self.processes if not process.endpoint]
            if not late:
                return [process.endpoint for process in self.processes]
            if self._clock.now() >= deadline:
                self._give_up_on(late, timeout_s)
            self._turn()
        return []

    def wait_ended(self) -> None:
        """Return when no child runs.

        There is no deadline here: training may take any time, and the supervisor bounds every other
        phase.
        """
        while self._supervisor.phase is not Phase.ENDED:
            self._turn()

    def check(self) -> None:
        """Raise `JobError` if a child failed the job; call it after the `with` block."""
        culprit = self._supervisor.outcome.culprit
        if culprit is not None:
            raise report.failure(next(p for p in self.processes if p.child == culprit))

    def _give_up_on(self, late: Sequence[Child], timeout_s: float) -> NoReturn:
        names = ", ".join(str(process.child) for process in late)
        self._execute(self._supervisor.give_up(self._clock.now()))
        self.wait_ended()
        raise DeadlineError(
            f"{names} did not serve within {timeout_s:g} s; psrt stopped all pservers.",
            hint=f"Read {late[0].log}. The first start compiles kernels: raise "
            "--ready-timeout-s on a slow host.",
        )

    def _turn(self) -> None:
        """Handle output, exits, signals and time once."""
        self._engine.pump(_TURN_S)
        now = self._clock.now()
        # Pservers come first: when both sides of a connection are gone, the pserver is the cause.
        for process in self.processes:
            if process.has_just_ended(now):
                code = process.code or 0
                self._execute(self._supervisor.exited(process.child, code, now))
        while self._signals:
            self._handle(self._signals.pop(0), now)
        if self._engine.standby_has_ended():
            self._supervisor.standby_ended()
        self._follow_resize()
        self._execute(self._supervisor.tick(now))

    def _follow_resize(self) -> None:
        """Check the ready file of the first pserver for another number of trainers."""
        if not self._trainers:
            return
        coordinator = next(each for each in self.processes if each.child == _COORDINATOR)
        trainers = trainers_in(coordinator.command.result)
        if trainers in (0, self._trainers):
            return
        self._say(f"the job goes on with {trainers} trainers, before: {self._trainers}")
        self._trainers = trainers
        commands = {command.child: command for command in self._trainers_of(trainers)}
        for process in self.processes:
            process.command = commands.get(process.child, process.command)
        for instruction in self._supervisor.resized(trainers):
            ended = [each for each in self.processes if each.child not in instruction.children]
            again = len(ended) < len(self.processes)
            self.processes[:] = ended
            self.start(replace(commands[child], keeps_log=again) for child in instruction.children)

    def _handle(self, number: int, now: float) -> None:
        if number != signal.SIGUSR1 or number == self._limit_signal:
            self._execute(self._supervisor.interrupted(number, now))
        elif self._supervisor.phase is Phase.TRAINING:
            for process in self.processes:
                if process.child == _COORDINATOR:
                    self._say(f"asks {process.child} for a cut")
                    process.send(signal.SIGUSR1)
        else:
            self._say("no cut: no trainer runs")

    def _execute(self, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Recover):
                self._recover(instruction.child)
                continue
            if isinstance(instruction, StandBy):
                self._stand_by()
                continue
            asked = isinstance(instruction, Terminate)
            self._say(f"{'stopping' if asked else 'killing'} {_names(instruction.children)}")
            for process in self.processes:
                if process.child in instruction.children:
                    process.send(signal.SIGTERM if asked else signal.SIGKILL)

    def _recover(self, child: ChildId) -> None:
        index = next(i for i, process in enumerate(self.processes) if process.child == child)
        killed = self.processes[index]
        self._say(f"{child} was killed and is started again; see {killed.log}")
        command = again_of(killed.command, killed.endpoint, self._again)
        again = self._engine.start(command, self._clock.now(), takes_over=True)
        again.endpoint = killed.endpoint
        self.processes[index] = again
        self._supervisor.started(child)

    def _stand_by(self) -> None:
        """Start a process that waits to take the place of any killed pserver."""
        pserver = next(each for each in self.processes if each.child.role == PSERVER)
        self._engine.stand_by(standing_by(pserver.command))


def _names(children: Iterable[ChildId]) -> str:
    return ", ".join(map(str, children))


@contextmanager
def captured(signals: list[int]) -> Iterator[None]:
    """Append SIGINT, SIGTERM and SIGUSR1 to `signals`; restores the former handlers at the end."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    before = [signal.signal(number, lambda caught, _: signals.append(caught)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
