"""Records scattered to trainers, and records as tensors."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np
import pytest

from psrt.core.errors import WireError
from psrt.data.datasets.records import Layout, Records, joined
from psrt.data.datasets.scattering import Scattering, Shelf, records_of, tensors_of
from psrt.data.slots import Slot
from tests.support.records import DENSE, RAGGED, TEXT, pieces_of, plain

SIZES = [3, 700, 1, 0, 250]


def dealt(
    slots: tuple[Slot, ...], trainers: int = 3, by: str = "", sizes: list[int] = SIZES
) -> list[tuple[int, Records]]:
    layout, texts = Layout(slots), bool(by)
    pieces = pieces_of(layout, sizes, 1, texts)
    kept = (TEXT,) if texts else ()
    scattering = Scattering(layout, pieces, kept, batch_records=16, seed=5, by=by)
    return list(scattering.deal(1, trainers))


@pytest.mark.parametrize("slots", [RAGGED, DENSE])
def test_every_record_is_dealt_once_and_pieces_are_given_up(slots: tuple[Slot, ...]) -> None:
    layout = Layout(slots)
    before = [row for piece in pieces_of(layout, SIZES, 1) for row in plain(piece)]

    after = [row for _, records in dealt(slots) for row in plain(records)]

    assert Counter(after) == Counter(before)


def test_shares_are_even_within_five_standard_deviations() -> None:
    counts = Counter[int]()
    for to, records in dealt(DENSE, trainers=4, sizes=[8000]):
        counts[to] += len(records)

    expected, deviation = 2000, (8000 * 0.25 * 0.75) ** 0.5
    assert all(abs(counts[to] - expected) < 5 * deviation for to in range(4))


def test_dealing_is_a_function_of_seed_and_trainer_whatever_the_pieces() -> None:
    once, again = dealt(RAGGED), dealt(RAGGED)

    assert [(to, plain(records)) for to, records in once] == [
        (to, plain(records)) for to, records in again
    ]
    layout = Layout(RAGGED)
    whole = deque([joined(layout, pieces_of(layout, SIZES, 1))])
    by_trainer: dict[int, Counter[object]] = {to: Counter() for to in range(3)}
    for to, records in Scattering(layout, whole, batch_records=16, seed=5).deal(1, 3):
        by_trainer[to].update(plain(records))
    for to, records in once:
        by_trainer[to].subtract(plain(records))
    assert not any(any(left.values()) for left in by_trainer.values())


def test_records_with_one_text_go_to_one_trainer() -> None:
    places: dict[object, set[int]] = {}
    for to, records in dealt(RAGGED, by=TEXT):
        for row in plain(records):
            places.setdefault(row[-1], set()).add(to)

    assert {len(found) for found in places.values()} == {1}
    assert set.union(*places.values()) == {0, 1, 2}


@pytest.mark.parametrize(("slots", "texts"), [(RAGGED, True), (RAGGED, False), (DENSE, True)])
def test_tensors_and_back_give_equal_records(slots: tuple[Slot, ...], texts: bool) -> None:
    layout, names = Layout(slots), (TEXT,) if texts else ()
    (records,) = pieces_of(layout, [57], 3, texts)

    found = records_of(layout, names, tensors_of(records, names))

    assert plain(found) == plain(records)
    assert list(found.starts) == list(records.starts)


def test_a_shelf_gives_what_was_put_in_order_however_much_was_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("psrt.data.datasets.scattering._SHELF_WORDS", 500)
    layout = Layout(RAGGED)
    shelf = Shelf(layout)
    for piece in pieces_of(layout, SIZES, 1):
        shelf.put(piece)

    taken = shelf.take()

    before = [row for piece in pieces_of(layout, SIZES, 1) for row in plain(piece)]
    assert [row for piece in taken for row in plain(piece)] == before
    assert shelf.records == sum(SIZES)
    assert len(shelf.take()) == 0


def spoilt(position: int, change: str) -> list[np.ndarray]:
    layout = Layout(RAGGED)
    (records,) = pieces_of(layout, [9], 3, True)
    tensors = tensors_of(records, (TEXT,))
    array = tensors[position].copy()
    match change:
        case "shorter":
            array = array[:-1]
        case "other type":
            array = array.astype(np.float32)
        case "larger":
            array[-1] += 1
        case "flat":
            array = array.reshape(-1)
        case "negative":
            array[0] = -1
    tensors[position] = array
    return tensors


@pytest.mark.parametrize(
    ("position", "change", "says"),
    [
        (0, "shorter", "words, but its records have"),
        (0, "other type", "tensors of"),
        (1, "shorter", "words, but its records have"),
        (1, "larger", "words, but its records have"),
        (1, "flat", "tensors of"),
        (2, "shorter", "a text 'ins_id' whose lengths do not fit"),
        (3, "shorter", "a text 'ins_id' whose lengths do not fit"),
        (3, "negative", "a text 'ins_id' whose lengths do not fit"),
    ],
)
def test_tensors_that_are_no_records_are_refused(position: int, change: str, says: str) -> None:
    with pytest.raises(WireError, match=says):
        records_of(Layout(RAGGED), (TEXT,), spoilt(position, change))


def test_a_call_with_too_few_tensors_or_counts_of_other_slots_is_refused() -> None:
    layout = Layout(RAGGED)
    (records,) = pieces_of(layout, [9], 3)
    words, counts = tensors_of(records, ())

    with pytest.raises(WireError, match="expected"):
        records_of(layout, (), [words])
    with pytest.raises(WireError, match="counts of 1 slots"):
        records_of(layout, (), [words, counts[:, :1]])


def test_a_number_of_records_that_takes_no_bytes_is_not_believed() -> None:
    layout = Layout(DENSE)
    (records,) = pieces_of(layout, [9], 3)
    words, counts = tensors_of(records, ())
    many = np.ndarray((1 << 40, 0, 1), np.uint8, buffer=b"")
    assert counts.shape[1] == 0

    with pytest.raises(WireError, match="1,099,511,627,776 records"):
        records_of(layout, (), [words, many])
