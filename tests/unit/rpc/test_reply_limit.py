"""A pull whose reply the carrier would not send is refused before anything is read for it."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import ErrorCode, WireError
from psrt.pserver.serving.id_list_cache import IdListCache
from psrt.pserver.serving.parts import RequestParts, parse
from psrt.pserver.tables.table_registry import TableRegistry
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Peer
from psrt.rpc.wire import PRECISION_CODES, PULL_CHANGED, PULL_DENSE, PULL_ROWS, PUSH_DENSE, Message
from tests.support.pserver import TABLE, inproc_pserver

WIDTH, COUNT = 8, 100
IDS = np.arange(COUNT, dtype=np.int64)
ROWS = specs.SparseTableSpec(
    "emb", WIDTH, specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(1.0), seed=1
)


@pytest.fixture
def tables() -> TableRegistry:
    built = TableRegistry(stripes=2)
    built.register([TABLE, ROWS], logs_changes=True)
    return built


def asked(tables: TableRegistry, limit: int, *parts: pb.Part, ids: int = 0) -> RequestParts:
    tensors = [IDS] * ids
    return parse(tables, IdListCache(), Message(pb.Header(parts=parts), tensors, reply_limit=limit))


@pytest.mark.parametrize(
    ("precision", "size_bytes"), [("float32", 4), ("float16", 2), ("bfloat16", 2), ("int8", 1)]
)
def test_the_bytes_of_the_rows_decide_in_the_precision_they_travel_in(
    tables: TableRegistry, precision: str, size_bytes: int
) -> None:
    part = pb.Part(kind=PULL_ROWS, table="emb", wire=PRECISION_CODES[precision])
    enough = COUNT * WIDTH * size_bytes

    assert len(asked(tables, enough, part, ids=1).pulls) == 1
    with pytest.raises(WireError, match=f"{enough} bytes .* the limit is {enough - 1}") as caught:
        asked(tables, enough - 1, part, ids=1)

    assert caught.value.code == ErrorCode.WIRE_TOO_LARGE
    assert "max_message_mib" in caught.value.hint


def test_parts_count_together_and_as_often_as_they_stand_there(tables: TableRegistry) -> None:
    dense, rows = pb.Part(kind=PULL_DENSE, table="w"), pb.Part(kind=PULL_ROWS, table="emb")
    enough = 50 * 4 * TABLE.size + 2 * COUNT * WIDTH * 4

    assert len(asked(tables, enough, *[dense] * 50, rows, rows, ids=2).pulls) == 52
    with pytest.raises(WireError, match="the limit"):
        asked(tables, enough - 1, *[dense] * 50, rows, rows, ids=2)


def test_all_rows_count_from_position_zero(tables: TableRegistry) -> None:
    table = tables.sparse("emb")
    routed = table.route(IDS)
    table.apply(routed, np.ones((COUNT, WIDTH), np.float32), 1.0)
    table.log(0, routed)
    enough = COUNT * (8 + 4 * WIDTH)

    assert len(asked(tables, enough, pb.Part(kind=PULL_CHANGED, table="emb")).pulls) == 1
    assert len(asked(tables, 10, pb.Part(kind=PULL_CHANGED, table="emb", position=1)).pulls) == 1
    with pytest.raises(WireError, match="the limit"):
        asked(tables, enough - 1, pb.Part(kind=PULL_CHANGED, table="emb"))


def test_a_push_whose_pulls_are_refused_is_not_applied() -> None:
    with inproc_pserver(mode=specs.Async()) as pserver:
        client = pserver.join(0, TABLE)
        header = pb.Header(
            protocol=1,
            method=Method.PUSH,
            push_key=pb.PushKey(incarnation=1000, sequence=1),
            parts=[pb.Part(kind=kind, table="w") for kind in (PUSH_DENSE, PULL_DENSE)],
            step=1,
        )
        ones = np.ones(TABLE.size, np.float32)
        push = Message(header, [ones], reply_limit=4 * TABLE.size - 1)

        with pytest.raises(WireError, match="the limit"):
            pserver.service.handle(push, Peer("inproc", "test"))
        version = pserver.service.tables.dense("w").version
        client.close()

    assert version == 0
