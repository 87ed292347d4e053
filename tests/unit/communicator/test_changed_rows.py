"""Rows that others have changed: requested after all other parts, of unknown size."""

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
    """A request for `w` and for both tables, and the destination of `w`."""
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


def test_positions_are_sent_to_the_pserver() -> None:
    request, _ = asked()

    sent = [(part.table, part.position) for part in request.header.parts[1:]]

    assert sent == [("a", 0), ("z", 12)]


def test_a_reply_holds_the_changes_the_next_position_and_the_steps_of_all_trainers() -> None:
    request, out = asked()

    versions = request.receive(reply(IDS[:0], rows(0, 1), IDS, rows(2, 3)))

    assert versions == {"w": 3, "a": 4, "z": 4}
    assert request.global_step == 40
    assert out.tolist() == [1.0, 2.0]
    assert (request.changed["a"].ids.tolist(), request.changed["a"].position) == ([], 20)
    assert (request.changed["z"].ids.tolist(), request.changed["z"].position) == ([7, -1], 21)
    np.testing.assert_array_equal(request.changed["z"].rows, rows(2, 3))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            reply(IDS, rows(2, 1), tables=("a",)),
            r"changes of \['a'\] in 2 tensors where \['a', 'z'\]",
        ),
        (reply(IDS, rows(2, 1), IDS, rows(2, 2)), "changes of z as ids"),
        (reply(IDS, rows(2, 1), IDS, rows(1, 3)), "changes of z as ids"),
        (reply(IDS, rows(2, 1), IDS), "in 3 tensors"),
        (reply(IDS, rows(2, 1), IDS.astype(np.int32), rows(2, 3)), "ids of int32"),
    ],
    ids=["no table", "another width", "a row too few", "a tensor too few", "narrow ids"],
)
def test_a_reply_that_does_not_fit_is_refused(message: Message, reason: str) -> None:
    request, out = asked()

    with pytest.raises(WireError, match=reason):
        request.receive(message)
    assert out.tolist() == [0.0, 0.0]
