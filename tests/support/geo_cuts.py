"""Changes in a cut that trainers of Geo hold, and no pserver has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from psrt.communicator.geo.geo_state import RestoredState
from psrt.communicator.requests import StatePage
from psrt.core.specs import SparseTableSpec
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32
from psrt.partition.plan import PartitionPlan
from psrt.pserver.checkpoints import SavedCut
from tests.support.geo import OwnByHand


@dataclass(frozen=True)
class Residuals:
    """Changes of one trainer: rows of its table, and by parameter a change of each value."""

    rows: SelectedRows
    dense: dict[str, F32]


def residuals_in(cut: SavedCut, plan: PartitionPlan, table: SparseTableSpec) -> list[Residuals]:
    """The changes that the trainers of a cut have not pushed, by trainer."""
    return [_residuals_of(cut, trainer, plan, table) for trainer in range(cut.states)]


def _residuals_of(
    cut: SavedCut, trainer: int, plan: PartitionPlan, table: SparseTableSpec
) -> Residuals:
    own = OwnByHand(table)
    state = RestoredState(own, plan.dense_shapes, trainer, cut.number)
    for page in _state_pages(cut, trainer):
        state.take(trainer, page)
    dense = {name: (train - old).reshape(-1) for name, (train, old) in state.dense.items()}
    return Residuals(own.tables[table.name].give(1, all_rows=True), dense)


def _state_pages(cut: SavedCut, trainer: int) -> Iterator[StatePage]:
    number, is_last = 0, False
    while not is_last and (found := cut.state_page(trainer, number)) is not None:
        page, is_last = found
        yield StatePage(page.meta, page.arrays)
        number += 1
