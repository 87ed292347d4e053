"""Checks of complete cuts: they hold exactly the steps before the positions of their trainers.

Cuts are restored through the chains that they form; the newest one is merged and checked again.
"""

from __future__ import annotations

import numpy as np

from psrt.core import specs
from psrt.core.errors import PsrtError
from psrt.pserver.checkpoints import SavedCut, compact, complete_cuts, find_cut
from psrt.pserver.checkpoints.saved_cut import Record
from psrt.pserver.frozen import Meta
from psrt.pserver.tables import TableRegistry
from psrt.storage.directory import Directory
from tests.sim.ledger import PLAN, SHARED, UNIT, described, once_applied, row_of, step_of
from tests.support.geo import with_add
from tests.support.geo_cuts import residuals_in

COMPLETED, LOST = "completed", "lost"


def position_of(process: int, steps: int) -> str:
    """The position of a trainer's process after so many steps."""
    return f"{process}:{steps}"


def check_cuts(
    directory: Directory, steps: tuple[int, ...], mode: specs.CommunicationMode, whole: bool
) -> int:
    """Check each complete cut; returns their number.

    With `whole` no process was replaced, so all values are those of the steps in the cut.
    """
    numbers = complete_cuts(directory)
    try:
        for number in numbers:
            _check(find_cut(directory, str(number)), steps, mode, whole)
        if numbers and compact(find_cut(directory, "latest")):
            _check(find_cut(directory, "latest"), steps, mode, whole)
    except PsrtError as error:
        raise AssertionError(f"a cut cannot be restored: {error}") from error
    return len(numbers)


def check_last(directory: Directory, rows: dict[int, float], dense: dict[str, np.ndarray]) -> None:
    """Raise `AssertionError` unless the newest cut has all that pservers hold after the job."""
    assert complete_cuts(directory), "the job has ended without a cut"
    cut = find_cut(directory, "latest")
    cut_rows, cut_dense = restored(cut, is_geo=False)
    assert cut_rows == rows, f"cut {cut.number} has {cut_rows} at the end, pservers {rows}"
    for name, values in dense.items():
        assert (cut_dense[name] == values).all(), f"cut {cut.number}: {name} is {cut_dense[name]}"


def _check(
    cut: SavedCut, steps: tuple[int, ...], mode: specs.CommunicationMode, whole: bool
) -> None:
    is_geo = isinstance(mode, specs.Geo)
    rows, dense = restored(cut, is_geo)
    own = {row: value for row, value in rows.items() if row != SHARED}
    once = once_applied(mode, len(steps))
    for row, value in own.items():
        assert value in once, f"cut {cut.number}: {described(row)} {value / UNIT:g} times applied"
    for trainer, count in enumerate(steps):
        _check_trainer(cut, trainer, count, own)
    if is_geo:
        _check_geo(cut, own)
    if whole:
        total = sum(own.values())
        assert rows.get(SHARED, 0.0) == total, f"cut {cut.number}: the shared row is torn"
        for name, values in dense.items():
            assert (values == total).all(), f"cut {cut.number}: {name} is {values}, not {total}"


def _check_trainer(cut: SavedCut, trainer: int, count: int, own: dict[int, float]) -> None:
    """The rows of the trainer's process are those of its first steps, up to its position."""
    position = cut.position_of(trainer)
    if not position or position in (COMPLETED, LOST):
        return
    process, steps = map(int, position.split(":"))
    for step in range(count):
        row = row_of(trainer, process, step)
        assert (row in own) == (step < steps), (
            f"cut {cut.number}: {described(row)} is {'in' if row in own else 'not in'} it, but the "
            f"trainer was after {steps} steps"
        )


def _check_geo(cut: SavedCut, own: dict[int, float]) -> None:
    """Steps of trainers that took part, or had completed, are whole: pushed or residual."""
    for row, value in own.items():
        trainer, process, _ = step_of(row)
        position = cut.position_of(trainer)
        has_place = position and position not in (COMPLETED, LOST)
        if has_place and process == int(position.split(":")[0]):
            assert value == UNIT, f"cut {cut.number}: {described(row)} is there in part"


def restored(cut: SavedCut, is_geo: bool) -> tuple[dict[int, float], dict[str, np.ndarray]]:
    """Rows by id and dense values of tables that are restored from a cut, in one pserver.

    In Geo with the residuals of all trainers.
    """
    tables = TableRegistry(1)
    plan = with_add(PLAN) if is_geo else PLAN
    dense = [block.spec for block in plan.blocks]
    tables.register([*dense, plan.sparse[0]], prepare=cut.restore_into)
    ids, weights, _ = tables.sparse(PLAN.sparse[0].name).export(0, 1 << 20)
    rows = dict(zip(ids.tolist(), weights[:, 0].tolist(), strict=True))
    held = sum(facts["rows"] for facts in map(_facts_of_rows, cut.parts))
    assert len(rows) == held, f"cut {cut.number}: {len(rows)} rows are restored, {held} were held"
    rows = {row: value for row, value in rows.items() if row >= 0}
    assert all(isinstance(spec, specs.DenseTableSpec) for spec in dense)
    values = {spec.name: tables.dense(spec.name).read()[0].copy() for spec in dense}
    for left in residuals_in(cut, PLAN, PLAN.sparse[0]) if is_geo else ():
        for row, residual in zip(
            left.rows.ids.tolist(), left.rows.values[:, 0].tolist(), strict=True
        ):
            rows[row] = rows.get(row, 0.0) + residual
        for spec in dense if left.dense else ():
            values[spec.name] += left.dense[spec.parameter][spec.offset :][: spec.size]
    return rows, values


def _facts_of_rows(part: Record) -> Meta:
    tables = [table["facts"] for file in part["files"] for table in file.get("tables", ())]
    return next(facts for facts in tables if "rows" in facts)
