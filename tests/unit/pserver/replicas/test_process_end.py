"""The end of a process of a pair, as a decision."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from psrt.core.errors import JobError, PsrtError
from psrt.pserver.replicas.process_end import Ends, Home, Lingers, end_of


@dataclass
class Copy:
    has_ended: bool = False
    is_over: bool = False
    failure: PsrtError | None = None


RUNS, ENDED, OVER = Copy(), Copy(has_ended=True), Copy(has_ended=True, is_over=True)
ERROR = JobError("the job was aborted")
FAILED = Copy(failure=ERROR)
ANY_COPIES = pytest.mark.parametrize("copies", [[], [RUNS], [OVER, OVER], [FAILED]], ids=str)
SERVES_NONE = pytest.mark.parametrize("home", [Home.UNUSED, Home.FENCED])


@ANY_COPIES
@pytest.mark.parametrize(
    ("home", "served_run"),
    [
        (Home.SERVED, []),
        (Home.SERVED, [False]),
        (Home.ENDED, [True]),
        (Home.FENCED, [False, True]),
        (Home.UNUSED, [True]),
    ],
)
def test_a_process_goes_on_while_a_part_that_it_serves_runs(
    home: Home, served_run: list[bool], copies: list[Copy]
) -> None:
    assert end_of(home, served_run, copies, True) is None


@ANY_COPIES
@pytest.mark.parametrize(
    ("home", "served_run"),
    [(Home.ENDED, []), (Home.ENDED, [False]), (Home.FENCED, [False]), (Home.UNUSED, [False])],
)
def test_it_ends_well_with_the_last_part_that_it_serves_whatever_its_copies(
    home: Home, served_run: list[bool], copies: list[Copy]
) -> None:
    assert end_of(home, served_run, copies, False) == Ends()


@SERVES_NONE
def test_one_that_serves_none_ends_with_the_error_of_the_job(home: Home) -> None:
    assert end_of(home, [], [RUNS, FAILED], True) == Ends(ERROR)


@SERVES_NONE
def test_one_that_serves_none_lingers_until_all_its_copies_are_over(home: Home) -> None:
    ends = [end_of(home, [], [one, OVER], True) for one in (RUNS, ENDED, OVER)]

    assert ends == [None, Lingers(), Ends()]


@SERVES_NONE
def test_one_that_serves_none_waits_for_copies_that_have_not_come(home: Home) -> None:
    assert end_of(home, [], [], True) is None
    assert end_of(home, [], [OVER], False) is None
