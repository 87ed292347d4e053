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
from tests.sim.ledger import PLAN, SHARED, UNIT, described, row_of

COMPLETED = "completed"


def position_of(process: int, steps: int) -> str:
    """The position of a trainer's process after so many steps."""
    return f"{process}:{steps}"


def check_cuts(directory: Directory, steps: tuple[int, ...], mean: bool, whole: bool) -> int:
    """Check each complete cut; returns their number.

    With `whole` no process was replaced, so all values are those of the steps in the cut.
    """
    numbers = complete_cuts(directory)
    try:
        for number in numbers:
            _check(find_cut(directory, str(number)), steps, mean, whole)
        if numbers and compact(find_cut(directory, "latest")):
            _check(find_cut(directory, "latest"), steps, mean, whole)
    except PsrtError as error:
        raise AssertionError(f"a cut cannot be restored: {error}") from error
    return len(numbers)


def _check(cut: SavedCut, steps: tuple[int, ...], mean: bool, whole: bool) -> None:
    rows, dense = _restored(cut)
    own = {row: value for row, value in rows.items() if row != SHARED}
    once = {UNIT / n for n in range(1, len(steps) + 1)} if mean else {float(UNIT)}
    for row, value in own.items():
        assert value in once, f"cut {cut.number}: {described(row)} {value / UNIT:g} times applied"
    for trainer, count in enumerate(steps):
        _check_trainer(cut, trainer, count, own)
    if whole:
        total = sum(own.values())
        assert rows.get(SHARED, 0.0) == total, f"cut {cut.number}: the shared row is torn"
        for name, values in dense.items():
            assert (values == total).all(), f"cut {cut.number}: {name} is {values}, not {total}"


def _check_trainer(cut: SavedCut, trainer: int, count: int, own: dict[int, float]) -> None:
    """The rows of the trainer's process are those of its first steps, up to its position."""
    position = cut.position_of(trainer)
    if not position or position == COMPLETED:
        return
    process, steps = map(int, position.split(":"))
    for step in range(count):
        row = row_of(trainer, process, step)
        assert (row in own) == (step < steps), (
            f"cut {cut.number}: {described(row)} is {'in' if row in own else 'not in'} it, but the "
            f"trainer was after {steps} steps"
        )


def _restored(cut: SavedCut) -> tuple[dict[int, float], dict[str, np.ndarray]]:
    """Rows by id and dense values of tables that are restored from a cut, in one pserver."""
    tables = TableRegistry(1)
    dense = [block.spec for block in PLAN.blocks]
    tables.register([*dense, PLAN.sparse[0]], prepare=cut.restore_into)
    ids, weights, _ = tables.sparse(PLAN.sparse[0].name).export(0, 1 << 20)
    rows = dict(zip(ids.tolist(), weights[:, 0].tolist(), strict=True))
    held = sum(facts["rows"] for facts in map(_facts_of_rows, cut.parts))
    assert len(rows) == held, f"cut {cut.number}: {len(rows)} rows are restored, {held} were held"
    rows = {row: value for row, value in rows.items() if row >= 0}
    assert all(isinstance(spec, specs.DenseTableSpec) for spec in dense)
    return rows, {spec.name: tables.dense(spec.name).read()[0] for spec in dense}


def _facts_of_rows(part: Record) -> Meta:
    tables = [table["facts"] for file in part["files"] for table in file["tables"]]
    return next(facts for facts in tables if "rows" in facts)
