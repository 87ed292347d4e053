"""Crashes while a chain is merged or deleted: each cut that is left restores what it did before."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from psrt.coordinator.retention import Retention
from psrt.pserver.checkpoints import Bases, compact, complete_cuts, find_cut, remove_cut
from psrt.storage.directory import Directory
from psrt.storage.local_directory import LocalDirectory
from tests.sim.disk import Crashed, SimulatedDisk
from tests.support.chains import ChainedPservers, all_state, registered, specs_of
from tests.support.frozen import BASE, pushes_of

# A file of a crashed process cannot be closed either, whenever its reader is collected.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SPECS, CUTS, STRIDE = specs_of(BASE), Path("/cuts"), 3


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[SimulatedDisk, dict[int, Any]]:
    """A disk with cuts 1 to 4 in two chains, and what they restore."""
    written = LocalDirectory(tmp_path_factory.mktemp("cuts"))
    job = ChainedPservers(written, SPECS, full_every=3)
    for push in pushes_of(3, 4, batch=24, known=60):
        job.push(push)
        job.drop(push.ids[:6])
        job.cut()
    job.close()
    disk = SimulatedDisk(1)
    directory = LocalDirectory(CUTS, disk)
    for name in written.names():
        with written.read(name) as file, directory.write(name) as out:
            out.write(file.read(0, file.size_bytes))
    return disk, job.states


def crashed_at(disk: SimulatedDisk, step: int, act: Callable[[Directory], None]) -> Directory:
    """The directory after `act` was ended at a step of the disk, and the disk came up again."""
    again = copy.deepcopy(disk)
    again.crash_at = again.steps + step
    with suppress(Crashed):
        act(LocalDirectory(CUTS, again))
    again.restart()
    return LocalDirectory(CUTS, again)


def steps_of(disk: SimulatedDisk, act: Callable[[Directory], None]) -> int:
    """The steps of the disk that `act` takes."""
    again = copy.deepcopy(disk)
    act(LocalDirectory(CUTS, again))
    return again.steps - disk.steps


def merge(directory: Directory) -> None:
    compact(find_cut(directory, "3"))


def prune(directory: Directory) -> None:
    for number in Retention(1).dropped(complete_cuts(directory), Bases(directory).of):
        remove_cut(directory, number)


@pytest.mark.parametrize("act", [merge, prune])
def test_a_crash_at_any_step_leaves_cuts_that_restore(
    job: tuple[SimulatedDisk, dict[int, Any]], act: Callable[[Directory], None]
) -> None:
    disk, states = job
    ends = set()
    for step in range(1, steps_of(disk, act) + 2, STRIDE):
        directory = crashed_at(disk, step, act)
        left = complete_cuts(directory)
        for number in left:
            cut = find_cut(directory, str(number))
            assert all_state([registered(each, cut) for each in SPECS]) == states[number]
        ends.add((*left, *find_cut(directory, str(left[-1])).bases))
        assert left[-1] == 4

    assert len(ends) == (1 if act is merge else 4)


def test_a_merge_that_was_ended_is_made_again(job: tuple[SimulatedDisk, dict[int, Any]]) -> None:
    disk, states = job
    for step in range(1, steps_of(disk, merge) + 1, STRIDE):
        directory = crashed_at(disk, step, merge)
        merge(directory)

        cut = find_cut(directory, "3")
        assert (cut.bases, len(cut.files)) == ((), 4)
        assert all_state([registered(each, cut) for each in SPECS]) == states[3]
        names = directory.names("cut-00000003/")
        assert len(names) == 7
