"""Rows of a table age by the rounds, or mini-batches, of the job, on whichever pserver they lie."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.tensors import SelectedRows
from psrt.graph.program import Parameter
from psrt.partition.plan import build_plan
from tests.support.cluster import connect, exported, services


@pytest.mark.parametrize("mode", [specs.Sync(), specs.Async(), specs.HalfAsync()], ids=repr)
@pytest.mark.parametrize("pservers", [1, 2, 4])
def test_rows_past_their_rounds_end_on_all_pservers(
    pservers: int, mode: specs.CommunicationMode
) -> None:
    table = Parameter(
        *("t", (1000, 4), specs.Constant(0.0), 1),
        sparse=True,
        distributed=True,
        optimizer=specs.Sgd(),
        learning_rate=specs.ConstantRate(1.0),
        options=specs.TableOptions(lifecycle=specs.Lifecycle(ttl_rounds=8)),
    )
    plan = build_plan([table], [f"p{number}:1" for number in range(pservers)], mode=mode)
    with services(pservers) as servers:
        communicator, clients = connect(servers, plan, mode, 1, 0)
        communicator.start(5.0)
        for step in range(20):
            ids = np.arange(1, 9) if step == 0 else np.array([11])
            communicator.begin({})
            rows = SelectedRows(ids, np.ones((len(ids), 4), np.float32), unique=True)
            communicator.finish({"t": rows})
        communicator.flush(5.0)
        for server in servers:
            server._upkeep.sweep_due()

        assert sorted(exported(servers, "t")) == [11]
        communicator.close()
        for client in clients:
            client.close()
