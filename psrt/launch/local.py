"""A cluster on this host: pservers, then trainers, as child processes that run and end together.

`run` starts the commands of `Plan`, reports exits, signals and time to `Supervisor`, and executes
its instructions. One thread runs one loop: a turn waits at most `_TURN_S` for output of trainer 0
and then checks everything else.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from psrt.config.load import Loaded, environment, load_job
from psrt.config.sections import LaunchConfig
from psrt.core.clock import Clock, MonotonicClock
from psrt.core.errors import ConfigError, DeadlineError, PsrtError
from psrt.launch import report
from psrt.launch.outputs import check_report, make_directory, write_report
from psrt.launch.plan import (
    PSERVER,
    PSRT,
    RECOVER,
    TRAINER,
    ChildId,
    Command,
    Plan,
    again_of,
    check_restarts,
    standing_by,
)
from psrt.launch.processes import Follower, Process, Standby
from psrt.launch.ready_files import TrainersOf, endpoint_in, no_trainers, trainers_in
from psrt.launch.supervise import Instruction, Phase, Recover, StandBy, Supervisor, Terminate

Say = Callable[[str], None]
_FOLLOWED = ChildId(TRAINER, 0)
_COORDINATOR = ChildId(PSERVER, 0)
_TURN_S = 0.05


def run(
    loaded: Loaded[LaunchConfig],
    *,
    say: Say,
    program: Sequence[str] = PSRT,
    clock: Clock | None = None,
) -> int:
    """Run a job to its end; returns 0 for success, 128 + n if signal n ended it.

    Raises `JobError` when a child failed, `DeadlineError` when the pservers did not get ready.
    """
    config, clock = loaded.config, clock or MonotonicClock()
    # A mistake in the job raises here, not in the log of every child.
    job = load_job(config.job).config
    is_durable = job.retained_bytes > 0
    check_restarts(config, job)
    plan = Plan(loaded, environment(), program)
    make_directory("log_dir", config.log_dir)
    make_directory("report", str(Path(config.report).parent))
    make_directory("profile", str(Path(config.profile).parent))
    check_report(config.report)
    recoveries = config.recoveries if is_durable else 0
    supervisor = Supervisor(config.grace_s, plan.cut_s, recoveries, config.restarts, config.standby)
    # With backups a pserver that is started again is empty: it becomes a backup itself.
    again = () if job.durability == "replica" else (RECOVER,)
    cluster = LocalCluster(supervisor, clock, say, again)
    error, started_at = None, clock.now()
    try:
        with cluster:
            _train(cluster, plan, say)
        cluster.check()
    except PsrtError as failed:
        error = failed
    code = error.spec.exit_code if error else cluster.exit_code
    say(f"\n{report.table(cluster.processes)}")
    try:
        write_report(
            config.report, report.merged(cluster.processes, code, clock.now() - started_at)
        )
    except ConfigError as unwritten:
        say(unwritten.message)
        error = error or unwritten
    if error:
        raise error
    return code


def _train(cluster: LocalCluster, plan: Plan, say: Say) -> None:
    config = plan.config
    cluster.start(plan.pservers())
    say(f"started {config.pservers} pservers; logs are in {config.log_dir}")
    endpoints = cluster.wait_ready(config.ready_timeout_s)
    if endpoints:
        cluster.start(plan.trainers(endpoints))
        if plan.cut_s:
            cluster.follow_resizes(partial(plan.trainers, endpoints), config.trainers)
        say(f"pservers serve on {', '.join(endpoints)}; started {config.trainers} trainers")
    cluster.wait_ended()


class LocalCluster:
    """The children of one launch, in the order of their start.

    Within its `with` block, SIGINT and SIGTERM go to the supervisor instead of raising, and SIGUSR1
    to the first pserver; after it no child runs. A pserver that is started again has flags `again`.
    """

    def __init__(
        self, supervisor: Supervisor, clock: Clock, say: Say, again: Sequence[str] = (RECOVER,)
    ) -> None:
        self.processes: list[Process] = []
        self._supervisor, self._again = supervisor, again
        self._standby: Standby | None = None
        self._follower = Follower(say)
        self._clock = clock
        self._say = say
        self._signals: list[int] = []
        self._exits = ExitStack()
        self._trainers = 0  # 0: their number does not change
        self._trainers_of: TrainersOf = no_trainers

    def __enter__(self) -> LocalCluster:
        self._exits.enter_context(_captured(self._signals))
        self._exits.callback(self._follower.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    @property
    def exit_code(self) -> int:
        """The exit code of a launch in which no child failed."""
        number = self._supervisor.outcome.signal
        return 0 if number is None else 128 + number

    def start(self, commands: Iterable[Command]) -> None:
        for command in commands:
            start = self._follower.start if command.child == _FOLLOWED else Process
            process = start(command, now=self._clock.now())
            self._exits.callback(process.close)
            self.processes.append(process)
            self._supervisor.started(command.child)

    def follow_resizes(self, trainers_of: TrainersOf, trainers: int) -> None:
        """Start trainers when the job, which has `trainers`, goes on with more of them."""
        self._trainers_of, self._trainers = trainers_of, trainers

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

    def _give_up_on(self, late: Sequence[Process], timeout_s: float) -> NoReturn:
        names = ", ".join(str(process.child) for process in late)
        self._execute(self._supervisor.give_up(self._clock.now()))
        self.wait_ended()
        raise DeadlineError(
            f"{names} did not serve within {timeout_s:g} s; psrt stopped all pservers.",
            hint=f"Read {late[0].command.log}. The first start compiles kernels: raise "
            "--ready-timeout-s on a slow host.",
        )

    def _turn(self) -> None:
        """Handle output, exits, signals and time once."""
        self._follower.pump(_TURN_S)
        now = self._clock.now()
        # Pservers come first: when both sides of a connection are gone, the pserver is the cause.
        for process in self.processes:
            if process.has_just_ended(now):
                code = process.code or 0
                self._execute(self._supervisor.exited(process.child, code, now))
        while self._signals:
            self._handle(self._signals.pop(0), now)
        if self._standby is not None and self._standby.has_ended:
            self._standby = None
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
        if number != signal.SIGUSR1:
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
        self._say(f"{child} was killed and is started again; see {killed.command.log}")
        again = self._started_again(killed)
        again.endpoint = killed.endpoint
        self._exits.callback(again.close)
        self.processes[index] = again
        self._supervisor.started(child)

    def _started_again(self, killed: Process) -> Process:
        """A new process with the command of a killed one; a pserver's may have stood by."""
        command = again_of(killed.command, killed.endpoint, self._again)
        now = self._clock.now()
        if killed.child.role == PSERVER:
            again, self._standby = Process(command, now=now, standby=self._standby), None
            return again
        start = self._follower.start if killed.child == _FOLLOWED else Process
        return start(command, now=now)

    def _stand_by(self) -> None:
        """Start a process that waits to take the place of any killed pserver."""
        pserver = next(each for each in self.processes if each.child.role == PSERVER)
        self._standby = Standby(standing_by(pserver.command))
        self._exits.callback(self._standby.close)


def _names(children: Iterable[ChildId]) -> str:
    return ", ".join(map(str, children))


@contextmanager
def _captured(signals: list[int]) -> Iterator[None]:
    """Append SIGINT, SIGTERM and SIGUSR1 to `signals`; restores the former handlers at the end."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    before = [signal.signal(number, lambda caught, _: signals.append(caught)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
