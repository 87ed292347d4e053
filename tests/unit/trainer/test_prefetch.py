"""A batch names each row once per table, and batches are prepared ahead without losing errors."""

from __future__ import annotations

import threading
from collections.abc import Generator

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import DataError, ProgramError
from psrt.core.tensors import Ragged
from psrt.data.reading import Ahead
from psrt.trainer.inputs.prefetch import PreparedBatch, bind, checked, prepare

WAIT_S = 20.0


def test_an_id_in_two_slots_of_one_table_is_wanted_once() -> None:
    feed = {"a": Ragged.of([[7, 8], [7]]), "b": Ragged.of([[8], [9]])}

    prepared = prepare(feed, {"emb": ["a", "b"]})

    assert sorted(prepared.wanted["emb"].tolist()) == [7, 8, 9]


def test_the_index_leads_every_slot_back_to_its_own_ids() -> None:
    feed = {"a": Ragged.of([[7, 8], [7]]), "b": Ragged.of([[8], [9]])}

    prepared = prepare(feed, {"emb": ["a", "b"]})

    wanted, index = prepared.wanted["emb"], prepared.index["emb"]
    np.testing.assert_array_equal(wanted[index["a"]], [7, 8, 7])
    np.testing.assert_array_equal(wanted[index["b"]], [8, 9])


def test_slots_of_different_tables_do_not_mix() -> None:
    feed = {"a": Ragged.of([[1], [2]]), "b": Ragged.of([[1], [1]])}

    prepared = prepare(feed, {"left": ["a"], "right": ["b"]})

    assert prepared.wanted["left"].tolist() == [1, 2]
    assert prepared.wanted["right"].tolist() == [1]


def test_dense_ids_of_two_dimensions_are_flattened_in_order() -> None:
    feed = {"words": np.array([[5, 6], [6, 5]], np.int64)}

    prepared = prepare(feed, {"emb": ["words"]})

    ids = prepared.wanted["emb"][prepared.index["emb"]["words"]]
    np.testing.assert_array_equal(ids, [5, 6, 6, 5])
    assert prepared.examples == 2


@pytest.mark.parametrize("bad", [6, -1])
def test_an_id_outside_of_a_table_that_is_not_distributed_is_refused(bad: int) -> None:
    with psrt.program() as program:
        ids = layers.data("ids", (2,), "int64")
        layers.embedding(ids, (6, 2), is_sparse=True, param="whole")
        layers.embedding(ids, (6, 2), is_distributed=True, param="any_id")

    def batch(second: int, tables: list[str]) -> PreparedBatch:
        return prepare({"ids": np.array([[5, second]])}, {table: ["ids"] for table in tables})

    checked(program, batch(0, ["whole", "any_id"]))
    checked(program, batch(bad, ["any_id"]))
    with pytest.raises(ProgramError, match=f"Id {bad} is not a row of table whole"):
        checked(program, batch(bad, ["whole"]))


def test_a_batch_whose_slot_is_empty_wants_no_rows() -> None:
    prepared = prepare({"a": Ragged.of([[], []], "int64")}, {"emb": ["a"]})

    assert len(prepared.wanted["emb"]) == 0
    assert len(prepared.index["emb"]["a"]) == 0


def test_bound_rows_belong_to_the_wanted_ids() -> None:
    prepared = prepare({"a": Ragged.of([[4], [4]])}, {"emb": ["a"]})
    rows = np.array([[0.25, 0.5]], np.float32)

    batch = bind(prepared, {"emb": rows})["emb"]

    np.testing.assert_array_equal(batch.ids, [4])
    np.testing.assert_array_equal(batch.rows[batch.index["a"]], [[0.25, 0.5]] * 2)


def test_items_come_in_order_and_then_end() -> None:
    with Ahead((i for i in range(10)), capacity=2) as ahead:
        assert list(ahead) == list(range(10))
        assert list(ahead) == []


def test_an_error_of_the_source_comes_after_the_items_before_it() -> None:
    def source() -> Generator[int, None, None]:
        yield 1
        raise DataError("part-3 line 7 is malformed")

    with Ahead(source(), capacity=4) as ahead:
        assert next(ahead) == 1
        with pytest.raises(DataError, match="part-3 line 7"):
            next(ahead)
        with pytest.raises(DataError, match="part-3 line 7"):
            next(ahead)


def test_no_more_than_the_capacity_is_prepared_ahead() -> None:
    produced: list[int] = []
    third = threading.Event()

    def source() -> Generator[int, None, None]:
        for number in range(100):
            produced.append(number)
            if number == 2:
                third.set()
            yield number

    with Ahead(source(), capacity=2):
        assert third.wait(WAIT_S)  # two queued, one waits for room

        assert produced == [0, 1, 2]


def test_close_ends_a_thread_that_waits_for_room() -> None:
    before = threading.active_count()
    ahead = Ahead((i for i in range(100)), capacity=1)

    ahead.close()

    assert threading.active_count() == before
    assert list(ahead) == []


def test_close_closes_the_source() -> None:
    closed = threading.Event()

    def source() -> Generator[int, None, None]:
        try:
            yield from range(100)
        finally:
            closed.set()

    Ahead(source(), capacity=1).close()

    assert closed.wait(WAIT_S)
