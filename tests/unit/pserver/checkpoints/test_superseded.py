"""A coordinator that was stopped, and goes on behind its successor, makes and deletes no cuts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from psrt.core.errors import ErrorCode, StorageError
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import Coordination, Settings, complete_cuts, files_by_cut
from psrt.storage.local_directory import LocalDirectory, LocalWriter
from tests.support.clock import ManualClock
from tests.support.cuts import ENDPOINTS, written_part

WAIT_S = 30.0


@contextmanager
def coordination(directory: LocalDirectory) -> Iterator[Coordination]:
    crashes = CrashReport()
    made = Coordination(Settings(directory), ENDPOINTS, ManualClock(), lambda: 1, crashes)
    try:
        yield made
    finally:
        made.stop()
    assert crashes.error is None


def report_parts(cuts: Coordination, directory: LocalDirectory, number: int) -> list:
    """Write and report both parts of a cut; returns the callers that wait for it."""
    return [
        cuts.part(number, endpoint, written_part(directory, number, index), "")
        for index, endpoint in enumerate(ENDPOINTS)
    ]


def test_only_the_newest_coordinator_completes_cuts(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    with coordination(directory) as old:
        asked = old.request()
        with coordination(directory) as new:
            callers = report_parts(old, directory, 1)
            for caller in (asked, *callers):
                with pytest.raises(StorageError, match="another process has coordinated"):
                    caller.future.result(WAIT_S)
            assert complete_cuts(directory) == []

            new.seen(1)  # as trainers report
            new.request()
            report_parts(new, directory, 2)
            with pytest.raises(StorageError) as found:
                old.request().future.result(WAIT_S)

    assert found.value.code is ErrorCode.STORAGE_FAILED  # no pserver deletes its part for this
    assert complete_cuts(directory) == [2]


class HeldManifest(LocalDirectory):
    """Does not give a manifest its name before `free`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked, self.free = threading.Event(), threading.Event()

    @contextmanager
    def write(self, name: str) -> Iterator[LocalWriter]:
        with super().write(name) as out:
            yield out
            if name.endswith("manifest.json"):
                self.asked.set()
                assert self.free.wait(WAIT_S)


def test_a_cut_whose_manifest_came_behind_the_successor_is_not_reported_and_stays(
    tmp_path: Path,
) -> None:
    held, directory = HeldManifest(tmp_path), LocalDirectory(tmp_path)
    with coordination(held) as old:
        asked = old.request()
        writing = threading.Thread(target=lambda: report_parts(old, directory, 1))
        writing.start()
        assert held.asked.wait(WAIT_S)  # the old one is stopped here
        with coordination(directory) as new:
            held.free.set()
            with pytest.raises(StorageError, match="another process has coordinated"):
                asked.future.result(WAIT_S)
            writing.join(WAIT_S)
            assert new.newest == 1  # it has seen the parts, and numbers its own cuts above

    assert complete_cuts(directory) == [1]
    assert len(files_by_cut(directory)[1]) == 7


def test_a_superseded_coordinator_deletes_no_files(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    with coordination(directory) as old:
        old.request()
        with coordination(directory):
            written_part(directory, 1, 1)  # of a cut of the successor with this number
            before = files_by_cut(directory)
            old.part(1, ENDPOINTS[0], "", "the disk is full")

    assert files_by_cut(directory) == before
