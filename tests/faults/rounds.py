"""Rounds: attempts of one job until it completes, and what must hold then."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from psrt.core.errors import PsrtError
from psrt.pserver.checkpoints import complete_cuts, files_by_cut, find_cut
from psrt.pserver.process.abandoned_sockets import remove_abandoned_sockets
from psrt.rpc import access
from psrt.storage.local_directory import LocalDirectory
from tests.faults.books import Books, check_bits, values_in, values_of
from tests.faults.cluster import Attempt
from tests.faults.disks import CutsDisk
from tests.faults.drawing import Fault, FaultRound
from tests.faults.reference import without_faults

SHARED_MEMORY = Path("/dev/shm")


@dataclass
class Outcome:
    """Result of a round: `violation` or "", ends by attempt, and the faults that struck.

    `repeat` is the command that runs it again.
    """

    round: FaultRound
    violation: str = ""
    ends: list[dict[str, str]] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    cuts: int = 0
    took_s: float = 0.0
    logs: list[Path] = field(default_factory=list)
    place: Path | None = None
    repeat: str = ""


def run(round: FaultRound, keep: bool = False) -> Outcome:
    """Run a round; its files are removed unless it fails and `keep` is set."""
    place = Path(tempfile.mkdtemp(prefix="faults-"))
    outcome, began = Outcome(round, place=place), time.perf_counter()
    disk_faults = {Fault.DISK_FULL, Fault.READ_ONLY}
    disk = CutsDisk(place / "cuts", any(s.fault in disk_faults for s in round.strikes))
    disk.open()
    try:
        (place / "tmp").mkdir()
        _Judge(round, place, disk, outcome).run()
    except (AssertionError, PsrtError) as error:
        outcome.violation = f"{type(error).__name__}: {error}"
    finally:
        outcome.took_s = time.perf_counter() - began
        outcome.logs = sorted(place.glob("attempt-*/**/*.log"))
        disk.close()
        access.assume(access.Identity())
    return outcome


def remove(outcome: Outcome) -> None:
    """Delete the files of a round."""
    assert outcome.place is not None
    shutil.rmtree(outcome.place)


class _Judge:
    """Runs the attempts of a round and checks every promise."""

    def __init__(self, round: FaultRound, place: Path, disk: CutsDisk, outcome: Outcome) -> None:
        self._round, self._place, self._disk, self._outcome = round, place, disk, outcome
        self._books = Books(round.mode, round.trainers)
        self._directory = LocalDirectory(disk.path, owner="lab")
        self._attempts: list[Attempt] = []

    def run(self) -> None:
        before = _shared_memory()
        for number in range(len(self._round.pservers)):
            attempt = self._attempt(number)
            if attempt.has_completed:
                break
        self._check_completed(attempt)
        self._check_nothing_is_left(before)

    def _attempt(self, number: int) -> Attempt:
        attempt = Attempt(
            *(self._round, number, self._place / f"attempt-{number}", self._books, self._disk),
            resume=self._begin(number),
        )
        self._attempts.append(attempt)
        try:
            attempt.run()
        finally:
            self._outcome.ends.append(attempt.ends)
            self._outcome.struck += attempt.struck
            self._outcome.struck += [
                f"{fault}" for p in attempt.pservers for fault in p.proxy.gate.struck
            ]
        self._check_logs(attempt)
        self._check_promised_end(attempt)
        self._check_cuts(attempt)
        return attempt

    def _begin(self, number: int) -> str:
        """The flag to resume with; the steps that count are those of the latest cut."""
        if number == 0:
            return ""
        numbers = complete_cuts(self._directory)
        if not numbers:
            self._books.begin_anew()
            return ""
        self._books.go_on_from(find_cut(self._directory, "latest"))
        return "latest"

    def _check_promised_end(self, attempt: Attempt) -> None:
        round, number = self._round, attempt.number
        restored = bool(round.restore) and number == 1
        survives = round.is_gentle and not attempt.lost_a_pserver
        must_complete = survives if number == 0 else not restored
        if must_complete:
            assert attempt.has_completed, f"attempt {number} did not complete: {attempt.ends}"
            self._outcome.checks.append("completes")
        if (must_complete and number == 0) or (attempt.has_completed and not attempt.was_killed):
            self._check_pservers(attempt, must_complete)
        if not attempt.has_completed:
            self._outcome.checks.append("ends with named errors")

    def _check_pservers(self, attempt: Attempt, must_complete: bool) -> None:
        for name, end in attempt.ends.items():
            if name.startswith("pserver") and must_complete:
                assert end == "completed", f"{name} of a completed job ended with {end}"

    def _check_logs(self, attempt: Attempt) -> None:
        for log in attempt.logs:
            text = log.read_text()
            for defect in ("Traceback", "a defect in psrt", "Fatal Python error"):
                assert defect not in text, f"{log.name} has {defect!r}"

    def _check_cuts(self, attempt: Attempt) -> None:
        numbers = complete_cuts(self._directory)
        for asked in attempt.cuts_asked:
            if asked.done() and not asked.cancelled() and asked.exception() is None:
                assert asked.result() in numbers, f"cut {asked.result()} was acknowledged, and lost"
                self._outcome.checks.append("an acknowledged cut is there")
        lost = attempt.restarts or self._books.was_replaced
        for number in numbers:
            cut = find_cut(self._directory, str(number))
            held = values_in(cut, self._round.elements, self._round.mode)
            self._books.check_cut(cut, held, is_whole=not lost)
        self._outcome.cuts = len(numbers)

    def _check_completed(self, last: Attempt) -> None:
        """Raise `AssertionError` unless the tables of a completed job are right."""
        if not last.has_completed or not all(path.exists() for path in last.dumps.values()):
            return
        held = values_of(last.dumps.values())
        self._books.check(held)
        self._outcome.checks.append("ledger")
        is_sync = self._round.mode.startswith("sync")
        was_late = self._round.delay_s > 0 and self._round.mode == "sync-shrink"
        if is_sync and not self._books.was_replaced and not was_late:
            round = self._round
            expected = without_faults(round.trainers, round.steps, round.elements)
            check_bits(held, expected, self._books.sent)
            self._outcome.checks.append("bits")

    def _check_nothing_is_left(self, before: set[str]) -> None:
        left = _shared_memory() - before
        assert not left, f"shared memory is left: {left}"
        alive = [p for a in self._attempts for p in a.pids if Path(f"/proc/{p}").exists()]
        assert not alive, f"processes are left: {alive}"
        temporary = self._place / "tmp"
        remove_abandoned_sockets(temporary)
        names = {path.name for path in temporary.iterdir() if not path.name.startswith("door-")}
        assert not names, f"temporary files are left: {names}"
        killed = any(attempt.was_killed for attempt in self._attempts)
        if killed or self._disk.was_read_only:
            return
        unfinished = [path.name for path in self._disk.path.rglob("*.tmp")]
        assert not unfinished, f"unfinished files are left: {unfinished}"
        complete = set(complete_cuts(self._directory))
        torn = set(files_by_cut(self._directory)) - complete
        assert not torn, f"files of cuts are left that were given up: {sorted(torn)}"


def _shared_memory() -> set[str]:
    if not SHARED_MEMORY.is_dir():
        return set()
    return {name for name in os.listdir(SHARED_MEMORY) if "psrt" in name}
