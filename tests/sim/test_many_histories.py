"""`python -m tests.sim`: many histories in several processes, and what it prints of broken ones."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.sim.__main__ import main
from tests.sim.kinds import KINDS, drawn_of
from tests.sim.scenario import ALL_MODES, ALL_PAIRED_MODES
from tests.support.many_seeds import results_of

PLANTED = "a push is applied twice"


def test_seeds_draw_every_kind_by_its_share_and_every_mode() -> None:
    drawn = [drawn_of(seed)[:2] for seed in range(4000)]

    kinds = Counter(kind for kind, _ in drawn)
    assert {name: round(count / 40) for name, count in kinds.items()} == pytest.approx(
        {name: kind.percent for name, kind in KINDS.items()}, abs=3
    )
    assert {mode for kind, mode in drawn if kind == "plain"} == set(ALL_MODES)
    assert {mode for kind, mode in drawn if kind == "backups"} == set(ALL_PAIRED_MODES)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_seed_runs_once_in_any_number_of_processes(jobs: int) -> None:
    assert sorted(results_of(abs, range(-40, 0), jobs)) == list(range(1, 41))


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_history_begins_once_the_time_is_over(jobs: int) -> None:
    assert list(results_of(abs, range(10**9), jobs, minutes=1e-9)) == []


def test_a_broken_history_is_counted_and_printed_with_the_command_that_repeats_it(
    tmp_path: Path,
) -> None:
    report = tmp_path / "report.json"
    given = "--first", "697", "--histories", "6", "--all", "--jobs", "2", "--planted", PLANTED
    given += "--report", str(report)

    ran = _main(*given)

    totals = json.loads(report.read_text())
    assert totals["histories"] == sum(totals["kinds"].values()) == 6
    assert totals["broken"]
    assert ran.exit_code == 1
    for broken in totals["broken"]:
        assert f"repeat it: {broken['repeat']}\n" in ran.output
    repeated = _main(*_arguments(totals["broken"][0]["repeat"]))
    assert totals["broken"][0]["violation"] in repeated.output


@pytest.mark.parametrize("option", ["--mode=sync", "--small"])
def test_all_histories_are_of_every_mode_and_size(option: str) -> None:
    ran = _main("--all", option)

    assert ran.exit_code == 2
    assert f"leave out {option.partition('=')[0]}" in ran.output


def _main(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def _arguments(command: str) -> list[str]:
    return shlex.split(command.removeprefix("python -m tests.sim "))
