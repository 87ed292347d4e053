"""Learning-rate schedules on a pserver: where steps are not rounds, they are those of all trainers.

Each push has the number of mini-batches it covers; a retried one counts once. The oracle is the
schedule's formula at the steps counted by hand.
"""

from __future__ import annotations

import numpy as np
import pytest

from psrt.core import specs
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_DENSE, PUSH_DENSE, PUSH_ROWS
from psrt.rpc.wire.frames import Message
from tests.support.inproc import Fault
from tests.support.pserver import CALL_TIMEOUT_S, InprocPserver, inproc_pserver

SCHEDULE = specs.InverseTimeDecay(0.5, 4, 2.0)
RULE = (specs.Constant(1.0), specs.Sgd(), SCHEDULE, 3)
DENSE = specs.DenseTableSpec("w", "w", (4,), 0, 4, *RULE)
SPARSE = specs.SparseTableSpec("t", 2, *RULE)
ROW = np.array([5], np.int64)

every_mode = pytest.mark.parametrize(
    "mode", [specs.Async(), specs.Ssp(), specs.HalfAsync()], ids=["async", "ssp", "half_async"]
)


def rate(step: int) -> float:
    return 0.5 / (1.0 + 2.0 * step / 4)


def push(client: Client, steps: int) -> Message:
    """Ones to all of `w` and to a row of `t`, for so many mini-batches; pulls `w`."""
    header = pb.Header(step=steps, push_key=client.next_push_key())
    header.parts.add(kind=PUSH_DENSE, table="w")
    header.parts.add(kind=PUSH_ROWS, table="t")
    header.parts.add(kind=PULL_DENSE, table="w")
    tensors = [np.ones(4, np.float32), ROW, np.ones((1, 2), np.float32)]
    return client.call(Method.PUSH, header=header, tensors=tensors, timeout_s=CALL_TIMEOUT_S)


def row_of(pserver: InprocPserver) -> np.ndarray:
    table, out = pserver.service.tables.sparse("t"), np.empty((1, 2), np.float32)
    table.read(table.route(ROW), out)
    return out


@every_mode
def test_a_push_gets_the_rate_of_all_steps_before_it(mode: specs.CommunicationMode) -> None:
    with inproc_pserver(trainers=2, mode=mode) as pserver:
        one, two = (pserver.join(trainer, DENSE, SPARSE) for trainer in range(2))

        push(one, 1)
        push(two, 3)
        push(one, 1)
        reply = push(two, 2)
        row = row_of(pserver)

    expected = 1.0 - rate(0) - rate(1) - rate(4) - rate(5)
    np.testing.assert_allclose(reply.tensors[0], expected, rtol=1e-6)
    np.testing.assert_allclose(row, expected, rtol=1e-6)
    assert reply.header.step == 7


@every_mode
def test_a_push_whose_answer_was_lost_counts_its_steps_once(mode: specs.CommunicationMode) -> None:
    with inproc_pserver(mode=mode) as pserver:
        client = pserver.join(0, DENSE, SPARSE)
        pserver.server.faults.script(Fault.RESET_AFTER, Method.PUSH)

        push(client, 3)
        reply = push(client, 1)

    np.testing.assert_allclose(reply.tensors[0], 1.0 - rate(0) - rate(3), rtol=1e-6)
    assert reply.header.step == 4
