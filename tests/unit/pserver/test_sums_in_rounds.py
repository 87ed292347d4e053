"""Rounds that update by the sum of gradients: shares are as long, whoever takes part."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.communicator.requests.router import Router
from psrt.core import specs
from psrt.core.tensors import SelectedRows
from psrt.partition.plan import PartitionPlan, PlacedBlock
from psrt.pserver.serving.id_list_cache import IdListCache
from psrt.pserver.serving.parts import Push, parse
from psrt.pserver.serving.updates import close_round
from psrt.pserver.tables import Meters, TableRegistry
from psrt.rpc.wire import Message

RULE = (specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(1.0), 3)
DENSE = specs.DenseTableSpec("w", "w", (4,), 0, 4, *RULE)
SPARSE = specs.SparseTableSpec("t", 2, *RULE)
PLAN = PartitionPlan(("here:1",), (PlacedBlock("here:1", DENSE),), (SPARSE,))
ROW = np.array([5], np.int64)


def pushes(tables: TableRegistry, size: float, sums: bool) -> list[Push]:
    """The push of a trainer, as it arrives."""
    router = Router(PLAN)
    router.sums = sums
    requests = router.requests()
    rows = SelectedRows(ROW, np.full((1, 2), -size, np.float32), unique=True)
    router.push(requests, {"w": np.full(4, -size, np.float32), "t": rows}, {})
    message = Message(requests[0].header, requests[0].tensors)
    return parse(tables, IdListCache(), message).pushes


@pytest.mark.parametrize(("sums", "expected"), [(True, 3.0 + 3.0), (False, 1.5 + 3.0)])
def test_one_that_goes_on_alone_takes_steps_of_its_own_size(sums: bool, expected: float) -> None:
    tables = TableRegistry(stripes=1)
    tables.register([DENSE, SPARSE])

    close_round([pushes(tables, 1.0, sums), pushes(tables, 2.0, sums)], 0, Meters())
    close_round([pushes(tables, 3.0, sums)], 1, Meters())

    values, _ = tables.dense("w").read()
    rows = np.empty((1, 2), np.float32)
    table = tables.sparse("t")
    table.read(table.route(ROW), rows)
    np.testing.assert_array_equal(values, np.full(4, expected))
    np.testing.assert_array_equal(rows, np.full((1, 2), expected))
