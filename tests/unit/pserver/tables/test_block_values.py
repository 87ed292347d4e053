"""Values of a block: a reader's never change, and only those that a reader holds are copied."""

from __future__ import annotations

import numpy as np

from psrt.pserver.tables.block_values import BlockValues


def block() -> BlockValues:
    return BlockValues(np.arange(5, dtype=np.float32))


def updated(values: BlockValues, by: float = 1.0) -> int:
    """Add to all of them; return their new address."""
    to_change = values.to_change()
    to_change += np.float32(by)
    return int(to_change.ctypes.data)


def test_values_without_readers_are_updated_in_place() -> None:
    values = block()
    first = values.show().ctypes.data

    assert updated(values) == first
    assert values.show().tolist() == [1, 2, 3, 4, 5]


def test_what_a_reader_holds_never_changes() -> None:
    values = block()
    whole, part, raw = values.show(), values.show()[1:3], values.show().data
    del whole

    updated(values)
    del part
    updated(values)

    assert raw.tolist() == [0, 1, 2, 3, 4]
    assert values.show().tolist() == [2, 3, 4, 5, 6]


def test_memory_of_a_reader_that_has_finished_takes_the_next_copy() -> None:
    values = block()
    reader = values.show()
    first = reader.ctypes.data
    second = updated(values)
    reader = values.show()

    third = updated(values)

    assert (first, second) == (third, reader.ctypes.data)
    assert reader.tolist() == [1, 2, 3, 4, 5]
    assert values.show().tolist() == [2, 3, 4, 5, 6]


def test_readers_between_two_updates_share_one_array_they_cannot_write_to() -> None:
    values = block()

    shown = values.show()

    assert values.show() is shown
    assert not shown.flags.writeable
    updated(values)
    assert values.show() is not shown


def test_memory_of_another_array_is_copied_since_its_readers_could_not_be_counted() -> None:
    values = BlockValues(np.arange(6, dtype=np.float32).reshape(2, 3).reshape(-1))
    snapshot = values.show()

    updated(values)

    assert snapshot.tolist() == [0, 1, 2, 3, 4, 5]
