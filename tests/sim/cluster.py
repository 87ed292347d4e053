"""Processes of one history: starts, faults and the keeper.

Pservers are `PserverService`s, trainers run the communicator of their mode over real `Client`s. A
keeper starts killed processes again, as the scenario says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from psrt.coordinator.retention import Retention
from psrt.core import specs
from psrt.core.errors import ErrorCode, PsrtError
from psrt.pserver.checkpoints import SavedCut, Settings, complete_cuts, find_cut, served_job
from psrt.pserver.decisions import PserverState
from psrt.pserver.decisions.member import MemberState
from psrt.pserver.replicas import PartHost
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.storage.local_directory import LocalDirectory
from tests.sim.backups import is_backed_up, start_with_backups
from tests.sim.disk import SimulatedDisk
from tests.sim.ledger import PLAN, Ledger
from tests.sim.network import Network
from tests.sim.passing_rows import visit
from tests.sim.primitives import HeldLock
from tests.sim.scenario import ALL_MODES, ProcessFault, Scenario, Strike
from tests.sim.slow_disk import SlowDisk
from tests.sim.training import CALL_TIMEOUT_S, JobHasEndedError, WasInterruptedError, train
from tests.sim.world import Process, World
from tests.support.geo import OwnByHand, with_add

WAIT_TIMEOUT_S = 10.0
INTERRUPTED = "interrupted"
QUIET_S = 0.5
"""Seconds after the end of a job in which something may still happen, if all trainers are over."""
KEPT_CUTS, FULL_EVERY = 2, 4


@dataclass
class SimPserver:
    """A pserver of the cluster: its present process, and the tables of that."""

    endpoint: str
    process: Process
    service: PserverService | None = None
    host: PartHost | None = None  # with backups
    is_over: bool = False
    ended_s: float = math.inf  # when its job has ended
    starts: int = 0
    killed_s: float = 0.0
    is_anew: bool = False  # was started again without tables
    resumed: int = 0  # the cut that its first process began with

    def waits_for_newcomers(self) -> bool:
        """True if it waits for processes still to be started, as one started by hand does.

        Before the first trainer, and for trainers it has never seen when no other runs. Processes
        that have left do not keep it, whatever the policy. It ends by itself when all trainers have
        completed, perhaps after a last cut.
        """
        if self.service is None:
            return True
        try:
            return not self.service.is_recording and self.service._runner.ask(_waits_for_newcomers)
        except HeldLock:  # it freezes its tables
            return False


@dataclass
class SimTrainer:
    """A trainer of the cluster and its present process."""

    number: int
    process: Process
    is_over: bool = False
    starts: int = 0
    asked: set[int] = field(default_factory=set)  # processes that were asked to end


@dataclass
class SimCluster:
    """The processes of one history."""

    world: World
    scenario: Scenario
    ends: dict[str, str] = field(default_factory=dict)
    cuts: int = 0

    def __post_init__(self) -> None:
        scenario = self.scenario
        self.mode = ALL_MODES[scenario.mode]
        self.is_geo = isinstance(self.mode, specs.Geo)
        self.plan = with_add(PLAN) if self.is_geo else PLAN
        self.replicas: list[tuple[dict[str, np.ndarray], OwnByHand]] = []
        self.network = Network(self.world, dict(scenario.links), scenario.carrier)
        self.ledger = Ledger(len(scenario.steps))
        self.stopping: set[int] = set()
        self.trained_s = math.inf  # when all trainers had begun to stop
        self.disk = SimulatedDisk(scenario.seed)
        self.disk.failing_syncs = set(scenario.failing_syncs)
        self.pservers = [SimPserver(e, Process(e)) for e in PLAN.endpoints]
        self.trainers = [SimTrainer(n, Process("")) for n in range(len(scenario.steps))]
        self._start()

    def has_ended(self) -> bool:
        for trainer in self.trainers:
            if not trainer.is_over:
                return False
        return all(map(self._is_over, self.pservers))

    def _is_over(self, pserver: SimPserver) -> bool:
        """True if nothing follows at a pserver, once all trainers are over."""
        if pserver.ended_s < math.inf:
            return pserver.is_over or self.world.now > pserver.ended_s + QUIET_S
        return pserver.is_over or pserver.waits_for_newcomers()

    # --- starts and faults -----------------------------------------------------------------------

    def _start(self) -> None:
        now = self.world.now
        for pserver in self.pservers:
            self._start_pserver(pserver)
        for trainer, after_s in zip(self.trainers, self.scenario.joins_s, strict=True):
            self.world.at(now + after_s, lambda trainer=trainer: self._start_trainer(trainer))
        for after_s in self.scenario.cuts_s:
            self.world.at(now + after_s, self._ask_for_a_cut)
        for strike in self.scenario.strikes:
            self.world.at(now + strike.at_s, lambda strike=strike: self._strike(strike))

    def _strike(self, strike: Strike) -> None:
        role, number = strike.name.split()
        one = (self.pservers if role == "pserver" else self.trainers)[int(number)]
        if strike.name in self.ends or one.process.is_dead or not one.starts:
            return
        self.world.note(str(strike))
        if strike.fault is ProcessFault.INTERRUPT:
            assert isinstance(one, SimTrainer), "only trainers are asked to end"
            one.asked.add(one.starts - 1)
            return
        if strike.fault is ProcessFault.PAUSE:
            self.world.pause(one.process)
            process = one.process
            self.world.at(self.world.now + strike.for_s, lambda: self.world.resume(process))
            return
        self.world.kill(one.process)
        if isinstance(one, SimPserver):
            one.killed_s = self.world.now
            one.is_anew |= self.scenario.has_backups and not is_backed_up(self, one)
        if not strike.for_s:
            one.is_over = True
            self.ends[strike.name] = "killed"
            return
        start = self._start_pserver if role == "pserver" else self._start_trainer
        self.world.at(self.world.now + strike.for_s, lambda: start(one))

    def _ask_for_a_cut(self) -> None:
        """A user calls CHECKPOINT of the first pserver."""
        process = Process("user")

        def main() -> None:
            dial, hello = self.network.dial(process), pb.Hello()
            client = Client(self.plan.endpoints[0], 0, 1, dial, hello)
            for _ in range(self.scenario.cuts_in_a_row):
                try:
                    reply = client.call(Method.CHECKPOINT, timeout_s=CALL_TIMEOUT_S)
                    self.world.note(f"cut {reply.header.cut.number} is complete")
                    self.cut_reported(int(reply.header.cut.number))
                except PsrtError as error:
                    self.world.note(f"no cut: {described(error)}")
                    if error.code is not ErrorCode.CUT_GIVEN_UP:
                        break
            client.close()

        self.world.spawn(process, "main", main)

    def cut_reported(self, number: int) -> None:
        """Record that a user was told of a complete cut."""

    def directory(self, owner: str) -> LocalDirectory:
        return LocalDirectory(Path("/checkpoints"), SlowDisk(self.world, self.disk), owner)

    def _cut_settings(self, owner: str) -> Settings:
        retention = Retention(KEPT_CUTS)
        return Settings(
            self.directory(owner),
            retention=retention,
            timeout_s=WAIT_TIMEOUT_S,
            full_every=FULL_EVERY,
            at_end=self.scenario.ends_with_cut,
            delta_every_s=self.scenario.delta_every_s,
        )

    # --- pservers --------------------------------------------------------------------------------

    def _start_pserver(self, pserver: SimPserver) -> None:
        pserver.starts += 1
        process = pserver.process = Process(pserver.endpoint)

        def main() -> None:
            self.world.note(f"{pserver.endpoint} starts")
            try:
                self._serve(pserver, process)
            except PsrtError as error:
                self.pserver_ended(pserver, process, error)

        self.world.spawn(process, "main", main)

    def _serve(self, pserver: SimPserver, process: Process) -> None:
        """Begin to serve; raises the error of a predecessor's files that cannot be recovered."""
        name = pserver.endpoint.partition(":")[0]
        if self.scenario.has_backups:
            start_with_backups(self, pserver, process, self.cuts_of_backups(pserver))
            return
        directory = self.directory(pserver.endpoint)
        is_again = self.scenario.is_durable and pserver.starts > 1
        recovered = served_job.take_over(directory, name) if is_again else None
        pserver.is_anew |= pserver.starts > 1 and recovered is None
        service = PserverService(
            stripes=1,
            wait_timeout_s=WAIT_TIMEOUT_S,
            on_end=lambda error: self.pserver_ended(pserver, process, error),
            cuts=self._cut_settings(pserver.endpoint),
            resumed=self._resumed(pserver, recovered is not None),
            carrier=self.network.dial(process),
            recovered=recovered,
        )
        service.serves_as(name)
        pserver.service = service
        service.start()
        self.network.listen(pserver.endpoint, process, service.handle)
        if self.scenario.cuts_in_a_row > 1:
            visit(self.world, lambda: service.tables)

    def _resumed(self, pserver: SimPserver, is_recovered: bool) -> SavedCut | None:
        """The cut that the flags of a process name; only one that recovers has some here.

        They are `--resume auto`. Reading it passes no time.
        """
        directory = LocalDirectory(Path("/checkpoints"), self.disk, "flags")
        has_some = is_recovered and complete_cuts(directory)
        return find_cut(directory, "latest") if has_some else None

    def cuts_of_backups(self, pserver: SimPserver) -> tuple[Settings | None, SavedCut | None]:
        """Settings of cuts, and the cut to begin with, of a pserver with backups."""
        return None, None

    def pserver_ended(self, pserver: SimPserver, process: Process, error: PsrtError | None) -> None:
        """The daemon leaves some seconds after its job has ended."""
        name = f"pserver {self.pservers.index(pserver)}"
        pserver.ended_s = self.world.now
        self.ends[name] = "completed" if error is None else described(error)
        self.world.note(f"{pserver.endpoint} ends: {self.ends[name]}")

        def leave() -> None:
            if process is pserver.process and not process.is_dead:
                pserver.is_over = True
                self.world.kill(process)

        self.world.at(self.world.now + 10.0, leave)

    # --- trainers --------------------------------------------------------------------------------

    def _start_trainer(self, trainer: SimTrainer) -> None:
        if trainer.starts and self.has_job_ended():
            trainer.is_over = True
            self.ends[f"trainer {trainer.number}"] = self._end_after_job(trainer.number)
            return
        trainer.starts += 1
        process = trainer.process = Process(f"trainer {trainer.number}")

        def main() -> None:
            name, first = f"trainer {trainer.number}", trainer.starts - 1
            self.world.note(f"{name} starts as process {first}")
            end = self._end_of(trainer.number, first)
            if process.is_dead:
                return
            self.ends[name] = end
            self.world.note(f"{name}, process {first}: {end}")
            self.world.at(self.world.now, lambda: self._trainer_ended(trainer, process))

        self.world.spawn(process, "main", main)

    def has_job_ended(self) -> bool:
        """True if a process that starts now would begin the job again."""
        return all(self.ends.get(f"pserver {n}") == "completed" for n in range(len(self.pservers)))

    def _end_after_job(self, number: int) -> str:
        has_trained = number in self.stopping  # its COMPLETE was the last that it sent
        return "completed" if has_trained else "the job ended without it"

    def _trainer_ended(self, trainer: SimTrainer, process: Process) -> None:
        """The keeper starts a trainer that failed again, some times."""
        self.world.kill(process)
        name = f"trainer {trainer.number}"
        is_kept = self.scenario.restarts >= trainer.starts and self.ends[name] != "completed"
        if not is_kept:
            trainer.is_over = True
            return
        del self.ends[name]
        self.world.at(self.world.now + 0.5, lambda: self._start_trainer(trainer))

    def stops(self, number: int) -> None:
        """A trainer begins to stop: it trains no more."""
        self.stopping.add(number)
        if len(self.stopping) == len(self.trainers):
            self.trained_s = min(self.trained_s, self.world.now)

    def _train(self, number: int, first: int) -> None:
        train(self, number, first)

    def _end_of(self, number: int, first: int) -> str:
        try:
            self._train(number, first)
        except JobHasEndedError:
            return self._end_after_job(number)
        except WasInterruptedError:
            return INTERRUPTED
        except PsrtError as error:
            return described(error)
        except Exception as error:
            return f"crashed: {error!r}"
        return "completed"


def _waits_for_newcomers(state: PserverState, now: float) -> bool:
    state.update_presence(now)
    states = {member.state for member in state.members.members}
    has_completed = MemberState.COMPLETED in states and MemberState.UNSEEN not in states
    return MemberState.RUNNING not in states and not has_completed


def described(error: PsrtError) -> str:
    return f"{error.code.name}: {error.message}"
