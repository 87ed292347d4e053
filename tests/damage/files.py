"""Directories of cuts as simulated jobs have left them, with every kind of file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from psrt.pserver.checkpoints import compact, complete_cuts, find_cut
from psrt.storage.directory import Directory
from psrt.storage.local_directory import LocalDirectory
from tests.sim.cluster import SimCluster
from tests.sim.disk import SimulatedDisk
from tests.sim.history import judged
from tests.sim.scenario import Scenario, durable, with_deltas
from tests.sim.world import World

PLACE = Path("/checkpoints")

JOBS = ((with_deltas, "geo", 46), (with_deltas, "sync", 136), (durable, "sync", 3))
"""The draw, mode and seed of jobs that together leave all kinds of files."""

KINDS = {
    "manifest": r"cut-\d+/manifest\.json",
    "part": r"cut-\d+/part-\d+\.json",
    "merged part": r"cut-\d+/full-\d+\.json",
    "dense": r"cut-\d+/(part|full)-\d+/dense\.arrays",
    "table": r"cut-\d+/(part|full)-\d+/table-\d+\.arrays",
    "trainer state": r"cut-\d+/part-\d+/trainer-\d+\.arrays",
    "local cut": r"deltas-\w+/\d+\.json",
    "arrays of a local cut": r"deltas-\w+/\d+/[\w-]+\.arrays",
    "served job": r"served-\w+\.json",
    "term": r"coordinator\.json",
}
"""Kinds of files by patterns of their names."""


def kind_of(name: str) -> str:
    """The kind of a file; raises `StopIteration` for one that is new to this list."""
    return next(kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, name))


@dataclass
class Left:
    """The files that one job has left, by name; `mode` is that of the job."""

    mode: str
    disk: SimulatedDisk
    files: dict[str, bytes]

    @property
    def directory(self) -> Directory:
        return LocalDirectory(PLACE, self.disk, owner="reader")

    @contextmanager
    def damaged(self, name: str, data: bytes) -> Iterator[Directory]:
        """The directory, with other contents of one file."""
        self.disk.contents(PLACE / name)[:] = data
        try:
            yield self.directory
        finally:
            self.disk.contents(PLACE / name)[:] = self.files[name]


def directories() -> Sequence[Left]:
    """Directories that the jobs have left; the newest cut of each is merged."""
    return [_left(draw(seed, mode)) for draw, mode, seed in JOBS]


def _left(scenario: Scenario) -> Left:
    made: list[SimCluster] = []

    def cluster_in(world: World) -> SimCluster:
        made.append(SimCluster(world, scenario))
        return made[0]

    judged(scenario, cluster_in, lambda cluster: None)
    disk = made[0].disk
    disk.failing_syncs = frozenset()  # those of the history are over
    directory = LocalDirectory(PLACE, disk, owner="reader")
    compact(find_cut(directory, "latest"))
    names = (str(path.relative_to(PLACE)) for path in disk.files(PLACE))
    files = {name: bytes(disk.contents(PLACE / name)) for name in names}
    complete = {f"cut-{number:08d}" for number in complete_cuts(directory)}
    return Left(scenario.mode, disk, {n: d for n, d in files.items() if _is_needed(n, complete)})


def _is_needed(name: str, complete: set[str]) -> bool:
    """False for a file of a cut that was not completed when the job ended."""
    return not name.startswith("cut-") or name.partition("/")[0] in complete
