"""Reading of all that a directory of cuts has, as psrt reads it."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.core import specs
from psrt.core.errors import ErrorCode, StorageError
from psrt.pserver.checkpoints import SavedCut, complete_cuts, find_cut, served_job, term_file
from psrt.pserver.tables import TableRegistry
from psrt.storage.directory import Directory
from tests.damage.damages import Case
from tests.damage.files import Left
from tests.sim.ledger import PLAN
from tests.support.geo import with_add
from tests.support.geo_cuts import residuals_in


def read_all(directory: Directory, mode: str) -> None:
    """Restore all cuts, states of trainers and local cuts; raises `StorageError`."""
    is_geo = mode.startswith("geo")
    plan = with_add(PLAN) if is_geo else PLAN
    tables: list[specs.TableSpec] = [*(block.spec for block in plan.blocks), *plan.sparse]
    term_file.newest(directory)
    for number in complete_cuts(directory):
        cut = find_cut(directory, str(number))
        _restore(cut, tables)
        for _ in residuals_in(cut, PLAN, PLAN.sparse[0]) if is_geo else ():
            pass
    for endpoint in PLAN.endpoints:
        part = served_job.find(directory, endpoint.partition(":")[0])
        if part is not None and part.cut is not None:
            _restore(part.cut, part.specs)


def _restore(cut: SavedCut, tables: Sequence[specs.TableSpec]) -> None:
    TableRegistry(1).register(tables, prepare=cut.restore_into)


def fault_of(left: Left, case: Case) -> str:
    """The fault in the answer of psrt to a damage; "" for an error that names the file."""
    with left.damaged(case.name, case.applied(left.files[case.name])) as directory:
        try:
            read_all(directory, left.mode)
        except StorageError as error:
            is_named = case.name in error.message
            if error.code is ErrorCode.FILE_DAMAGED and is_named:
                return ""
            return f"{case}: {error.code.name}: {error.message}"
    return f"{case}: nothing was found"
