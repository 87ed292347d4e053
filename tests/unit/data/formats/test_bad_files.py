"""Errors of files that cannot be trained on: in datasets, and in `psrt data check`.

Each case is a file of MultiSlot text of `SLOTS`, unless it names another format. The message names
the file and, where there is one, the line; what came before it was handed out.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import zstandard

import psrt
from psrt.cli import main
from psrt.core.errors import DataError, ErrorCode
from psrt.data.slots import Slot, batch_rows
from psrt.data.sources import sources
from psrt.data.sources.compressed import GzipText, ZstdText
from psrt.data.sources.files import expand
from psrt.data.sources.places import DataFile, FilePart
from psrt.data.sources.raw_bytes import open_raw, unchanging

SLOTS = (Slot("click", "float", 1), Slot("dense", "float", 2), Slot("ids", "uint64"))
CHECKED = ("--slots", "click:float:1,dense:float:2,ids:uint64")
NOBODY = 65534
GOOD = b"1 1 2 0.5 2 2 7 8\n"


@dataclass(frozen=True)
class Bad:
    """`good` examples come before what is refused with `message`."""

    name: str
    content: bytes
    message: str
    good: int = 0


BAD = [
    Bad("cut.gz", gzip.compress(GOOD * 9, mtime=0)[:-9], "gzip file is cut off before its end", 0),
    Bad("cut.zst", zstandard.compress(GOOD * 9)[:-5], "the zstd file is cut off before its end"),
    Bad(
        "nul-line",
        GOOD + b"\0\0\0\0\n" + GOOD,
        r"line 2, column 1, slot 'click': expected the number of values, "
        r"found '\\x00\\x00\\x00\\x00'",
        1,
    ),
    Bad(
        "nul-in-a-number",
        GOOD + b"1 1 2 0.5 2\x003 1 7\n",
        r"line 2, column 12, slot 'ids': expected the number of values, found '\\x003'",
        1,
    ),
    Bad("nul-at-the-end", GOOD[:-1] + b"\0\n", r"line 1, column 18, behind the last slot 'ids'"),
    Bad("lone-return", b"1 1 2 0.5\r2 0\n", r"line 1, column 10, slot 'dense': expected"),
    Bad(
        "too-many",
        GOOD * 2 + b"1 1 3 0.5 2 2 2 7 8\n",
        r"line 3, column 5, slot 'dense': expected the number of values, which is 2, found '3'",
        2,
    ),
    Bad(
        "too-few",
        b"1 1 2 0.5 2 3 7 8\n" + GOOD,
        r"line 1, column 18, slot 'ids': expected .* value 3 of 3, found the end of the line",
    ),
    Bad(
        "one-more",
        b"1 1 2 0.5 2 1 7 8\n",
        r"line 1, column 17, behind the last slot 'ids': expected the end of the line, found '8'",
    ),
    Bad(
        "huge-count",
        b"1 1 2 0.5 2 99999999999999999999999 7\n",
        r"slot 'ids': expected a number of values that the rest of the line has room for",
    ),
    Bad("no-count", b"one 1\n", r"slot 'click': expected the number of values, found 'one'"),
    Bad(
        "word-for-a-float",
        GOOD + b"1 1 2 0.5 x 0\n",
        r"line 2, column 11, slot 'dense': expected a finite number as value 2 of 2, found 'x'",
        1,
    ),
    Bad("nan", b"1 nan 2 1 1 0\n", r"slot 'click': expected a finite number .* found 'nan'"),
    Bad("large", b"1 1e39 2 1 1 0\n", r"expected a number within the range of float32 .*'1e39'"),
    Bad(
        "float-for-an-id",
        b"1 1 2 1 1 1 7.5\n",
        r"column 13, slot 'ids': expected an unsigned integer as value 1 of 1, found '7.5'",
    ),
    Bad(
        "beyond-64-bits",
        b"1 1 2 1 1 1 18446744073709551616\n",
        r"slot 'ids': expected an id of at most 64 bits .* found '18446744073709551616'",
    ),
    Bad(
        "below-64-bits",
        b"1 1 2 1 1 1 -9223372036854775809\n",
        r"slot 'ids': expected an id of at most 64 bits",
    ),
    Bad("other-digits", "1 1 2 1 1 1 ٣\n".encode(), r"slot 'ids': expected an unsigned integer"),
    Bad("no-text", bytes(range(128, 256)) + b"\n", r"line 1, column 1, slot 'click'"),
]


def read(path: DataFile, kind: type[psrt.QueueDataset | psrt.InMemoryDataset]) -> int:
    """Examples handed out; batches of one, so that none waits for others."""
    dataset = kind(SLOTS, files=[path], batch_size=1)
    if isinstance(dataset, psrt.InMemoryDataset):
        dataset.load_into_memory()
    read.examples = 0  # type: ignore[attr-defined]
    for batch in dataset.batches():
        read.examples += batch_rows(batch)  # type: ignore[attr-defined]
    return int(read.examples)  # type: ignore[attr-defined]


def refused(path: DataFile, kind: type = psrt.QueueDataset) -> DataError:
    with pytest.raises(DataError) as error:
        read(path, kind)
    return error.value


def check(*files: Path | str) -> int:
    return main.run(["data", "check", *map(str, files), *CHECKED])


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_file_is_refused_by_name_line_and_slot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: Bad
) -> None:
    path = tmp_path / bad.name
    path.write_bytes(bad.content)

    streamed = refused(path)
    handed_out = read.examples  # type: ignore[attr-defined]
    loaded = refused(path, psrt.InMemoryDataset)
    code = check(path)

    assert re.search(f"^{path}[,:] .*{bad.message}", streamed.message), streamed.message
    assert handed_out == bad.good
    assert loaded.message == streamed.message
    assert code == 1
    assert streamed.message in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "examples"),
    [
        (b"", 0),
        (b"\n\r\n \t\n", 0),
        (gzip.compress(b"", mtime=0), 0),
        (zstandard.compress(b""), 0),
        (GOOD.replace(b"\n", b"\r\n") * 3, 3),
        (GOOD.replace(b" ", b"\t") + b"\n\n" + GOOD, 2),
        (GOOD[:-1], 1),
        (GOOD[:-1] + b" \r", 1),
        (gzip.compress(GOOD, mtime=0) + bytes(512), 1),
    ],
    ids=["empty", "blank", "gzip", "zstd", "crlf", "tabs", "no-end", "cr-at-the-end", "padded"],
)
def test_a_file_that_is_only_unusual_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, examples: int
) -> None:
    (tmp_path / "f").write_bytes(content)

    assert read(tmp_path / "f", psrt.QueueDataset) == examples
    assert read(tmp_path / "f", psrt.InMemoryDataset) == examples
    assert check(tmp_path / "f") == 0
    assert f"{examples} examples are well formed; 0 errors" in capsys.readouterr().out


# --- lines that are too long ---


def test_a_line_of_100_mb_is_read_and_one_beyond_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 33 << 20
    path = tmp_path / "long"
    path.write_bytes(b"1 1 2 1 1 %d" % count + b" 77" * count + b"\n" + GOOD)
    assert path.stat().st_size > 100_000_000

    assert read(path, psrt.QueueDataset) == 2
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 32 << 20)
    assert re.search(r"long: a line is longer than 32 MiB", refused(path).message)


def test_a_number_of_a_million_digits_keeps_its_exponent(tmp_path: Path) -> None:
    half_way = "1.00000005960464477539062500000001" + "0" * (1 << 20)
    (tmp_path / "f").write_text(f"1 {half_way}e5 2 1 1 0\n")

    dataset = psrt.QueueDataset(SLOTS, files=[tmp_path / "f"])

    [batch] = dataset.batches()
    assert batch["click"].item() == pytest.approx(1e5)  # type: ignore[union-attr]


# --- files that are not there ---


def no_file(directory: Path) -> Path:
    return directory / "none"


def directory_itself(directory: Path) -> Path:
    return directory


def link_to_nowhere(directory: Path) -> Path:
    (directory / "link").symlink_to(directory / "gone")
    return directory / "link"


def link_to_itself(directory: Path) -> Path:
    (directory / "loop").symlink_to(directory / "loop")
    return directory / "loop"


def below_a_file(directory: Path) -> Path:
    (directory / "file").write_bytes(GOOD)
    return directory / "file" / "part"


def too_long_a_name(directory: Path) -> Path:
    return directory / ("x" * 300)


def glob_without_files(directory: Path) -> Path:
    return directory / "part-*"


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (no_file, "does not exist"),
        (directory_itself, "is a directory"),
        (link_to_nowhere, "does not exist"),
        (link_to_itself, "does not exist"),
        (below_a_file, "does not exist"),
        (too_long_a_name, "cannot be read: File name too long"),
        (glob_without_files, "matches no file"),
    ],
)
def test_what_is_no_file_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: Callable[[Path], Path], message: str
) -> None:
    path = place(tmp_path)

    error = refused(path)

    assert error.message == f"data file {path} {message}."
    assert error.code is ErrorCode.DATA_MISSING
    assert check(path) == error.spec.exit_code
    assert error.message in capsys.readouterr().err


@pytest.fixture
def locked() -> Iterator[Path]:
    """A directory that this user may not enter; root plays another user, for whom that holds."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "locked"
        directory.mkdir()
        (directory / "part").write_bytes(GOOD)
        Path(name).chmod(0o755)
        directory.chmod(0)
        user = os.geteuid()
        os.seteuid(user or NOBODY)
        yield directory
        os.seteuid(user)
        directory.chmod(0o700)


@pytest.mark.parametrize("name", ["part", "part-*"])
def test_a_directory_that_may_not_be_entered_is_told(locked: Path, name: str) -> None:
    with pytest.raises(DataError) as error:
        expand([name], locked)

    assert error.value.message == f"data file {locked / name} cannot be read: Permission denied."


def test_root_reads_what_is_locked_for_others(locked: Path) -> None:
    os.seteuid(os.getuid())

    if os.getuid() == 0:
        assert read(locked / "part", psrt.QueueDataset) == 1
    else:
        assert "Permission denied" in refused(locked / "part").message


def test_a_permission_that_is_denied_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refuse reads as for a user who is not root, also if root runs the test."""
    path = tmp_path / "part"
    path.write_bytes(GOOD)
    genuine = open

    def denied(name: object, *rest: object, **options: object) -> object:
        if name == path:
            raise PermissionError(13, "Permission denied", str(path))
        return genuine(name, *rest, **options)  # type: ignore[call-overload]

    monkeypatch.setattr("builtins.open", denied)

    message = f"data file {path} cannot be read: Permission denied."
    assert refused(path).message == message
    assert check(path) == refused(path).spec.exit_code
    assert message in capsys.readouterr().err


# --- files that change while they are read ---


@pytest.mark.parametrize(
    ("content", "size"), [(GOOD * 2 + b"1 1 2", 41), (GOOD * 4 + b"1 1 2 0.5 2 1 7", 87)]
)
def test_a_file_that_is_written_while_it_is_read_is_refused_with_what_is_whole_read(
    tmp_path: Path, content: bytes, size: int
) -> None:
    path = tmp_path / "f"
    path.write_bytes(GOOD * 4)
    texts = sources.blocks(path, block_bytes=len(GOOD) + 1)
    read_before = [next(texts).tobytes()]

    path.write_bytes(content)

    with pytest.raises(DataError) as error:
        read_before += (text.tobytes() for text in texts)
    assert set(read_before) == {GOOD}
    assert error.value.message == (
        f"{path}: the file was changed while it was read: it had 72 bytes, and has {size}. "
        "Reading stopped."
    )


def test_a_file_that_keeps_growing_is_not_read_without_end(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(GOOD * 4)

    def read_while_it_grows() -> None:
        for number, _ in enumerate(sources.blocks(path, block_bytes=len(GOOD) + 1)):
            assert number < 10
            with path.open("ab") as file:
                file.write(GOOD * 2)

    with pytest.raises(DataError, match="the file was changed while it was read"):
        read_while_it_grows()


@pytest.mark.parametrize("compressed", [GzipText, partial(ZstdText, path="f")])
def test_a_compressed_file_that_is_written_while_it_is_read_is_refused(
    tmp_path: Path, compressed: Callable[..., io.RawIOBase]
) -> None:
    path, compress = tmp_path / "f", gzip.compress if compressed is GzipText else zstandard.compress
    path.write_bytes(compress(GOOD))
    with open_raw(path) as file, compressed(unchanging(file, path)) as text:
        assert text.read(len(GOOD)) == GOOD

        path.write_bytes(compress(GOOD) * 2)

        with pytest.raises(DataError, match="the file was changed while it was read"):
            text.readall()


@pytest.mark.parametrize(
    ("left", "message"),
    [(1, r"go on behind 36 bytes .* there are 18"), (3, r"ends 18 bytes before this part of it")],
)
def test_a_part_of_a_file_that_shrank_is_refused(tmp_path: Path, left: int, message: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(GOOD * 4)
    part = FilePart(path, 2 * len(GOOD), 4 * len(GOOD))
    os.truncate(path, left * len(GOOD))

    assert re.search(message, refused(part).message)
