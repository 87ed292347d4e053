"""Shows and clicks of ids travel with the gradient rows and are added, never averaged."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.communicator.async_.gradient_queue import merge_rows
from psrt.communicator.requests.router import Router
from psrt.core.precision import WirePrecision
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I64
from psrt.kernels.tables.rows import merge
from psrt.pserver.serving.id_list_cache import IdListCache
from psrt.pserver.serving.parts import Push, parse
from psrt.pserver.serving.updates import apply_now, close_round
from psrt.pserver.tables.meters import Meters
from psrt.pserver.tables.sparse_table import SparseTable
from psrt.pserver.tables.table_registry import TableRegistry
from psrt.rpc.wire.frames import Message
from tests.support.communicators import ENDPOINTS, PLAN

(SPEC,) = PLAN.sparse
IDS = np.array([5, -9, 2**62, 0, 77], np.int64)
COUNTS = np.array([[3, 1], [1, 0], [8, 8], [2, 0], [1, 1]], np.float32)
VALUES = np.ones((5, 3), np.float32)


class Recording(SparseTable):
    """Records the gradients it gets, and their time."""

    def __init__(self) -> None:
        super().__init__(SPEC, stripes=2)
        self.applied: dict[int, tuple[list[float], list[float] | None]] = {}
        self.now = 0

    def apply(  # type: ignore[no-untyped-def]
        self, routed, gradients: F32, rate: float, counts: F32 | None = None, now: int = 0
    ) -> None:
        self.now = now
        for i, row_id in enumerate(routed.ids.tolist()):
            sent = None if counts is None else counts[i].tolist()
            self.applied[row_id] = gradients[i].tolist(), sent


def pushed(rows: SelectedRows, wire: str = "float32") -> list[Message]:
    """The messages to the pservers of the plan."""
    router = Router(PLAN, WirePrecision(wire))
    requests = router.requests()
    router.push(requests, {"emb": rows}, {})
    assert len(requests) == len(ENDPOINTS)
    return [Message(request.header, request.tensors) for request in requests]


def parsed(messages: list[Message], table: SparseTable) -> list[Push]:
    tables = TableRegistry(stripes=2)
    tables._tables["emb"] = table
    return [push for message in messages for push in parse(tables, IdListCache(), message).pushes]


@pytest.mark.parametrize("wire", ["float32", "float16", "int8"])
def test_counts_go_to_the_owners_of_their_ids_in_float32(wire: str) -> None:
    found: dict[int, list[float]] = {}

    for push in parsed(pushed(SelectedRows(IDS, VALUES, 0, True, COUNTS), wire), Recording()):
        found |= dict(zip(push.rows.ids.tolist(), push.counts.tolist(), strict=True))

    assert found == dict(zip(IDS.tolist(), COUNTS.tolist(), strict=True))


def test_without_counts_nothing_of_them_travels() -> None:
    pushes = parsed(pushed(SelectedRows(IDS, VALUES, 0, True)), Recording())

    assert [push.counts for push in pushes] == [None, None]


def rows(ids: I64, counts: F32 | None) -> SelectedRows:
    return SelectedRows(ids, np.ones((len(ids), 3), np.float32), counts=counts)


def test_counts_of_equal_ids_are_added_where_gradients_are() -> None:
    twice = np.array([5, -9, 5], np.int64)

    alone = merge(rows(twice, COUNTS[:3]))
    together = merge_rows([rows(IDS[:2], COUNTS[:2]), rows(IDS[1:3], COUNTS[1:3])])

    assert dict(zip(alone.ids.tolist(), alone.counts.tolist(), strict=True)) == {
        5: [11, 9],
        -9: [1, 0],
    }
    assert dict(zip(together.ids.tolist(), together.counts.tolist(), strict=True)) == {
        5: [3, 1],
        -9: [2, 0],
        2**62: [8, 8],
    }


def test_a_round_forms_the_mean_of_gradients_and_the_sum_of_counts() -> None:
    table = Recording()
    one = parsed(pushed(SelectedRows(IDS[:2], VALUES[:2], 0, True, COUNTS[:2])), table)
    other = parsed(pushed(SelectedRows(IDS[1:3], VALUES[1:3], 0, True, COUNTS[1:3])), table)

    close_round([one, other], 0, Meters())

    assert table.applied == {
        5: ([0.5] * 3, [3, 1]),
        -9: ([1.0] * 3, [2, 0]),
        2**62: ([0.5] * 3, [8, 8]),
    }


@pytest.mark.parametrize("trainers", [1, 2])
def test_rows_bear_the_round_that_has_closed_or_the_mini_batch(trainers: int) -> None:
    table = Recording()
    pushes = [parsed(pushed(SelectedRows(IDS, VALUES, 0, True)), table)[:1]] * trainers

    close_round(pushes, 6, Meters())
    in_sync = table.now
    apply_now(pushes[0], 41, 0, Meters())

    assert (in_sync, table.now) == (7, 42)


def test_counts_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="counts of shape"):
        SelectedRows(IDS, VALUES, counts=np.zeros((4, 2), np.float32))
