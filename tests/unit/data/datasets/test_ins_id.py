"""Words in front of a line, and records merged by them."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import psrt
from psrt.core.errors import ConfigError, DataError
from psrt.core.tensors import Ragged
from psrt.data.datasets.prefixes import CONTENT, INS_ID, Prefixed
from psrt.data.slots import Batch, Slot

SLOTS = [Slot("ids", "uint64"), Slot("label", "float", 1)]


def parsed(text: str | bytes, words=(INS_ID, CONTENT), batch_size: int = 2) -> list[Batch]:
    raw = text.encode() if isinstance(text, str) else text
    parser = Prefixed(SLOTS, words).parser(batch_size)
    parser.begin_file("part-0")
    batches = list(parser.feed(np.frombuffer(bytearray(raw), np.uint8)))
    last = parser.finish()
    return batches + ([last] if last else [])


def words_of(batches: list[Batch], name: str) -> list[bytes]:
    words: list[bytes] = []
    for batch in batches:
        text = batch[name]
        assert isinstance(text, Ragged)
        words += [part.tobytes() for part in np.split(text.values, text.offsets[1:-1])]
    return words


def dataset_of(tmp_path, text: str, **settings) -> psrt.InMemoryDataset:
    (tmp_path / "part-0").write_text(text)
    return psrt.InMemoryDataset(SLOTS, files=[tmp_path / "part-0"], **settings)


def rows_of(dataset: psrt.InMemoryDataset) -> list[tuple[list[int], float]]:
    rows = []
    for batch in dataset.batches():
        ids, labels = batch["ids"], batch["label"][:, 0]
        parts = np.split(ids.values, ids.offsets[1:-1])
        rows += [(part.tolist(), label) for part, label in zip(parts, labels.tolist(), strict=True)]
    return rows


# --- words ---


def test_words_stand_beside_the_slots_of_their_line():
    batches = parsed("1 a 1 x=1 2 7 8 1 0\n\n 1 bb 1 é 0 1 1\r\n1\tc 1 y 1 9 1 0\n")

    assert words_of(batches, INS_ID) == [b"a", b"bb", b"c"]
    assert words_of(batches, CONTENT) == [b"x=1", "é".encode(), b"y"]
    assert [len(batch["label"]) for batch in batches] == [2, 1]
    assert np.concatenate([batch["ids"].values for batch in batches]).tolist() == [7, 8, 9]


def test_one_word_alone_may_be_declared():
    [batch] = parsed("1 a 1 7 1 0\n", words=(CONTENT,))

    assert words_of([batch], CONTENT) == [b"a"]
    assert INS_ID not in batch


def test_words_of_many_blocks_stay_with_their_examples():
    parser = Prefixed(SLOTS, (INS_ID,)).parser(4)
    parser.begin_file("part-0")
    batches = []
    for block in range(5):
        lines = "".join(f"1 n{i} 1 {i} 1 0\n" for i in range(3 * block, 3 * block + 3))
        batches += parser.feed(np.frombuffer(bytearray(lines.encode()), np.uint8))
    batches.append(parser.finish())

    assert words_of(batches, INS_ID) == [f"n{i}".encode() for i in range(15)]
    assert np.concatenate([b["ids"].values for b in batches]).tolist() == list(range(15))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2 a b 1 7 1 0", r"column 1: expected `1 <ins_id>`, found '2'"),
        ("1", r"column 2: expected `1 <ins_id>`, found the end of the line"),
        ("1 a", r"column 4: expected `1 <content>`, found the end of the line"),
        ("1 a 0 1 7 1 0", r"column 5: expected `1 <content>`, found '0'"),
        ("1 a 1 x", r"column 8: expected slots behind the fields in front, found the end"),
        ("1 a 1 x 1 z 1 0", r"column 11, slot 'ids': expected an unsigned integer"),
    ],
)
def test_a_malformed_line_is_named_after_the_batches_before_it(line, message):
    parser = Prefixed(SLOTS, (INS_ID, CONTENT)).parser(1)
    parser.begin_file("part-0", 10)
    text = f"1 a 1 b 1 7 1 0\n{line}\n1 a 1 b 1 7 1 0\n"
    batches = parser.feed(np.frombuffer(bytearray(text.encode()), np.uint8))
    first = next(batches)

    with pytest.raises(DataError, match=rf"part-0, line 12, {message}"):
        list(batches)

    assert words_of([first], CONTENT) == [b"b"]


def test_words_are_kept_with_records_and_not_fed(tmp_path):
    dataset = dataset_of(tmp_path, "1 a 1 7 1 0\n1 bcd 1 8 1 0\n")
    dataset.set_parse_ins_id(True)
    dataset.load_into_memory()

    text = dataset.memory.records.texts[INS_ID]

    assert (text.values.tobytes(), text.offsets.tolist()) == (b"abcd", [0, 1, 4])
    assert [list(batch) for batch in dataset.batches()] == [["ids", "label"]]
    assert dataset.memory_bytes == 2 * (8 + 4 + 8 + 1) + 8 + 4 + 3 * 8


def test_only_multislot_lines_have_words(tmp_path):
    dataset = dataset_of(tmp_path, "", format="libsvm")
    dataset.set_parse_content(True)

    with pytest.raises(ConfigError, match="format libsvm has no ins_id or content"):
        dataset.load_into_memory()


# --- merging ---

PAIRS = "1 u 1 1 1 1\n1 v 2 2 3 1 0\n1 u 0 1 1\n1 w 1 9 1 0\n1 v 1 4 1 0\n1 x 1 5 1 0\n"


def test_records_of_one_ins_id_become_one(tmp_path, caplog):
    dataset = dataset_of(tmp_path, PAIRS)
    dataset.set_merge_by_lineid()

    with caplog.at_level(logging.WARNING):
        dataset.load_into_memory()
        rows = rows_of(dataset)

    assert rows == [([1], 1.0), ([2, 3, 4], 0.0)]
    assert caplog.messages == [
        "2 of 6 records were left out: set_merge_by_lineid wants 2 of an ins_id"
    ]
    assert dataset.get_memory_data_size() == 2


def test_any_number_of_records_can_be_wanted(tmp_path, caplog):
    dataset = dataset_of(tmp_path, PAIRS)
    dataset.set_merge_by_lineid(0)
    dataset.load_into_memory()

    assert rows_of(dataset) == [([1], 1.0), ([2, 3, 4], 0.0), ([9], 0.0), ([5], 0.0)]
    assert caplog.messages == []


def test_thousands_of_ids_are_merged_like_a_dictionary_would(tmp_path):
    draw = np.random.default_rng(0)
    names = draw.integers(0, 9000, 30_000).tolist()
    expected: dict[int, list[int]] = {}
    for i, name in enumerate(names):
        expected.setdefault(name, []).append(i)
    text = "".join(f"1 id{name} 1 {i} 1 {name}\n" for i, name in enumerate(names))
    dataset = dataset_of(tmp_path, text, batch_size=1000)
    dataset.set_merge_by_lineid(3)
    dataset.load_into_memory()

    wanted = [(ids, float(name)) for name, ids in expected.items() if len(ids) == 3]
    assert rows_of(dataset) == wanted


def test_merged_records_are_merged_once(tmp_path):
    dataset = dataset_of(tmp_path, PAIRS)
    dataset.set_merge_by_lineid()
    dataset.load_into_memory()
    dataset.local_shuffle()

    dataset.memory.put(dataset.memory.take())

    assert sorted(rows_of(dataset)) == [([1], 1.0), ([2, 3, 4], 0.0)]


def test_pieces_that_are_handed_on_are_not_merged_before(tmp_path):
    dataset = dataset_of(tmp_path, PAIRS)
    dataset.set_merge_by_lineid()
    dataset.load_into_memory()

    pieces = dataset.memory.take()
    left = dataset.get_memory_data_size()
    count = sum(map(len, pieces))
    dataset.memory.put(pieces)

    assert (left, count, len(rows_of(dataset))) == (0, 6, 2)


def test_dense_slots_that_differ_are_an_error_and_nothing_is_lost(tmp_path):
    dataset = dataset_of(tmp_path, "1 a 1 7 1 0\n1 bé 1 7 1 0\n1 bé 1 8 1 1\n1 a 1 7 1 0\n")
    dataset.set_merge_by_lineid()
    dataset.load_into_memory()

    with pytest.raises(DataError, match="slot 'label' differs between the records of ins_id 'bé'"):
        rows_of(dataset)

    assert dataset.get_memory_data_size() == 4


def test_a_size_without_a_meaning_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="merge_size"):
        dataset_of(tmp_path, "").set_merge_by_lineid(-1)
