"""Files assigned to trainers: by rule, and by cuts at line ends when there are too few."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psrt.config.sections import SHARES
from psrt.core.errors import DataError
from psrt.data.formats.formats import format_named
from psrt.data.reading.queue import QueueReader
from psrt.data.slots import Slot
from psrt.data.sources import sharding
from psrt.data.sources.places import FilePart
from psrt.data.sources.sharding import shard_files
from psrt.data.sources.sources import blocks

LINES = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"\r\n", b"1 1\r\n", b"2 2 2\n"]),
        st.integers(0, 300).map(lambda n: b"x" * n + b"\n"),
    ),
    max_size=40,
)


def of_all(files: list, trainers: int, rule: str) -> list[list]:
    return [shard_files(files, trainer, trainers, rule) for trainer in range(trainers)]


def test_the_settings_names_are_those_of_the_rules() -> None:
    assert tuple(sharding._RULES) == SHARES


def test_a_suffix_sends_a_file_to_its_number_modulo_the_trainers() -> None:
    files = [Path(name) for name in ("train.txt-00003", "train.txt-00001", "a-b-00002.gz", "day4")]

    assert of_all(files, 2, "suffix") == [[files[2], files[3]], [files[0], files[1]]]


def test_a_name_without_a_number_has_no_suffix() -> None:
    with pytest.raises(DataError, match=r'train\.txt has no number in its name, which shard = "su'):
        shard_files([Path("train.txt"), Path("b-1")], 0, 2, "suffix")


def test_numbers_that_leave_a_trainer_without_files_are_refused_on_all() -> None:
    for trainer in (0, 1):
        with pytest.raises(DataError, match="none of the 2 data files falls to trainer 1"):
            shard_files([Path("a-0"), Path("a-2")], trainer, 2, "suffix")


def test_contiguous_shares_give_the_first_trainers_one_more() -> None:
    files = [Path(str(i)) for i in range(8)]

    shares = of_all(files, 3, "contiguous")

    assert [len(share) for share in shares] == [3, 3, 2]
    assert [file for share in shares for file in share] == files


def test_shares_by_size_give_the_largest_file_to_the_least_loaded(tmp_path: Path) -> None:
    files = []
    for number, size in enumerate([3, 50, 10, 30, 28, 0]):
        files.append(tmp_path / f"{number}")
        files[-1].write_bytes(b"x" * size)

    first, second = of_all(files, 2, "size")

    assert [file.name for file in first] == ["1", "2", "5"]
    assert [file.name for file in second] == ["0", "3", "4"]


@settings(max_examples=150)
@given(
    texts=st.lists(LINES, min_size=1, max_size=3), trainers=st.integers(1, 9), last=st.booleans()
)
def test_cut_files_give_every_line_to_one_trainer(
    tmp_path: Path, texts: list[list[bytes]], trainers: int, last: bool
) -> None:
    files, lines_from, size = [], {}, 0
    for number, lines in enumerate(texts):
        files.append(tmp_path / str(number))
        text = b"".join(lines)
        text = text.removesuffix(b"\n") if last else text
        files[-1].write_bytes(text)
        for line in text.splitlines(keepends=True):
            lines_from[size] = line.removesuffix(b"\n") + b"\n"
            size += len(line)
    cuts = [trainer * size // trainers for trainer in range(trainers + 1)]
    expected = [
        [line for at, line in lines_from.items() if start <= at < stop]
        for start, stop in pairwise(cuts)
    ]

    if not all(expected):
        with pytest.raises(DataError, match=f"trainer {expected.index([])} would have none"):
            sharding.cut_at_lines(files, trainers)
        return
    shares = sharding.cut_at_lines(files, trainers)

    texts_read = [
        b"".join(piece for part in share for piece in blocks_of(part)) for share in shares
    ]
    assert texts_read == [b"".join(lines) for lines in expected]


def blocks_of(file: Path | FilePart) -> list[bytes]:
    return [text.tobytes() for text in blocks(file, 64)]


def test_even_lines_are_cut_into_even_shares(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1 1234567\n" * 1000)
    (tmp_path / "two").write_bytes(b"1 1234567\n" * 200)

    shares = of_all([tmp_path / "one", tmp_path / "two"], 3, "modulo")

    assert [sum(part.stop - part.start for part in share) for share in shares] == [4000] * 3
    assert [part.path.name for part in shares[2]] == ["one", "two"]


def test_a_line_longer_than_a_share_leaves_a_trainer_without_any(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 1000 + b"\n1 1\n")

    with pytest.raises(DataError, match=r"too few lines to share among 3 trainers, trainer 1"):
        shard_files([tmp_path / "f"], 0, 3)


def test_compressed_and_remote_files_are_not_cut(tmp_path: Path) -> None:
    (tmp_path / "f.gz").write_bytes(gzip.compress(b"1 1\n" * 100))

    for file in (tmp_path / "f.gz", "memory://f"):
        with pytest.raises(DataError, match="1 data files cannot be shared by 2 trainers") as error:
            shard_files([file], 0, 2)
        assert "split the data" in (error.value.hint or "")


def test_parts_of_a_table_know_its_header(tmp_path: Path) -> None:
    file, x = tmp_path / "f.csv", Slot("x", "float", 1)
    file.write_text("y,x\n" + "".join(f"-1,{i}\n" for i in range(100)))
    format, seen = format_named("csv", (x,)), []

    for trainer in range(3):
        with QueueReader(shard_files([file], trainer, 3), (x,), 7, format=format) as batches:
            seen += [value for batch in batches for value in batch["x"].ravel().tolist()]

    assert seen == list(range(100))


def test_a_bad_line_of_a_part_is_named_with_the_part(tmp_path: Path) -> None:
    file, x = tmp_path / "f", Slot("x", "float", 1)
    file.write_text("1 1.5\n" * 10 + "1 oops\n")

    with (
        QueueReader(shard_files([file], 1, 2), (x,), 3) as batches,
        pytest.raises(DataError, match=r"f\[36:67\], line 5, column 3, slot 'x'"),
    ):
        list(batches)
