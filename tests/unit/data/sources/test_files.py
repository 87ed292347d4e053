"""Files by names and globs, their shards, and their text in blocks."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from psrt.core.errors import ConfigError, DataError, ErrorCode
from psrt.data.sources import sources
from psrt.data.sources.files import expand, text_bytes
from psrt.data.sources.sharding import shard_files
from psrt.data.sources.sources import blocks

TEXT = b"".join(b"line %d\n" % i for i in range(1000))


def plain(path: Path, text: bytes) -> None:
    path.write_bytes(text)


def zipped(path: Path, text: bytes) -> None:
    path.write_bytes(gzip.compress(text))


def two_members(path: Path, text: bytes) -> None:
    half = len(text) // 2
    path.write_bytes(gzip.compress(text[:half]) + gzip.compress(text[half:]))


def pieces(path: Path, block_bytes: int) -> list[bytes]:
    return [text.tobytes() for text in blocks(path, block_bytes)]


def test_globs_are_sorted_and_patterns_keep_their_order(tmp_path):
    for name in ("b-1", "b-0", "a-0"):
        (tmp_path / name).touch()

    found = expand(["b-*", "a-0"], tmp_path)

    assert [path.name for path in found] == ["b-0", "b-1", "a-0"]


def test_a_file_that_two_patterns_match_is_read_once(tmp_path):
    (tmp_path / "a").touch()

    assert len(expand(["a", "*"], tmp_path)) == 1


def test_a_file_of_two_spellings_is_read_once_by_the_first(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")

    assert expand(["sub/../a", "a", "link", str(tmp_path / "a")], tmp_path) == [
        tmp_path / "sub/../a"
    ]


def test_a_pipe_is_told_from_a_missing_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(DataError, match=r"pipe is a pipe or a device\..* - for psrt predict"):
        expand(["pipe"], tmp_path)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("no-*", "matches no file"), ("none.txt", "does not exist"), ("sub", "is a directory")],
)
def test_a_pattern_without_files_is_refused_by_name(tmp_path, pattern, reason):
    (tmp_path / "sub").mkdir()

    with pytest.raises(DataError, match=f"{tmp_path}/.*{reason}") as refused:
        expand([pattern], tmp_path)

    assert refused.value.code is ErrorCode.DATA_MISSING


def test_every_file_belongs_to_one_trainer():
    names = [Path(str(i)) for i in range(7)]

    shares = [shard_files(names, trainer_id, 3) for trainer_id in range(3)]

    assert shares[0] == [Path("0"), Path("3"), Path("6")]
    assert sorted(path for part in shares for path in part) == names


def test_trainers_without_a_file_are_refused_before_training():
    with pytest.raises(DataError, match="trainers 2 … 3 would have none"):
        shard_files([Path("a"), Path("b")], 0, 4, cut=False)


def test_a_trainer_id_outside_the_job_is_refused():
    with pytest.raises(ConfigError, match="trainer id 2"):
        shard_files([Path("a"), Path("b")], 2, 2)


@pytest.mark.parametrize("write", [plain, zipped, two_members])
@pytest.mark.parametrize("block_bytes", [2, 16, 100, 1 << 20])
def test_blocks_are_whole_lines_and_together_the_text(tmp_path, write, block_bytes):
    write(tmp_path / "f", TEXT)

    found = pieces(tmp_path / "f", block_bytes)

    assert b"".join(found) == TEXT
    assert all(piece.endswith(b"\n") for piece in found)


@pytest.mark.parametrize("write", [plain, zipped])
def test_a_missing_last_newline_is_supplied(tmp_path, write):
    write(tmp_path / "f", TEXT + b"the end")

    assert b"".join(pieces(tmp_path / "f", 64)) == TEXT + b"the end\n"


@pytest.mark.parametrize("write", [plain, zipped])
def test_an_empty_file_has_no_blocks(tmp_path, write):
    write(tmp_path / "f", b"")

    assert pieces(tmp_path / "f", 64) == []


def test_an_endless_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 1024)
    plain(tmp_path / "f", b"x" * 5000)

    with pytest.raises(DataError, match="a line is longer than"):
        pieces(tmp_path / "f", 64)


@pytest.mark.parametrize("kept", [3, 12, 1000, -1])
def test_a_truncated_gzip_file_is_refused_by_name(tmp_path, kept):
    (tmp_path / "f.gz").write_bytes(gzip.compress(TEXT, mtime=0)[:kept])

    with pytest.raises(DataError, match=r"f\.gz: the gzip file is cut off before its end"):
        pieces(tmp_path / "f.gz", 64)


def test_a_damaged_gzip_file_is_refused_by_name(tmp_path):
    damaged = bytearray(gzip.compress(TEXT))
    damaged[-8] ^= 1
    (tmp_path / "f.gz").write_bytes(damaged)

    with pytest.raises(DataError, match=r"f\.gz: the gzip file is damaged \(.*check"):
        pieces(tmp_path / "f.gz", 64)


def test_a_file_that_vanished_is_refused_by_name(tmp_path):
    with pytest.raises(DataError, match=r"gone\.txt cannot be read: No such file"):
        pieces(tmp_path / "gone.txt", 64)


@pytest.mark.parametrize("write", [plain, zipped])
def test_the_amount_of_text_is_known_before_reading(tmp_path, write):
    write(tmp_path / "f", TEXT)

    assert text_bytes(tmp_path / "f") == len(TEXT)
