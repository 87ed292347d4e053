"""Bytes of a step as `psrt.sizing.traffic` computes them, and as they really travel."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.communicator.async_ import AsyncCommunicator, SspCommunicator
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync
from psrt.graph import builder
from psrt.graph.program import Program
from psrt.partition.plan import build_plan
from psrt.partition.slicing import DEFAULT_MAX_BLOCK_SIZE
from psrt.rpc.methods import Method
from psrt.rpc.wire.frames import Message, encode
from psrt.rpc.wire.preamble import PREAMBLE_BYTES
from psrt.sizing.loads import Workload, loads_of
from psrt.sizing.traffic import TableUse
from tests.support import inproc
from tests.support.cluster import Feed, train

BATCH, SLOTS, WIDTH, PSERVERS, MIN_BLOCK = 64, 4, 8, 2, 256
STEPS = 4
OF_A_STEP = (Method.PUSH, Method.PULL, Method.EXCHANGE, Method.MEET)
MODES = [
    Sync(),
    HalfAsync(),
    Async(independent_recv_thread=False),
    Async(
        independent_recv_thread=False, max_merge_var_num=4, send_queue_size=4, send_wait_times=1000
    ),
    Ssp(),
    Geo(update_frequency=4),
]


class Wire:
    """Counts calls about tables, and bytes of frames by direction, as a stream would carry them."""

    def __init__(self) -> None:
        self.bytes: Counter[str] = Counter()
        self.calls = 0

    def carry(self, message: Message) -> None:
        up = not message.header.reply
        if message.header.method in OF_A_STEP:
            size = PREAMBLE_BYTES + sum(map(len, encode(message)))
            self.bytes["up" if up else "down"] += size
            self.calls += up and bool(message.header.parts)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Frames of a cluster whose steps are queued whole.

    A gradient that is offered early may fill its queue while its step is open; how many pushes
    carry a step would then depend on which thread runs first.
    """
    for queued in (AsyncCommunicator, SspCommunicator):
        monkeypatch.setattr(queued, "offer", lambda *of_the_step: None)
    wire, over_the_wire = Wire(), inproc._over_the_wire

    def counted(message: Message) -> Message:
        wire.carry(message)
        return over_the_wire(message)

    monkeypatch.setattr(inproc, "_over_the_wire", counted)
    return wire


def program() -> tuple[Program, str]:
    with builder.program(seed=3) as made:
        ids = layers.data("ids", shape=(SLOTS,), dtype="int64")
        y = layers.data("y")
        rows = layers.embedding(ids, (10**6, WIDTH), is_distributed=True)
        hidden = layers.fc(layers.flatten(rows), 48)
        loss = layers.mean(layers.square_error_cost(layers.fc(hidden, 1), y))
        psrt.optimizer.Sgd(0.01).minimize(loss)
    return made, loss.name


def feeds(trainer: int, steps: int) -> list[Feed]:
    """Ids without repetition, so that the number of distinct ones is known."""
    of_step = BATCH * SLOTS
    first = 10**5 * trainer
    return [
        {
            "ids": np.arange(first + step * of_step, first + (step + 1) * of_step).reshape(
                BATCH, SLOTS
            ),
            "y": np.ones((BATCH, 1), np.float32),
        }
        for step in range(steps)
    ]


def travelled(
    wire: Wire, mode: CommunicationMode, steps: int, trainers: int, most: int
) -> Counter[str]:
    wire.bytes.clear()
    wire.calls = 0
    made, loss = program()
    train(made, loss, [feeds(t, steps) for t in range(trainers)], PSERVERS, mode, MIN_BLOCK, most)
    return Counter({**wire.bytes, "calls": wire.calls})


@pytest.mark.parametrize("max_block_size", [DEFAULT_MAX_BLOCK_SIZE, 320], ids=["", "buckets"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_predicted_bytes_are_those_that_travel(
    wire: Wire, mode: CommunicationMode, max_block_size: int
) -> None:
    trainers = 1 if isinstance(mode, Geo) else 2  # what others have changed depends on the moment
    plan = build_plan(
        program()[0].parameters.values(),
        [f"p{n}:1" for n in range(PSERVERS)],
        min_block_size=MIN_BLOCK,
        max_block_size=max_block_size,
        mode=mode,
    )
    distinct = BATCH * SLOTS
    use = TableUse(plan.sparse[0], 10**6, distinct, distinct)
    loads = loads_of(plan, Workload(mode, trainers, 0.0, (use,)), stripes=4)
    up = sum(call.up_bytes for load in loads for call in load.calls) * trainers
    down = sum(call.down_bytes for load in loads for call in load.calls) * trainers
    about_tables = [call for load in loads for call in load.calls if call.request.parts]
    calls = sum(call.per_step for call in about_tables) * trainers

    more = travelled(wire, mode, 3 * STEPS, trainers, max_block_size)
    more.subtract(travelled(wire, mode, STEPS, trainers, max_block_size))

    assert more["up"] / (2 * STEPS) == pytest.approx(up, rel=0.05)
    assert more["down"] / (2 * STEPS) == pytest.approx(down, rel=0.05)
    assert more["calls"] / (2 * STEPS) == pytest.approx(calls, rel=0.05)
