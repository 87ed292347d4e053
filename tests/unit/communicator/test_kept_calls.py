"""Meetings and first values of dense parameters, repeated to a pserver that lacks them."""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.communicator.requests import KeptCalls
from psrt.core.specs import Async
from psrt.partition.plan import PartitionPlan, PlacedBlock
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_DENSE, PUSH_DENSE
from tests.support.pserver import CALL_TIMEOUT_S, TABLE, InprocPserver, inproc_pserver

PLAN = PartitionPlan(("inproc",), (PlacedBlock("inproc", TABLE),), ())
TRAINERS = 2


class MovedClient:
    """A client of one trainer whose pserver is replaced by another one."""

    endpoint = "inproc"

    def __init__(self, trainer: int, pserver: InprocPserver) -> None:
        self._trainer = trainer
        self.move(pserver)

    def move(self, pserver: InprocPserver) -> None:
        self.client = pserver.join(self._trainer, TABLE)

    def call(self, method: Method, **given: Any) -> Any:
        return self.client.call(method, **given)


def meeting(reached: int, note: str, awaited: int = 0) -> pb.Meet:
    return pb.Meet(clock="cut", reached=reached, awaited=awaited, note=note)


def values(client: MovedClient) -> list[float]:
    header = pb.Header(parts=[pb.Part(kind=PULL_DENSE, table="w")])
    reply = client.call(Method.PULL, header=header, timeout_s=CALL_TIMEOUT_S)
    return [float(each) for each in reply.tensors[0]]


def test_another_trainer_still_gets_the_notes_of_the_time_before() -> None:
    with inproc_pserver(trainers=TRAINERS) as old, inproc_pserver(trainers=TRAINERS) as new:
        ahead, behind = (MovedClient(trainer, old) for trainer in range(TRAINERS))
        kept = KeptCalls(PLAN, [ahead])  # type: ignore[list-item]
        for time in (1, 2, 3):
            kept.meet(meeting(time, f"note {time}"), CALL_TIMEOUT_S)

        for each in (ahead, behind):
            each.move(new)
        kept.send_again(ahead, CALL_TIMEOUT_S)  # type: ignore[arg-type]

        late = KeptCalls(PLAN, [behind])  # type: ignore[list-item]
        for time in (2, 3):
            reply = late.meet(meeting(time, "", awaited=time), CALL_TIMEOUT_S)
            assert list(reply.notes) == [f"note {time}", ""]


def test_dense_parameters_begin_with_the_given_values_again_unless_they_were_updated() -> None:
    given = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    own = {"trainers": 1, "mode": Async()}
    with inproc_pserver(**own) as old, inproc_pserver(**own) as new:
        client = MovedClient(0, old)
        kept = KeptCalls(PLAN, [client])  # type: ignore[list-item]
        kept.give({"w": given}, CALL_TIMEOUT_S)
        kept.keep({"w": given})
        given[:] = 0.0
        assert values(client) == [1.0, 2.0, 3.0, 4.0]

        client.move(new)
        kept.send_again(client, CALL_TIMEOUT_S)  # type: ignore[arg-type]
        assert values(client) == [1.0, 2.0, 3.0, 4.0]

        pushed = pb.Header(push_key=client.client.next_push_key())
        pushed.parts.add(kind=PUSH_DENSE, table="w")
        ones = np.ones(4, np.float32)
        client.call(Method.PUSH, header=pushed, tensors=[ones], timeout_s=CALL_TIMEOUT_S)
        kept.send_again(client, CALL_TIMEOUT_S)  # type: ignore[arg-type]
        assert values(client) == [0.5, 1.5, 2.5, 3.5]
