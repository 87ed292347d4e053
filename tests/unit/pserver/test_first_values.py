"""GIVE: dense blocks begin with values of a trainer, and no update is ever undone by it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from psrt.core.errors import TableError, WireError
from psrt.pserver.frozen import FrozenPages
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_DENSE, PUSH_DENSE
from tests.support.frozen import block_of
from tests.support.pserver import CALL_TIMEOUT_S, TABLE, exchange, inproc_pserver

VALUES = np.array([1.5, -2.0, 0.0, 7.0], np.float32)


@pytest.fixture
def trainer() -> Iterator[Client]:
    with inproc_pserver() as pserver:
        yield pserver.join(0, TABLE)


def give(client: Client, values: np.ndarray = VALUES, kind: int = PUSH_DENSE) -> None:
    header = pb.Header(parts=[pb.Part(kind=kind, table="w")])
    tensors = [values] if kind == PUSH_DENSE else []
    client.call(Method.GIVE, header=header, tensors=tensors, timeout_s=CALL_TIMEOUT_S)


def pulled(client: Client) -> np.ndarray:
    header = pb.Header(parts=[pb.Part(kind=PULL_DENSE, table="w")])
    return client.call(Method.PULL, header=header, timeout_s=CALL_TIMEOUT_S).tensors[0]


def test_a_block_that_nobody_has_updated_begins_with_the_values(trainer) -> None:
    give(trainer)

    np.testing.assert_array_equal(pulled(trainer), VALUES)
    np.testing.assert_array_equal(exchange(trainer), VALUES - np.float32(0.5))


def test_a_repetition_after_an_update_changes_nothing(trainer) -> None:
    give(trainer)
    moved = exchange(trainer).copy()

    give(trainer)

    np.testing.assert_array_equal(pulled(trainer), moved)


def test_values_of_another_size_and_other_parts_are_refused(trainer) -> None:
    with pytest.raises((TableError, WireError)):
        give(trainer, np.ones(3, np.float32))
    with pytest.raises(WireError, match="values of dense blocks only"):
        give(trainer, kind=PULL_DENSE)

    np.testing.assert_array_equal(pulled(trainer), np.ones(4, np.float32))


def test_the_next_delta_has_values_that_came_after_the_freeze_before() -> None:
    table, other = block_of(TABLE, []), block_of(TABLE, [])
    base = table.freeze()
    pages = [(base.meta, list(base.pages()))]
    table.track_changes()
    table.begin_with(VALUES)

    delta = table.freeze(is_delta=True)
    pages.append((delta.meta, list(delta.pages())))

    other.restore([FrozenPages(meta, iter(each)) for meta, each in pages])
    np.testing.assert_array_equal(other.read()[0], VALUES)
