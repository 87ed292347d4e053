"""The fault lab in short form, and the lab itself: it strikes, it finds, it tells."""

from __future__ import annotations

import functools
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from psrt.core import failpoints
from tests.faults.children import plant
from tests.faults.clocks import compiler
from tests.faults.disks import CutsDisk, can_mount
from tests.faults.drawing import (
    CARRIERS,
    Fault,
    FaultRound,
    Strike,
    drawn,
    with_clocks,
    with_late_trainer,
)
from tests.faults.hosts import can_make
from tests.faults.ledger_job import MODES, SMALL
from tests.faults.report import failure_of, line_of
from tests.faults.rounds import Outcome, remove, run
from tests.faults.rounds_of_seeds import Draw, round_of
from tests.support.many_seeds import results_of
from tests.support.pages import page
from tests.support.processes import ROOT, psrt

_MORE = (1079, 1158, 1160, 1183)
SEEDS = (1015, 1151, *(pytest.param(seed, marks=pytest.mark.long) for seed in _MORE))
"""Rounds of all five modes, over every carrier, with faults of every kind but the slow ones."""

MOVED_CLOCKS = (7001, pytest.param(7003, marks=pytest.mark.long))
"""Rounds of `--clocks`, over a Unix socket with cuts and over grpc."""

CUT_OFF = 1
"""A round of `--hosts`: a trainer is cut off."""

CALM = FaultRound(
    *(1, "async", "tcp", (1, 1, 1)),
    trainers=2,
    steps=10,
    pace_s=0.0,
    elements=SMALL,
    cut_every=8,
    restarts=1,
)

TWICE = "a push is applied twice"

LONG = replace(CALM, steps=100, pace_s=0.02)
"""Long enough for a fault to strike before the end."""


@functools.cache
def disks() -> bool:
    with tempfile.TemporaryDirectory() as place:
        return can_mount(Path(place) / "disk")


def outcome_of(round: FaultRound) -> Outcome:
    outcome = run(round)
    remove(outcome)
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_round_of_real_processes_keeps_every_promise(seed: int) -> None:
    outcome = run(drawn(seed, disks=disks()))

    text = failure_of(outcome, "")
    remove(outcome)
    assert not outcome.violation, text


@pytest.mark.long
@pytest.mark.slow
def test_a_trainer_that_joins_a_resumed_job_of_geo_late_loses_nothing() -> None:
    round = drawn(2001, pservers_die=True, disks=True)

    outcome = outcome_of(replace(round, late=(0, 2.0)))

    assert (round.mode, round.trainers) == ("geo", 2)
    assert len(outcome.ends) > 1
    assert not outcome.violation


def test_a_round_is_a_function_of_its_seed() -> None:
    assert drawn(7) == drawn(7)
    assert with_late_trainer(drawn(7)) == with_late_trainer(drawn(7))
    assert drawn(7) != drawn(8)


def test_seeds_draw_every_mode_carrier_and_fault() -> None:
    rounds = [with_late_trainer(drawn(seed, pservers_die=True)) for seed in range(400)]
    assert all(each.late is None or each.late[0] < each.trainers > 1 for each in rounds)
    assert {each.mode for each in rounds if each.late} == set(MODES)
    rounds = [with_clocks(each) for each in rounds]

    assert {each.mode for each in rounds} == set(MODES)
    assert {each.carrier for each in rounds} == set(CARRIERS)
    strikes = {strike.fault for each in rounds for strike in each.strikes}
    assert strikes | {Fault.KILL_PSERVER} == set(Fault)


def test_rounds_of_all_kinds_run_in_several_processes_and_say_how_to_repeat_them() -> None:
    draw = Draw("async", "tcp", pservers_die=None, disks=False, planted=TWICE)

    found = list(results_of(partial(round_of, draw), (4, 7), jobs=2))

    texts = {outcome.round.seed: text for outcome, text in found}
    planted = f"--mode async --carrier tcp%s --planted '{TWICE}'"
    assert f"repeat it: bin/faults --rounds 1 --seed 4 {planted % ''}" in texts[4]
    assert f"repeat it: bin/faults --rounds 1 --seed 7 {planted % ' --pservers-die'}" in texts[7]
    assert all(outcome.repeat in texts[outcome.round.seed] for outcome, _ in found)


@pytest.fixture
def _twice() -> Iterator[None]:
    plant(TWICE)
    yield
    plant("")


@pytest.mark.usefixtures("_twice")
def test_a_planted_bug_breaks_a_round_and_the_report_says_how_to_repeat_it() -> None:
    outcome = run(CALM)
    text, line = failure_of(outcome, ""), line_of(outcome)
    remove(outcome)

    assert "2 times applied" in outcome.violation
    assert "repeat it: bin/faults --rounds 1 --seed 1" in text
    assert "last lines of attempt-0/pserver.0/0.log" in text
    assert "BROKEN" in line


def test_a_job_whose_processes_are_all_killed_goes_on_from_its_latest_cut() -> None:
    strike = Strike(Fault.KILL_ALL, "pserver 0", trainer=0, step=25)

    outcome = outcome_of(replace(LONG, mode="sync", strikes=(strike,)))

    assert not outcome.violation
    assert outcome.struck == [str(strike)]
    assert set(outcome.ends[0].values()) == {"killed"}
    assert set(outcome.ends[1].values()) == {"completed"}
    assert {"ledger", "bits"} <= set(outcome.checks)


def test_a_cut_that_was_acknowledged_is_there_after_everything_is_killed() -> None:
    ask = Strike(Fault.ASK, "pserver 0", trainer=0, step=3)
    strike = Strike(Fault.KILL_ALL, "pserver 0", trainer=1, step=60)
    calm = replace(CALM, steps=80, pace_s=0.02, pservers=(2, 1, 1), cut_every=1000)

    outcome = outcome_of(replace(calm, strikes=(ask, strike)))

    assert not outcome.violation
    assert outcome.struck == [str(ask), str(strike)]
    assert "an acknowledged cut is there" in outcome.checks
    assert set(outcome.ends[1].values()) == {"completed"}


def test_a_killed_trainer_is_started_again() -> None:
    strike = Strike(Fault.KILL_TRAINER, "trainer 1", trainer=0, step=3)

    outcome = outcome_of(replace(LONG, strikes=(strike,)))

    assert not outcome.violation
    assert outcome.struck == [str(strike)]
    assert any("trainer.1.1.log" in str(log) for log in outcome.logs)
    assert set(outcome.ends[0].values()) == {"completed"}


def test_a_pserver_that_is_killed_ends_the_job_with_named_errors() -> None:
    strike = Strike(Fault.KILL_PSERVER, "pserver 0", trainer=0, step=3)

    outcome = outcome_of(replace(LONG, cut_every=0, strikes=(strike,)))

    assert not outcome.violation
    ends = outcome.ends[0]
    assert ends["pserver 0"] == "killed"
    assert all(ends[f"trainer {n}"].startswith("UNAVAILABLE: ") for n in range(2))


@pytest.mark.skipif(not can_make(), reason="this user may not make network namespaces")
def test_hosts_that_are_cut_off_break_no_promise() -> None:
    """In processes of their own: the lab moves to another network."""
    ran = _lab("--rounds", "1", "--seed", str(CUT_OFF), "--hosts", "--show")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "cannot be reached for a while" in ran.stdout.partition("what struck:")[2]


@pytest.mark.skipif(compiler() is None, reason="no C compiler is here: clocks cannot be moved")
@pytest.mark.parametrize("seed", MOVED_CLOCKS)
def test_clocks_that_jump_by_hours_break_no_promise(seed: int) -> None:
    """In processes of their own: a library is loaded before all others."""
    ran = _lab("--rounds", "1", "--seed", str(seed), "--clocks", "--show")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "finds its wall clock moved" in ran.stdout.partition("what struck:")[2]


def test_a_small_disk_can_be_filled_and_made_read_only(tmp_path: Path) -> None:
    if not disks():
        pytest.skip("this user may not mount a disk")
    disk = CutsDisk(tmp_path / "disk", is_small=True)
    disk.open()
    try:
        for is_full in (True, False):
            disk.break_down(is_full=is_full)
            with pytest.raises(OSError, match=r"No space left|Read-only"):
                (disk.path / "file").write_bytes(b"x" * 4096)
            disk.mend()
            (disk.path / "file").write_bytes(b"x" * 4096)
    finally:
        disk.close()


def _is_long(command: str) -> bool:
    return any(flag in command for flag in ("--mode", "--hosts", "--minutes", "--clocks"))


COMMANDS = [
    pytest.param(line, marks=pytest.mark.long) if _is_long(line) else line
    for block in re.findall(r"^```sh\n(.*?)^```", page("guarantees.md"), re.M | re.S)
    for line in block.splitlines()
    if not line.startswith(("PSRT_", "bin/fuzz"))  # tests/fuzz runs that one
]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_runs(command: str, tmp_path: Path) -> None:
    """With one round, history or case instead of many."""
    if "--hosts" in command and not can_make():
        pytest.skip("this user may not make network namespaces")
    short = re.sub(r"--(rounds|histories|cases) \d+", r"--\1 1", command)
    arguments = shlex.split(re.sub(r"^(bin/|\S+ -m tests\.)", "", short))
    given = [str(tmp_path / each) if each.endswith(".json") else each for each in arguments[1:]]
    ran = _lab(*given, module=arguments[0])

    assert ran.returncode == ("--planted" in command), ran.stdout + ran.stderr
    for written in tmp_path.glob("*.json"):
        totals = json.loads(written.read_text())
        assert 1 in (totals.get("rounds"), totals.get("histories"))
    assert any(tmp_path.iterdir()) == ("--report" in command)


def _lab(*arguments: str, module: str = "faults") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"tests.{module}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_pserver_takes_the_failpoint_of_the_page(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^PSRT_FAILPOINT=(\S+) psrt pserver", page("guarantees.md"), re.M)
    flags = "--port", "0", "--checkpoint-dir", str(tmp_path / "cuts")
    with psrt(tmp_path / "log", "pserver", *flags, PSRT_FAILPOINT=shown) as pserver:
        pserver.wait_for("psrt pserver ready")
        pserver.process.terminate()

        assert pserver.exit_code() == 0


def test_the_page_lists_every_failpoint_with_its_state() -> None:
    listed = dict(re.findall(r"^\| `([a-z]+\.\w+)` \| (.*) \|$", page("guarantees.md"), re.M))

    assert listed == failpoints.POINTS
