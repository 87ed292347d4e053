"""Cuts of tables in this process: those of a job with one trainer and one pserver.

`psrt checkpoint` shows, exports and compacts them, and a job on a cluster can begin with one
(`--warm-start`).
"""

from __future__ import annotations

from psrt.communicator.base import Beginning
from psrt.core.clock import MonotonicClock
from psrt.core.errors import ConfigError
from psrt.core.specs import Sync, to_plain
from psrt.core.threads import CrashReport
from psrt.partition.plan import PartitionPlan
from psrt.pserver.checkpoints import Coordination, SavedCut, Settings, find_cut, write_part
from psrt.pserver.tables import DenseTable, TableRegistry
from psrt.storage.directory import Directory
from psrt.storage.locate import directory_at

_TRAINER, _INCARNATION = 0, 1


class LocalTableCuts:
    """The cuts in `directory`, "" = none; `resume` is `latest` or the number of one."""

    def __init__(self, directory: str, resume: str) -> None:
        self._directory = directory_at(directory) if directory else None
        self._resumed: SavedCut | None = None
        if resume:
            if self._directory is None:
                raise ConfigError(
                    f"resume={resume!r} was given without a directory of cuts.",
                    hint="Give pt.local() the checkpoint_dir, too.",
                )
            self._resumed = find_cut(self._directory, resume)

    @property
    def are_made(self) -> bool:
        return self._directory is not None

    def restore(self, tables: TableRegistry) -> Beginning:
        """Fill tables from the resumed cut; returns where training begins."""
        cut = self._resumed
        if cut is None:
            return Beginning()
        for table in tables.all():
            cut.restore_into(table)
        return Beginning(cut.number, cut.position_of(_TRAINER))

    def make(self, tables: TableRegistry, plan: PartitionPlan, position: str, wait_s: float) -> int:
        """Write a cut; returns its number. Raises `ConfigError` without a directory."""
        if self._directory is None:
            raise ConfigError(
                "a cut was asked for, and this session writes none; nothing was saved.",
                hint="Give pt.local() a checkpoint_dir.",
            )
        crashes, here = CrashReport(), plan.endpoints
        cuts = Coordination(Settings(self._directory), here, MonotonicClock(), lambda: 0, crashes)
        try:
            caller, number = cuts.request(), cuts.proposed
            record = _written(self._directory, number, tables, _facts(plan, position))
            cuts.part(number, here[0], record, "")
            caller.future.result(wait_s)
        finally:
            cuts.stop()
        crashes.check()
        return number


def _written(
    directory: Directory, number: int, tables: TableRegistry, facts: dict[str, object]
) -> str:
    """Write all tables as the one part of a cut; returns its record."""
    dense = [table.freeze() for table in tables.all() if isinstance(table, DenseTable)]
    sparse = [table.freeze() for table in tables.all_sparse()]
    try:
        return write_part(directory, number, 0, dense, sparse, facts)
    finally:
        for each in (*dense, *sparse):
            each.close()


def _facts(plan: PartitionPlan, position: str) -> dict[str, object]:
    """The facts of a part beside its tables."""
    job = {"id": "local", "trainers": 1, "mode": to_plain(Sync()), "plan_hash": plan.hash()}
    participants = [[_TRAINER, _INCARNATION, position]]
    own = {"incarnation": _INCARNATION, "state": {}, "specs": []}
    return {"job": job, "round": 0, "step": 0, "participants": participants, **own}
