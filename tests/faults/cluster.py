"""One attempt of a round: real processes behind proxies, and the faults that strike them.

Trainers report every step through a pipe. A fault strikes when the step that it names is reported,
never after a time; pauses, partitions and restarts then last as long as they say.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path

from tests.faults import clocks
from tests.faults.books import Books
from tests.faults.children import Child, start_trainer
from tests.faults.disks import CutsDisk
from tests.faults.drawing import Fault, FaultRound, Strike
from tests.faults.ledger_job import TrainerJob
from tests.faults.limits import BOUND_S, LEAVE_S, Broken, check_in_time
from tests.faults.proxy import DIRECTIONS
from tests.faults.pservers import Pserver, Pservers, ask_for_cut

MOST_STARTS = 8
RECOVER = ("--recover",)
"""Flags of a pserver that takes the place of a killed one while its job goes on."""


@dataclass
class Attempt:
    """One run of the job of a round; `resume` is a flag of pservers or empty."""

    round: FaultRound
    number: int
    place: Path
    books: Books
    disk: CutsDisk
    resume: str = ""
    ends: dict[str, str] = field(default_factory=dict)
    struck: list[str] = field(default_factory=list)
    cuts_asked: list[Future[int]] = field(default_factory=list)
    restarts: int = 0
    lost_a_pserver: bool = False
    """True once a pserver was killed before a trainer had joined it: its job may end by name."""

    def __post_init__(self) -> None:
        self._timers: list[tuple[float, Callable[[], None]]] = []
        self._strikes = list(self.round.strikes) if self.number == 0 else []
        self._starts = [0] * self.round.trainers
        self._trainers: dict[int, Child] = {}
        self._over: set[int] = set()
        self._all: list[Child] = []
        self._threads = ThreadPoolExecutor(2)
        self._is_ended_by_fault = False
        self._deadline = time.monotonic() + BOUND_S
        self.place.mkdir(parents=True)
        given = self.round, self.number, self.place, self.disk, self.resume
        self._pservers = Pservers(*given, self.struck)
        self.pservers, self._hosts = self._pservers.all, self._pservers.hosts

    def run(self) -> None:
        """Run the job to the end of all processes; raises `Broken`."""
        try:
            self._start()
            while len(self._over) < self.round.trainers:
                self._turn(self._trainer_events())
                check_in_time("trainers", self._deadline, self._all)
            self._await_pservers()
            for asked in self.cuts_asked:
                asked.exception(LEAVE_S)
        finally:
            self._clean_up()

    @property
    def has_completed(self) -> bool:
        """True if every trainer completed."""
        trainers = [self.ends.get(f"trainer {n}") for n in range(self.round.trainers)]
        return all(end == "completed" for end in trainers)

    @property
    def dumps(self) -> dict[int, Path]:
        """By number of a pserver, the file of the values at its end."""
        return self._pservers.dumps

    @property
    def logs(self) -> list[Path]:
        return sorted(self.place.glob("**/*.log"))

    @property
    def was_killed(self) -> bool:
        return any(child.was_killed for child in self._all)

    @property
    def pids(self) -> list[int]:
        return [child.pid for child in self._all]

    # --- starts ----------------------------------------------------------------------------------

    def _start(self) -> None:
        flags = self._pservers.resume_flags()
        for pserver in self.pservers:
            pserver.directory.mkdir()
            self._all.append(self._pservers.start(pserver, "--port", "0", *flags))
        for pserver in self.pservers:
            self._pservers.open_doors(pserver)
        if self._is_ended_by_fault:
            return
        self._endpoints = tuple(p.proxy.tcp_door(lambda p=p: p.endpoint) for p in self.pservers)
        late, late_s = self.round.late if self.round.late and self.resume else (-1, 0.0)
        for number in range(self.round.trainers):
            start = partial(self._start_trainer, number)
            self._after(late_s, start) if number == late else start()

    def _start_trainer(self, number: int) -> None:
        start = self._starts[number]
        self._starts[number] += 1
        round, process = self.round, self.number * MOST_STARTS + start
        job = TrainerJob(
            *(number, process, round.trainers, round.mode, round.carrier, self._endpoints),
            str(self.place / "doors.json"),
            *(round.steps, round.pace_s, round.elements, round.replaces_pservers),
        )
        log = self.place / f"trainer.{number}.{start}.log"
        name = f"trainer {number}"
        variables = self._pservers.variables_of(name)
        child = start_trainer(name, job, variables, log)
        child.facts = {"number": number, "process": process}
        self._trainers[number] = child
        self._all.append(child)
        self._delay_bound()

    # --- events ----------------------------------------------------------------------------------

    def _trainer_events(self) -> list[Child]:
        return [child for n, child in self._trainers.items() if n not in self._over]

    def _turn(self, children: list[Child]) -> None:
        """Wait for an event or a timer, and handle what has come."""
        sources = {child.events: child for child in children if child.events is not None}
        ends = {c.process.sentinel: c for c in children if "is over" not in c.facts}
        due = min((at for at, _ in self._timers), default=float("inf"))
        left_s = max(0.0, min(0.25, due - time.monotonic()))
        for each in wait([*sources, *ends], left_s):
            if each in sources:
                self._take_event(sources[each])
        for child in ends.values():
            if not child.is_alive and (child.events is None or not child.events.poll()):
                self._trainer_over(child)
        for timer in [t for t in self._timers if t[0] <= time.monotonic()]:
            self._timers.remove(timer)
            timer[1]()
        self._wake_stopped()

    def _take_event(self, child: Child) -> None:
        assert child.events is not None
        try:
            kind, *facts = child.events.recv()
        except (EOFError, OSError):
            child.events = None
            return
        number, process = child.facts["number"], child.facts["process"]
        if kind == "sent":
            self.books.send((number, process, facts[0]))
            self._strike_at(number, facts[0])
        elif kind == "acknowledged":
            self.books.acknowledged.add((number, process, facts[0]))
        elif kind == "all acknowledged":
            self.books.acknowledge(number, process)
        elif kind == "end":
            child.facts["end"] = facts[0] if not facts[1] else f"{facts[0]}: {facts[1]}"

    def _trainer_over(self, child: Child) -> None:
        child.facts["is over"] = True
        number, end = child.facts["number"], child.facts.get("end", "")
        if child.was_killed and not end:
            end = "killed"
        if not end:
            raise Broken(f"{child.name} ended without a report, code {child.process.exitcode}")
        self.ends[child.name] = end
        if "INTERNAL" in end:
            raise Broken(f"{child.name} ended with {end}")
        if end == "completed" or self._is_ended_by_fault:
            self._over.add(number)
            return
        self.books.was_replaced = True
        is_kept = self._starts[number] <= self.round.restarts and self.number == 0
        if not is_kept or self._lacks_a_pserver:
            self._over.add(number)
            return
        self.restarts += 1
        self._after(0.3, lambda: self._start_trainer(number))

    @property
    def _lacks_a_pserver(self) -> bool:
        """True if a pserver has ended for good: the keeper starts no more trainers."""
        ended = [p for p in self.pservers if p.child is not None and not p.child.is_alive]
        return bool(ended) and not self.round.replaces_pservers

    def _wake_stopped(self) -> None:
        """Let a process go on that a failpoint has stopped."""
        for pserver in self.pservers:
            child = pserver.child
            if child is None or child.is_paused or not child.has_stopped:
                continue
            child.is_paused = True
            self.struck.append(f"{child.name} was stopped by its failpoint")
            self._after(1.0, lambda child=child: self._resume(child))

    # --- faults ----------------------------------------------------------------------------------

    def _strike_at(self, trainer: int, step: int) -> None:
        for strike in [s for s in self._strikes if s.trainer == trainer and s.step <= step]:
            self._strikes.remove(strike)
            self.struck.append(str(strike))
            self._strike(strike)
            self._delay_bound()

    def _strike(self, strike: Strike) -> None:
        role, number = strike.name.split()
        pserver = self.pservers[int(number)] if role == "pserver" else None
        child = pserver.child if pserver is not None else self._trainers.get(int(number))
        if child is None:
            return
        match strike.fault:
            case Fault.KILL_TRAINER | Fault.KILL_PSERVER:
                child.kill()
            case Fault.PAUSE:
                child.is_paused = True
                child.signal(signal.SIGSTOP)
                self._after(strike.for_s, lambda: self._resume(child))
            case Fault.PARTITION if self._hosts is not None:
                self._hosts.cut_off(strike.name)
                self._after(strike.for_s, partial(self._hosts.mend, strike.name))
            case Fault.PARTITION if pserver is not None:
                pserver.proxy.gate.hold(*DIRECTIONS[: 1 + strike.step % 2])
                self._after(strike.for_s, pserver.proxy.gate.release)
            case Fault.REPLACE_PSERVER if pserver is not None and not child.was_killed:
                child.kill()
                self._after(0.3, lambda: self._replace(pserver))
            case Fault.KILL_PAIR if pserver is not None and not child.was_killed:
                child.kill()
                self._trainers[strike.trainer].kill()
                self._after(0.3, lambda: self._replace(pserver))
            case Fault.KILL_ALL:
                self._kill_all()
            case Fault.DISK_FULL | Fault.READ_ONLY:
                self.disk.break_down(is_full=strike.fault is Fault.DISK_FULL)
                self._after(strike.for_s, self.disk.mend)
            case Fault.CLOCK:
                clocks.move(self._pservers.clock_of(strike.name), strike.by_s)
            case Fault.ASK:
                self.cuts_asked.append(self._threads.submit(ask_for_cut, self.pservers[0]))

    def _resume(self, child: Child) -> None:
        child.is_paused = False
        child.signal(signal.SIGCONT)

    def _replace(self, pserver: Pserver) -> None:
        assert pserver.child is not None
        pserver.child.process.join(10.0)
        port = pserver.endpoint.rpartition(":")[2]
        self._all.append(self._pservers.start(pserver, "--port", port, *RECOVER))
        self._pservers.open_doors(pserver)
        pserver.is_anew |= self._pservers.found_nothing(pserver)
        self.lost_a_pserver |= pserver.is_anew
        if all(each.is_anew for each in self.pservers):  # trainers began anew, too: none goes on
            self.books.begin_anew()
            for each in self.pservers:
                each.is_anew = False

    def _kill_all(self) -> None:
        self._is_ended_by_fault = True
        self._timers.clear()
        for child in self._all:
            child.kill()

    # --- ends ------------------------------------------------------------------------------------

    def _await_pservers(self) -> None:
        """Wait for pservers whose job has ended; end those that wait for newcomers."""
        for pserver in self.pservers:
            pserver.proxy.end_silent()
        deadline = time.monotonic() + LEAVE_S
        waiting = [p for p in self.pservers if p.child is not None]
        asked_at = time.monotonic() + 2.0
        while waiting:
            alive = [p for p in waiting if p.child.is_alive]
            for pserver in waiting:
                if pserver not in alive:
                    self.ends[f"pserver {pserver.number}"] = self._pservers.end_of(pserver)
            waiting = alive
            self._turn([])
            if waiting and time.monotonic() > asked_at:
                asked_at = time.monotonic() + 2.0
                for pserver in waiting:
                    if not self.has_completed and self._pservers.waits_for_newcomers(pserver):
                        pserver.child.signal(signal.SIGTERM)
            check_in_time(f"pserver {waiting[0].number if waiting else ''}", deadline, self._all)

    def _clean_up(self) -> None:
        self.disk.mend()
        for child in self._all:
            child.signal(signal.SIGCONT)
            child.signal(signal.SIGKILL)
        for pserver in self.pservers:
            pserver.proxy.close()
        for child in self._all:
            child.process.join(10.0)
            if child.events is not None:
                child.events.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._hosts is not None:
            self._hosts.close()

    # --- time ------------------------------------------------------------------------------------

    def _after(self, for_s: float, act: Callable[[], None]) -> None:
        self._timers.append((time.monotonic() + for_s, act))

    def _delay_bound(self) -> None:
        self._deadline = time.monotonic() + BOUND_S
