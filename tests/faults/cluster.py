"""One attempt of a round: real processes behind proxies, and the faults that strike them.

Trainers report every step through a pipe. A fault strikes when the step that it names is reported,
never after a time; pauses, partitions and restarts then last as long as they say.
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

from psrt.core.errors import CATALOGUE, ErrorCode, PsrtError
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from tests.faults.books import Books
from tests.faults.children import Child, start_pserver, start_trainer
from tests.faults.disks import CutsDisk
from tests.faults.doors import write_doors
from tests.faults.drawing import WAIT_S, Fault, FaultRound, Strike
from tests.faults.ledger_job import TrainerJob
from tests.faults.proxy import DIRECTIONS, FaultProxy, Gate

BOUND_S = 90.0
"""Longest time from a start or a fault to the end of all trainers: all waits, and a busy host."""

READY_S = 300.0
"""Longest time from a pserver's start until it is ready; the first one may compile kernels."""

LEAVE_S = 60.0
"""Longest time from the last trainer's end to that of a pserver whose job has ended."""

MOST_STARTS = 8
RECOVER = ("--recover",)
"""Flags of a pserver that takes the place of a killed one while its job goes on."""

_END = re.compile(r"^  ([A-Z_]+) \(exit (\d+)\)", re.M)


class Broken(AssertionError):
    """A promise that an attempt broke."""


@dataclass
class Pserver:
    """A pserver: its present process, its place behind a gate, and its real addresses."""

    number: int
    proxy: FaultProxy
    directory: Path
    child: Child | None = None
    endpoint: str = ""
    starts: int = 0


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
    dumps: dict[int, Path] = field(default_factory=dict)
    restarts: int = 0

    def __post_init__(self) -> None:
        self._timers: list[tuple[float, Callable[[], None]]] = []
        self._strikes = list(self.round.strikes) if self.number == 0 else []
        self._starts = [0] * self.round.trainers
        self._trainers: dict[int, Child] = {}
        self._over: set[int] = set()
        self._all: list[Child] = []
        self._doors: dict[str, str] = {}
        self._threads = ThreadPoolExecutor(2)
        self._is_ended_by_fault = False
        self._deadline = time.monotonic() + BOUND_S
        self.place.mkdir(parents=True)
        self.pservers = [
            Pserver(i, FaultProxy(self._gate(i)), self.place / f"pserver.{i}")
            for i in range(self.round.pservers[self.number])
        ]

    def run(self) -> None:
        """Run the job to the end of all processes; raises `Broken`."""
        try:
            self._start()
            while len(self._over) < self.round.trainers:
                self._turn(self._trainer_events())
                self._check_bound("trainers", self._deadline)
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
    def logs(self) -> list[Path]:
        return sorted(self.place.glob("**/*.log"))

    @property
    def was_killed(self) -> bool:
        return any(child.was_killed for child in self._all)

    @property
    def pids(self) -> list[int]:
        return [child.pid for child in self._all]

    # --- starts ----------------------------------------------------------------------------------

    def _gate(self, number: int) -> Gate:
        faults = [f for n, f in self.round.links if n == number] if self.number == 0 else []
        return Gate(faults)

    def _start(self) -> None:
        for pserver in self.pservers:
            pserver.directory.mkdir()
            self._start_pserver(pserver, "--port", "0", *self._resume_flags())
        for pserver in self.pservers:
            self._open_doors(pserver)
        if self._is_ended_by_fault:
            return
        self._endpoints = tuple(p.proxy.tcp_door(lambda p=p: p.endpoint) for p in self.pservers)
        for number in range(self.round.trainers):
            self._start_trainer(number)

    def _resume_flags(self) -> list[str]:
        return ["--resume", self.resume] if self.resume else []

    def _start_pserver(self, pserver: Pserver, *flags: str) -> None:
        log = pserver.directory / f"{pserver.starts}.log"
        pserver.starts += 1
        ready = self._ready(pserver)
        flags += ("--ready-file", str(ready), "--wait-timeout-s", str(WAIT_S))
        flags += ("--unix-dir", "off") if self.round.carrier != "unix" else ()
        if self.round.makes_cuts:
            flags += ("--checkpoint-dir", str(self.disk.path), "--checkpoint-keep", "50")
            flags += ("--checkpoint-every-steps", str(self.round.cut_every))
            flags += ("--checkpoint-timeout-s", str(WAIT_S))
        dump = pserver.directory / f"{pserver.starts}.npz"
        self.dumps[pserver.number] = dump
        name = f"pserver {pserver.number}"
        pserver.child = start_pserver(name, list(flags), self._variables(pserver), log, dump)
        self._all.append(pserver.child)

    def _ready(self, pserver: Pserver) -> Path:
        return pserver.directory / f"{pserver.starts}.ready"

    def _variables(self, pserver: Pserver) -> dict[str, str]:
        points = dict(self.round.failpoints).get(pserver.number, "") if self.number == 0 else ""
        points = self.round.restore if self.number == 1 and pserver.number == 0 else points
        points = "" if pserver.starts > 1 else points
        return {"TMPDIR": str(self.place.parent / "tmp"), "PSRT_FAILPOINT": points}

    def _open_doors(self, pserver: Pserver) -> None:
        """Wait until a pserver is ready, and make a door for each of its data addresses."""
        ready, child = self._ready(pserver), pserver.child
        deadline = time.monotonic() + READY_S
        assert child is not None
        while not ready.exists():
            if not child.is_alive:
                raise Broken(f"{child.name} ended before it was ready: {child.process.exitcode}")
            self._check_bound(f"{child.name}, which is not ready", deadline)
            wait([child.process.sentinel], 0.02)
        facts = json.loads(ready.read_text())
        pserver.endpoint = facts["endpoint"]
        for real in facts["data_endpoints"]:
            self._doors[real] = pserver.proxy.tcp_door(lambda real=real: real)
        if facts["unix_path"]:
            path = self.place.parent / "tmp" / f"door-{self.number}-{pserver.number}.sock"
            path.unlink(missing_ok=True)
            self._doors[facts["unix_path"]] = pserver.proxy.unix_door(facts["unix_path"], path)
        write_doors(self.place / "doors.json", self._doors)

    def _start_trainer(self, number: int) -> None:
        start = self._starts[number]
        self._starts[number] += 1
        round, process = self.round, self.number * MOST_STARTS + start
        job = TrainerJob(
            *(number, process, round.trainers, round.mode, round.carrier, self._endpoints),
            str(self.place / "doors.json"),
            *(round.steps, round.pace_s, round.elements, self._replaces_pservers),
        )
        log = self.place / f"trainer.{number}.{start}.log"
        variables = {"TMPDIR": str(self.place.parent / "tmp")}
        child = start_trainer(f"trainer {number}", job, variables, log)
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
        return bool(ended) and not self._replaces_pservers

    @property
    def _replaces_pservers(self) -> bool:
        return any(s.fault is Fault.REPLACE_PSERVER for s in self.round.strikes)

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
            case Fault.PARTITION if pserver is not None:
                pserver.proxy.gate.hold(*DIRECTIONS[: 1 + strike.step % 2])
                self._after(strike.for_s, pserver.proxy.gate.release)
            case Fault.REPLACE_PSERVER if pserver is not None:
                child.kill()
                self._after(0.3, lambda: self._replace(pserver))
            case Fault.KILL_ALL:
                self._kill_all()
            case Fault.DISK_FULL | Fault.READ_ONLY:
                self.disk.break_down(is_full=strike.fault is Fault.DISK_FULL)
                self._after(strike.for_s, self.disk.mend)
            case Fault.ASK:
                self.cuts_asked.append(self._threads.submit(self._ask))

    def _resume(self, child: Child) -> None:
        child.is_paused = False
        child.signal(signal.SIGCONT)

    def _replace(self, pserver: Pserver) -> None:
        assert pserver.child is not None
        pserver.child.process.join(10.0)
        port = pserver.endpoint.rpartition(":")[2]
        self._start_pserver(pserver, "--port", port, *RECOVER)
        self._open_doors(pserver)

    def _kill_all(self) -> None:
        self._is_ended_by_fault = True
        self._timers.clear()
        for child in self._all:
            child.kill()

    def _ask(self) -> int:
        """Ask the first pserver for a cut, as `psrt checkpoint save` does; returns its number."""
        client = Client(self.pservers[0].endpoint, 0, 1, "stream", pb.Hello())
        try:
            reply = client.call(Method.CHECKPOINT, timeout_s=2 * WAIT_S)
            return int(reply.header.cut.number)
        finally:
            client.close()

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
                    self._pserver_over(pserver)
            waiting = alive
            self._turn([])
            if waiting and time.monotonic() > asked_at:
                asked_at = time.monotonic() + 2.0
                for pserver in waiting:
                    if not self.has_completed and self._waits_for_newcomers(pserver):
                        pserver.child.signal(signal.SIGTERM)
            self._check_bound(f"pserver {waiting[0].number if waiting else ''}", deadline)

    def _waits_for_newcomers(self, pserver: Pserver) -> bool:
        """True for a pserver that rightly waits: no trainer of its job runs."""
        client = Client(pserver.endpoint, 0, 1, "grpc", pb.Hello())
        try:
            reply = client.call(Method.STATUS, timeout_s=2.0)
        except PsrtError:
            return False
        finally:
            client.close()
        states = [each["state"] for each in json.loads(reply.header.status_json)["trainers"]]
        return "running" not in states

    def _pserver_over(self, pserver: Pserver) -> None:
        child = pserver.child
        assert child is not None
        code = child.process.exitcode
        has_killing_point = "=kill" in self._variables(pserver)["PSRT_FAILPOINT"]
        if code == -signal.SIGKILL and (child.was_killed or has_killing_point):
            self.ends[child.name] = "killed"
            if not child.was_killed:
                self.struck.append(f"{child.name} was killed by its failpoint")
            child.was_killed = True
            return
        found = _END.findall((pserver.directory / f"{pserver.starts - 1}.log").read_text())
        end = found[-1] if found else ("", "0")
        if code != int(end[1]) or (end[0] and CATALOGUE[ErrorCode[end[0]]].exit_code != code):
            raise Broken(f"{child.name} ended with code {code} and the error {end[0] or 'none'}")
        if end[0] == "INTERNAL":
            raise Broken(f"{child.name} ended with INTERNAL")
        self.ends[child.name] = end[0] or "completed"

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

    # --- time ------------------------------------------------------------------------------------

    def _after(self, for_s: float, act: Callable[[], None]) -> None:
        self._timers.append((time.monotonic() + for_s, act))

    def _delay_bound(self) -> None:
        self._deadline = time.monotonic() + BOUND_S

    def _check_bound(self, awaited: str, deadline: float) -> None:
        if time.monotonic() < deadline:
            return
        running = [child for child in self._all if child.is_alive]
        for child in running:
            child.signal(signal.SIGUSR1)
        wait([child.process.sentinel for child in running], 1.0)
        names = ", ".join(child.name for child in running)
        raise Broken(f"no end in time of {awaited}; alive: {names}")
