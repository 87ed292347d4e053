"""Complete cuts in a directory, of a job of two pservers and two trainers, without processes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from psrt.coordinator.retention import Retention
from psrt.core.specs import Async, CommunicationMode, Sync, to_plain
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import Coordination, Settings
from psrt.pserver.checkpoints.part_writer import write_part
from psrt.storage.directory import Directory
from tests.support.clock import ManualClock
from tests.support.frozen import BASE, DENSE, WIDTH, block_of, holds, table_of

ENDPOINTS = ("a:6170", "b:6170")
WAIT_S = 30.0
PLACE = {"positions": [{"file": "data/train-0", "offset": 0, "line": 0, "examples": 2560}]}
STATE = json.dumps({"epoch": 2, "steps": 1500, "place": PLACE})


def write_cuts(directory: Directory, count: int, mode: CommunicationMode | None = None) -> None:
    """Write `count` further cuts; each pserver holds a dense parameter or a half of one, and half
    of the rows of a table."""
    settings = Settings(directory, retention=Retention(100))
    crashes = CrashReport()
    cuts = Coordination(settings, ENDPOINTS, ManualClock(), lambda: 1, crashes)
    try:
        for _ in range(count):
            _write_cut(cuts, directory, mode or Sync())
    finally:
        cuts.stop()
    assert crashes.error is None


def _write_cut(cuts: Coordination, directory: Directory, mode: CommunicationMode) -> None:
    caller = cuts.request()
    number = cuts.proposed
    for index, endpoint in enumerate(ENDPOINTS):
        cuts.part(number, endpoint, written_part(directory, number, index, mode), "")
    caller.future.result(WAIT_S)


def written_part(
    directory: Directory, number: int, index: int, mode: CommunicationMode | None = None
) -> str:
    """Write the part of pserver `index`; returns its record."""
    return write_part(directory, number, index, *_tables(index), _facts(number, mode or Sync()))


def _tables(index: int) -> tuple[list[Any], list[Any]]:
    """Frozen tables of pserver `index`: 30 elements of `w`, and 7 rows of `emb`."""
    block = replace(DENSE["adagrad"], name=f"w.block{index}", offset=30 * index, size=30)
    half = replace(BASE, first_shard=512 * index, last_shard=512 * (index + 1))
    table = table_of(half)
    ids = np.array([i for i in range(1000) if holds(table, np.int64(i))][:7], np.int64)
    table.apply(table.route(ids), np.ones((7, WIDTH), np.float32), 0.1, None, 1)
    return [block_of(block, [np.ones(30, np.float32)]).freeze()], [table.freeze()]


def _facts(number: int, mode: CommunicationMode) -> dict[str, Any]:
    job = {"id": "clicks", "trainers": 2, "mode": to_plain(mode), "plan_hash": "0" * 64}
    step = 4000 * number if isinstance(mode, Async) else 0
    participants = [[0, 7, STATE], [1, 8, "completed"]]
    counts = {"round": 20 * number, "step": step}
    own = {"participants": participants, "incarnation": 9, "state": {}, "specs": []}
    return {"job": job, **counts, **own}
