"""Rows others have changed: asked for behind everything else, of a size nobody knew."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.communicator.requests.requests import Request
from psrt.core import specs
from psrt.core.errors import WireError
from psrt.rpc import pb
from psrt.rpc.wire import PULL_CHANGED, PULL_DENSE
from psrt.rpc.wire.frames import Message

RULE = (specs.Constant(0.0), specs.Add(), specs.ConstantRate(1.0), 1)
NARROW, WIDE = specs.SparseTableSpec("a", 1, *RULE), specs.SparseTableSpec("z", 3, *RULE)
IDS = np.array([7, -1], np.int64)


def asked() -> tuple[Request, np.ndarray]:
    """Of `w` and of both tables, and where `w` goes."""
    request, out = Request(), np.zeros(2, np.float32)
    request.pull_block("w", out)
    request.pull_changed(NARROW, 0)
    request.pull_changed(WIDE, 12)
    return request, out


def reply(*tensors: np.ndarray, tables: tuple[str, ...] = ("a", "z")) -> Message:
    header = pb.Header(step=40)
    header.parts.add(kind=PULL_DENSE, table="w", version=3)
    for number, table in enumerate(tables):
        header.parts.add(kind=PULL_CHANGED, table=table, version=4, position=20 + number)
    return Message(header, [np.array([1, 2], np.float32), *tensors])


def rows(count: int, width: int) -> np.ndarray:
    return np.arange(count * width, dtype=np.float32).reshape(count, width)


def test_positions_are_told_to_the_pserver() -> None:
    request, _ = asked()

    told = [(part.table, part.position) for part in request.header.parts[1:]]

    assert told == [("a", 0), ("z", 12)]


def test_a_reply_tells_what_changed_where_to_go_on_and_how_far_all_trainers_are() -> None:
    request, out = asked()

    versions = request.receive(reply(IDS[:0], rows(0, 1), IDS, rows(2, 3)))

    assert versions == {"w": 3, "a": 4, "z": 4}
    assert request.global_step == 40
    assert out.tolist() == [1.0, 2.0]
    assert (request.changed["a"].ids.tolist(), request.changed["a"].position) == ([], 20)
    assert (request.changed["z"].ids.tolist(), request.changed["z"].position) == ([7, -1], 21)
    np.testing.assert_array_equal(request.changed["z"].rows, rows(2, 3))


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            reply(IDS, rows(2, 1), tables=("a",)),
            r"changes in \['a'\] by 2 tensors where \['a', 'z'\]",
        ),
        (reply(IDS, rows(2, 1), IDS, rows(2, 2)), "changes in z by ids"),
        (reply(IDS, rows(2, 1), IDS, rows(1, 3)), "changes in z by ids"),
        (reply(IDS, rows(2, 1), IDS), "by 3 tensors"),
        (reply(IDS, rows(2, 1), IDS.astype(np.int32), rows(2, 3)), "ids of int32"),
    ],
    ids=["no table", "another width", "a row too few", "a tensor too few", "narrow ids"],
)
def test_a_reply_that_does_not_fit_is_refused(message: Message, told: str) -> None:
    request, out = asked()

    with pytest.raises(WireError, match=told):
        request.receive(message)
    assert out.tolist() == [0.0, 0.0]
