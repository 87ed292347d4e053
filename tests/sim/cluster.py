"""One history of a scenario: processes, restarts and the verdict.

Pservers are `PserverService`s, trainers run the communicator of their mode over real `Client`s. A
keeper starts killed processes again, as the scenario says. A history passes when every process has
ended, each failed one with an error of the catalogue, and the tables hold what the ledger says.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from psrt.communicator.base import Pulled
from psrt.communicator.factory import make
from psrt.communicator.requests import known_ids
from psrt.coordinator.retention import Retention
from psrt.core import specs
from psrt.core.errors import ErrorCode, PsrtError
from psrt.pserver.checkpoints import Settings, served_job
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.storage.local_directory import LocalDirectory
from tests.sim.cuts import check_cuts, position_of
from tests.sim.disk import SimulatedDisk
from tests.sim.ledger import PLAN, SHARED, UNIT, Ledger, gradients_of, ids_of, row_of
from tests.sim.network import Network
from tests.sim.passing_rows import visit
from tests.sim.patching import simulated
from tests.sim.scenario import MODES, ProcessFault, Scenario, Strike
from tests.sim.slow_disk import SlowDisk
from tests.sim.world import Endless, Process, World
from tests.support.geo import GeoByHand, OwnByHand, with_add

CALL_TIMEOUT_S, WAIT_TIMEOUT_S, START_TIMEOUT_S = 20.0, 10.0, 20.0
LONGEST_S = 300.0
RETAINED_BYTES = 4000
"""Memory for retained pushes: that of some steps, so that trainers ask for cuts."""
MOST_STARTS = 4
STEP_S = 0.01
KEPT_CUTS, FULL_EVERY = 2, 4


class Violation(AssertionError):
    """A history in which a promise was broken."""


@dataclass
class Verdict:
    """Result of one history: `ends` by process name, the `violation` or "", and the trace."""

    scenario: Scenario
    ends: dict[str, str]
    violation: str
    trace: list[str]
    cuts: int = 0

    @property
    def highlights(self) -> list[str]:
        return [line for line in self.trace if not line.endswith("is sent")]

    def __str__(self) -> str:
        """The history without the frames that arrived as they should."""
        ends = [f"  {name}: {end}" for name, end in sorted(self.ends.items())]
        return "\n".join(
            [str(self.scenario), *self.highlights, *ends, self.violation or "no violation"]
        )


def run(scenario: Scenario) -> Verdict:
    """Run the history of a scenario."""
    world = World(f"{scenario.seed} {scenario.mode}")
    cluster = SimCluster(world, scenario)
    violation = ""
    with simulated(world), _logged(world), _short_lists_remembered():
        try:
            world.run(lambda: cluster.has_ended, LONGEST_S)
            cluster.check()
        except (Violation, Endless, AssertionError) as error:
            violation = f"{type(error).__name__}: {error}"
        finally:
            world.close()
    return Verdict(scenario, cluster.ends, violation, world.trace, cluster.cuts)


@contextmanager
def _logged(world: World) -> Iterator[None]:
    """Put warnings and errors of psrt into the trace, instead of the log."""
    logger, notes = logging.getLogger("psrt"), _Notes(world)
    before = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [notes], False
    try:
        yield
    finally:
        logger.handlers, logger.propagate = before


class _Notes(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        what = "defect" if record.exc_info else "log"
        self._world.note(f"{what}: {record.getMessage()}")


@contextmanager
def _short_lists_remembered() -> Iterator[None]:
    """Let pservers remember lists of ids that are as short as the ledger's."""
    before = known_ids.FEWEST_IDS
    known_ids.FEWEST_IDS = 1
    try:
        yield
    finally:
        known_ids.FEWEST_IDS = before


@dataclass
class SimPserver:
    """A pserver of the cluster: its present process, and the tables of that."""

    endpoint: str
    process: Process
    service: PserverService | None = None
    is_over: bool = False
    starts: int = 0
    killed_s: float = 0.0
    is_anew: bool = False  # started again without tables

    def waits_for_newcomers(self) -> bool:
        """True if it waits for processes still to be started, as one started by hand does.

        Before the first trainer, and for trainers it has never seen when no other runs. Processes
        that have left do not keep it, whatever the policy.
        """
        status = self.service.status() if self.service is not None else {}
        states = {each["state"] for each in status.get("trainers", [])}
        return "running" not in states


@dataclass
class SimTrainer:
    """A trainer of the cluster and its present process."""

    number: int
    process: Process
    is_over: bool = False
    starts: int = 0


@dataclass
class SimCluster:
    """The processes of one history."""

    world: World
    scenario: Scenario
    ends: dict[str, str] = field(default_factory=dict)
    cuts: int = 0

    def __post_init__(self) -> None:
        scenario = self.scenario
        self.mode = MODES[scenario.mode]
        self.is_geo = isinstance(self.mode, specs.Geo)
        self.plan = with_add(PLAN) if self.is_geo else PLAN
        self.replicas: list[tuple[dict[str, np.ndarray], OwnByHand]] = []
        self.network = Network(self.world, dict(scenario.links), scenario.carrier)
        self.ledger = Ledger(len(scenario.steps))
        self._stopping: set[int] = set()
        self._trained_s = math.inf  # when all trainers had begun to stop
        self.disk = SimulatedDisk(scenario.seed)
        self.disk.failing_syncs = set(scenario.failing_syncs)
        self.pservers = [SimPserver(e, Process(e)) for e in PLAN.endpoints]
        self.trainers = [SimTrainer(n, Process("")) for n in range(len(scenario.steps))]
        self._start()

    @property
    def has_ended(self) -> bool:
        if not all(trainer.is_over for trainer in self.trainers):
            return False
        return all(map(self._is_over, self.pservers))

    def _is_over(self, pserver: SimPserver) -> bool:
        has_ended = f"pserver {self.pservers.index(pserver)}" in self.ends
        return pserver.is_over or (not has_ended and pserver.waits_for_newcomers())

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
        if strike.fault is ProcessFault.PAUSE:
            self.world.pause(one.process)
            process = one.process
            self.world.at(self.world.now + strike.for_s, lambda: self.world.resume(process))
            return
        self.world.kill(one.process)
        if isinstance(one, SimPserver):
            one.killed_s = self.world.now
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
            client = Client(PLAN.endpoints[0], 0, 1, dial, hello)
            for _ in range(self.scenario.cuts_in_a_row):
                try:
                    reply = client.call(Method.CHECKPOINT, timeout_s=CALL_TIMEOUT_S)
                    self.world.note(f"cut {reply.header.cut.number} is complete")
                except PsrtError as error:
                    self.world.note(f"no cut: {described(error)}")
                    if error.code is not ErrorCode.CUT_GIVEN_UP:
                        break
            client.close()

        self.world.spawn(process, "main", main)

    def _directory(self, owner: str) -> LocalDirectory:
        return LocalDirectory(Path("/checkpoints"), SlowDisk(self.world, self.disk), owner)

    def _cut_settings(self, owner: str) -> Settings:
        retention = Retention(KEPT_CUTS)
        return Settings(
            self._directory(owner),
            retention=retention,
            timeout_s=WAIT_TIMEOUT_S,
            full_every=FULL_EVERY,
        )

    # --- pservers --------------------------------------------------------------------------------

    def _start_pserver(self, pserver: SimPserver) -> None:
        pserver.starts += 1
        process = pserver.process = Process(pserver.endpoint)

        def main() -> None:
            self.world.note(f"{pserver.endpoint} starts")
            directory, name = self._directory(pserver.endpoint), pserver.endpoint.partition(":")[0]
            is_again = self.scenario.is_durable and pserver.starts > 1
            recovered = served_job.find(directory, name) if is_again else None
            pserver.is_anew = pserver.starts > 1 and recovered is None
            service = PserverService(
                stripes=1,
                wait_timeout_s=WAIT_TIMEOUT_S,
                on_end=lambda error: self._pserver_ended(pserver, process, error),
                cuts=self._cut_settings(pserver.endpoint),
                carrier=self.network.dial(process),
                recovered=recovered,
            )
            service.serves_as(name)
            pserver.service = service
            service.start()
            self.network.listen(pserver.endpoint, process, service.handle)
            if self.scenario.cuts_in_a_row > 1:
                visit(self.world, lambda: service.tables)

        self.world.spawn(process, "main", main)

    def _pserver_ended(
        self, pserver: SimPserver, process: Process, error: PsrtError | None
    ) -> None:
        """The daemon leaves some seconds after its job has ended."""
        name = f"pserver {self.pservers.index(pserver)}"
        self.ends[name] = "completed" if error is None else described(error)
        self.world.note(f"{pserver.endpoint} ends: {self.ends[name]}")

        def leave() -> None:
            if process is pserver.process and not process.is_dead:
                pserver.is_over = True
                self.world.kill(process)

        self.world.at(self.world.now + 10.0, leave)

    # --- trainers --------------------------------------------------------------------------------

    def _start_trainer(self, trainer: SimTrainer) -> None:
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

    def _end_of(self, number: int, first: int) -> str:
        try:
            self._train(number, first)
        except PsrtError as error:
            return described(error)
        except Exception as error:
            return f"crashed: {error!r}"
        return "completed"

    def _train(self, number: int, first: int) -> None:
        communicator, clients = self._connected(number, first)
        steps = self.scenario.steps[number]
        sent = []
        try:
            communicator.start(START_TIMEOUT_S)
            communicator.pull_rows({"emb": ids_of(number, first, 0)})
            for step in range(steps):
                row = row_of(number, first, step)
                communicator.begin({"emb": ids_of(number, first, step + 1)})
                self.world.sleep(self.world.random.uniform(0, STEP_S))
                self.ledger.sent.add(row)
                sent.append(row)
                communicator.continues_at(partial(position_of, first, step + 1))
                pulled = communicator.finish(gradients_of(number, first, step))
                self._check_staleness(number, step, pulled)
                if isinstance(self.mode, specs.Sync):
                    self.ledger.acknowledged.add(row)
            communicator.flush(CALL_TIMEOUT_S)
            self.ledger.acknowledged.update(sent)
            self._stops(number)
            dense = communicator.stop(CALL_TIMEOUT_S)
            if isinstance(communicator, GeoByHand):
                self.replicas.append((dense, communicator.own))
        finally:
            communicator.close()
            for client in clients:
                client.close()

    def _stops(self, number: int) -> None:
        self._stopping.add(number)
        if len(self._stopping) == len(self.trainers):
            self._trained_s = min(self._trained_s, self.world.now)

    def _check_staleness(self, number: int, step: int, pulled: Pulled) -> None:
        """In Ssp the rows of the next step contain the steps that others had to reach."""
        if not isinstance(self.mode, specs.Ssp) or self.scenario.strikes:
            return
        awaited = max(0, step + 1 - self.mode.max_steps_ahead)
        others = [min(awaited, n) for t, n in enumerate(self.scenario.steps) if t != number]
        held, least = pulled.rows["emb"][0, 0], UNIT * sum(others)
        if held < least:
            raise Violation(
                f"step {step + 1} of trainer {number} reads {held}, not {least} or more"
            )

    def _connected(self, number: int, first: int):
        process = self.trainers[number].process
        hello = pb.Hello(
            job_id="simulated",
            plan_hash=self.plan.hash(),
            trainers=len(self.trainers),
            mode=specs.to_json(self.mode),
            durability="cut" if self.scenario.is_durable else "",
        )
        dial = self.network.dial(process)
        incarnation = 1 + number * MOST_STARTS + first
        clients = [Client(e, number, incarnation, dial, hello) for e in PLAN.endpoints]
        own = OwnByHand(PLAN.sparse[0]) if self.is_geo else None
        made = make(
            *(self.mode, self.plan, clients),
            call_timeout_s=CALL_TIMEOUT_S,
            own=own,
            retained_bytes=RETAINED_BYTES if self.scenario.is_durable else 0,
        )
        return made if own is None else GeoByHand(made, own), clients

    # --- verdict ---------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise `Violation` unless every promise holds."""
        if defects := [line for line in self.world.trace if "  defect: " in line]:
            raise Violation("; ".join(defects))
        for name, end in self.ends.items():
            if end.startswith((ErrorCode.INTERNAL.name, "crashed")):
                raise Violation(f"{name} {end}")
        trained = {e for name, e in self.ends.items() if name.startswith("trainer")}
        is_gentle = self.scenario.is_gentle and not any(map(self._is_beyond, self.pservers))
        if is_gentle and trained != {"completed"}:
            raise Violation(f"a job without lasting faults did not complete: {self.ends}")
        if is_gentle:
            self._check_pservers()
        self.disk.failing_syncs.clear()
        were_replaced = any(trainer.starts > 1 for trainer in self.trainers)
        whole = not self.scenario.strikes and not were_replaced and trained == {"completed"}
        self.cuts = check_cuts(self._directory("check"), self.scenario.steps, self.mode, whole)
        if trained == {"completed"} and not any(map(self._is_beyond, self.pservers)):
            self.ledger.check(*self._held(), self.mode)
        if whole and self.is_geo:
            self._check_replicas(*self._held())

    def _check_replicas(self, rows: dict[int, float], dense: dict[str, np.ndarray]) -> None:
        """Raise `Violation` unless all replicas of Geo have the values of the pservers."""
        ids = np.array(list(rows), np.int64)
        for values, own in self.replicas:
            read = own.tables["emb"].read(ids)[:, 0].tolist()
            whole = {float(each) for array in values.values() for each in array.reshape(-1)}
            held = {float(each) for array in dense.values() for each in array}
            if read != list(rows.values()) or whole != held:
                raise Violation(f"a replica holds {read}, {whole}, not {rows}, {held}")

    def _is_beyond(self, pserver: SimPserver) -> bool:
        """True if nothing is promised of its tables.

        It was killed after all trainers had trained, so nobody sends it anything again, or before
        the first cut; then its job ended with an error, and another began with empty pservers.
        """
        return pserver.is_anew or pserver.killed_s > self._trained_s

    def _check_pservers(self) -> None:
        """Raise `Violation` if a pserver of a completed job ended with an error."""
        for name, end in self.ends.items():
            if name.startswith("pserver") and end not in ("completed", "killed"):
                raise Violation(f"{name} of a completed job ended with {end}")

    def _held(self) -> tuple[dict[int, float], dict[str, np.ndarray]]:
        """Rows by id and dense values that the tables hold in the end."""
        rows: dict[int, float] = {}
        dense: dict[str, np.ndarray] = {}
        for pserver in self.pservers:
            assert pserver.service is not None
            tables = pserver.service.tables
            if not len(tables):
                continue
            ids, weights, _ = tables.sparse("emb").export(0, 1 << 20)
            held = zip(ids.tolist(), weights[:, 0].tolist(), strict=True)
            rows |= {row: value for row, value in held if row >= 0}
            for spec in PLAN.specs_for(pserver.endpoint):
                if isinstance(spec, specs.DenseTableSpec):
                    dense[spec.name] = tables.dense(spec.name).read()[0]
        assert SHARED in rows or not rows or self.ledger.sent
        return rows, dense


def described(error: PsrtError) -> str:
    return f"{error.code.name}: {error.message}"
