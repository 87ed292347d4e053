"""Rests of files dealt among trainers: each byte, line and example to exactly one of them."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psrt.core.errors import DataError
from psrt.data.formats.formats import Format
from psrt.data.reading import rests
from psrt.data.reading.queue import QueueReader
from psrt.data.reading.rests import rests_of
from psrt.data.sources import BEGINNING, sources
from psrt.data.sources.dealing import DealtFiles, Span, deal, dealt
from psrt.data.sources.places import Bookmark, DataFile, FilePart, Place, Position
from psrt.data.sources.sharding import in_epoch, shards_of
from tests.unit.data.test_reading_on import ROWS, csv, libsvm, multislot, parquet

BATCH = 6
RESTS = st.lists(st.tuples(st.integers(0, 2000), st.booleans(), st.booleans()), max_size=30)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that positions are in many blocks of a file."""
    cut = sources.cut
    monkeypatch.setattr(sources, "cut", lambda file, path, size=0: cut(file, path, 48))


@given(RESTS, st.integers(1, 9))
@settings(max_examples=300)
def test_every_byte_is_dealt_once_and_none_has_far_more(
    rests: list[tuple[int, bool, bool]], trainers: int
) -> None:
    sizes, may_be_cut, begun = ([rest[column] for rest in rests] for column in range(3))

    shares = dealt(sizes, may_be_cut, begun, trainers)

    seen: dict[int, list[Span]] = {}
    for share in shares:
        for span in share:
            seen.setdefault(span.number, []).append(span)
    for number, size in enumerate(sizes):
        spans = sorted(seen.get(number, []), key=lambda span: span.start)
        assert [span.start for span in spans] == [0, *(span.stop for span in spans)][: len(spans)]
        assert (spans[-1].stop if spans else 0) == size
        assert len(spans) <= 1 or may_be_cut[number]
    loads = [sum(span.stop - span.start for span in share) for share in shares]
    whole = max((size for size, cut in zip(sizes, may_be_cut, strict=True) if not cut), default=0)
    assert max(loads) <= -(-sum(sizes) // trainers) + whole


def test_files_that_were_not_begun_go_whole_where_they_fit() -> None:
    shares = dealt([10, 10, 10, 4], [True] * 4, [False, False, False, True], 3)

    assert [[(span.number, span.start, span.stop) for span in share] for share in shares] == [
        [(0, 0, 10), (3, 0, 2)],
        [(1, 0, 10), (3, 2, 4)],
        [(2, 0, 10)],
    ]


def test_a_single_rest_is_divided_evenly() -> None:
    assert dealt([90], [True], [True], 3) == [
        [Span(0, 0, 30)],
        [Span(0, 30, 60)],
        [Span(0, 60, 90)],
    ]


def files_of(directory: Path, write: Callable[..., Format]) -> tuple[list[DataFile], Format]:
    files: list[DataFile] = []
    for number, rows in enumerate(ROWS):
        files.append(directory / f"part-{number}")
        format = write(files[-1], sum(ROWS[:number]), rows)
    return files, format


def read_of(share: DealtFiles, format: Format, threads: int = 1, batches: int = 1 << 30) -> tuple:
    """The `x` of the first batches of a share, and the place behind them."""
    with QueueReader(
        share.files, format.slots, BATCH, threads, format=format, first=share.place
    ) as reader:
        seen = [
            x
            for _, batch in zip(range(batches), reader, strict=False)
            for x in batch["x"].ravel().tolist()
        ]
        return Counter(seen), reader.place


@pytest.mark.parametrize("write", [multislot, libsvm, csv, parquet])
@given(data=st.data())
@settings(max_examples=25)
def test_what_trainers_left_is_read_once_by_others(
    tmp_path: Path, write: Callable[..., Format], data: st.DataObject
) -> None:
    files, format = files_of(tmp_path, write)
    former = data.draw(st.integers(1, 4 if write is parquet else 7), "former trainers")
    threads = data.draw(st.integers(1, 2), "threads")
    seed = data.draw(st.integers(-1, 2), "seed")
    seen, shares = Counter[float](), []
    for files_of_one in shards_of(files, former, cut=write is not parquet):
        share = DealtFiles(tuple(in_epoch(files_of_one, seed, 1)))
        read, place = read_of(share, format, threads, data.draw(st.integers(0, 5), "batches"))
        seen += read
        shares.append(DealtFiles(share.files, place if read else BEGINNING))

    for _ in range(2):  # the second time some trainers leave rests of rests
        left = [r for s in shares for r in rests_of(Bookmark(s.files, s.place).readings(), format)]
        shares = []
        for share in deal(left, data.draw(st.integers(1, 7), "trainers")):
            read, place = read_of(share, format, threads, data.draw(st.integers(0, 2), "batches"))
            seen += read
            shares.append(DealtFiles(share.files, place))
    for share in shares:
        seen += read_of(share, format)[0]

    assert seen == Counter(range(sum(ROWS)))


@pytest.mark.parametrize("write", [multislot, csv])
def test_compressed_rests_stay_whole(tmp_path: Path, write: Callable[..., Format]) -> None:
    files, format = files_of(tmp_path, write)
    for file in files:
        assert isinstance(file, Path)
        file.write_bytes(gzip.compress(file.read_bytes()))
    seen, place = read_of(DealtFiles(tuple(files)), format, 1, 6)
    left = rests_of(Bookmark(files, place).readings(), format)

    shares = deal(left, 3)

    assert not any(rest.may_be_cut for rest in left)
    assert sum((read_of(share, format)[0] for share in shares), seen) == Counter(range(sum(ROWS)))


def test_a_rest_in_a_file_that_became_shorter_is_refused(tmp_path: Path) -> None:
    files, format = files_of(tmp_path, multislot)
    place = Place((Position(str(files[0]), 0, 0, 20),), 5)
    Path(str(files[0])).write_text("1 1 0\n")

    with pytest.raises(DataError, match="behind examples that are not there"):
        rests_of(Bookmark(files, place).readings(), format)


def test_a_position_is_an_offset_of_the_line_behind_its_examples(tmp_path: Path) -> None:
    file = tmp_path / "f"
    format = libsvm(file, 0, 9)
    text = "# 1\n0 1:2\n\n# 2\n  \n1 1:2\n# 3\n0 1:3\n"
    file.write_text(text)
    part = FilePart(file, 0, len(text))

    found = [rests.offset_of(part, Position("f", 0, 0, n), format) for n in range(4)]

    ends = [text.index(line) + len(line) for line in ("0 1:2\n", "1 1:2\n", "0 1:3\n")]
    assert found == [0, *ends]
