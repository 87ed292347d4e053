"""Every directory of files keeps the same promises: on a disk, simulated, in memory, in S3."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.core.errors import ErrorCode, StorageError
from psrt.storage.array_reader import ArrayFileReader
from psrt.storage.array_writer import ArrayFileWriter
from psrt.storage.directory import Directory, contents
from psrt.storage.local_directory import LocalDirectory
from psrt.storage.locate import directory_at
from psrt.storage.remote_directory import BLOCK_BYTES
from tests.sim.disk import SimulatedDisk
from tests.support.array_files import PAGES, assert_pages


@pytest.fixture(params=["local", "simulated", "memory", pytest.param("s3", marks=pytest.mark.s3)])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Directory:
    match request.param:
        case "local":
            return directory_at(tmp_path / "cuts")
        case "simulated":
            return LocalDirectory(Path("/cuts"), SimulatedDisk())
        case "memory":
            return directory_at(f"memory://{uuid.uuid4()}/cuts")
    return directory_at(f"s3://{request.getfixturevalue('bucket')}/cuts")


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """A simulated S3 of this host; skips where s3fs and moto are not installed."""
    pytest.importorskip("s3fs", reason="needs s3fs and moto[server]")
    pytest.importorskip("moto.server", reason="needs s3fs and moto[server]")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def bucket(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    import s3fs

    settings = {
        "AWS_ENDPOINT_URL": s3_endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    name = f"cuts-{uuid.uuid4()}"
    s3fs.S3FileSystem().call_s3("create_bucket", Bucket=name)
    return name


def break_off(directory: Directory, name: str, *buffers: bytes) -> None:
    with directory.write(name) as out:
        for buffer in buffers:
            out.write(buffer)
        raise RuntimeError("lost")


def test_a_committed_file_is_read(directory: Directory) -> None:
    directory.commit("latest", b"cut 7")

    assert contents(directory, "latest") == b"cut 7"


def test_a_second_commit_replaces_the_first(directory: Directory) -> None:
    directory.commit("latest", b"cut 7, and longer")
    directory.commit("latest", b"cut 8")

    assert contents(directory, "latest") == b"cut 8"
    assert directory.names() == ["latest"]


def test_an_empty_file_is_a_file(directory: Directory) -> None:
    directory.commit("empty", b"")

    assert contents(directory, "empty") == b""
    assert directory.names() == ["empty"]


def test_a_file_is_visible_once_its_writer_has_ended(directory: Directory) -> None:
    with directory.write("7/part") as out:
        out.write(b"first")
        assert directory.names() == []
        out.write(b" ", memoryview(b"second"))

    assert contents(directory, "7/part") == b"first second"


def test_a_writer_that_fails_leaves_the_earlier_file(directory: Directory) -> None:
    directory.commit("7/part", b"before")

    with pytest.raises(RuntimeError, match="lost"):
        break_off(directory, "7/part", b"half")

    assert contents(directory, "7/part") == b"before"
    assert directory.names() == ["7/part"]
    assert directory.remove_unfinished() == []


def test_a_writer_that_fails_after_several_blocks_leaves_nothing(directory: Directory) -> None:
    with pytest.raises(RuntimeError, match="lost"):
        break_off(directory, "part", bytes(BLOCK_BYTES), bytes(BLOCK_BYTES))

    assert directory.names() == []


def test_a_file_of_several_blocks_comes_back(directory: Directory) -> None:
    data = np.random.default_rng(1).integers(0, 255, 2 * BLOCK_BYTES + 77, np.uint8)

    with directory.write("large") as out:
        for piece in np.array_split(data, 9):
            out.write(piece.data)

    with directory.read("large") as file:
        assert file.size_bytes == len(data)
        assert bytes(file.read(0, len(data))) == data.tobytes()


def test_any_range_of_a_file_is_read(directory: Directory) -> None:
    directory.commit("ten", b"0123456789")

    with directory.read("ten") as file:
        ranges = [bytes(file.read(*each)) for each in ((0, 10), (3, 4), (9, 1), (10, 0), (0, 0))]

    assert ranges == [b"0123456789", b"3456", b"9", b"", b""]


@pytest.mark.parametrize(("offset", "size"), [(0, 11), (10, 1), (50, 1), (5, 6)])
def test_a_range_beyond_the_end_is_an_error(directory: Directory, offset: int, size: int) -> None:
    directory.commit("ten", b"0123456789")

    with (
        directory.read("ten") as file,
        pytest.raises(StorageError, match=r"ten is damaged: it ends at byte \d+"),
    ):
        file.read(offset, size)


def test_a_file_that_does_not_exist_is_named(directory: Directory) -> None:
    directory.commit("there", b"1")

    with pytest.raises(StorageError, match=r"not/there does not exist") as caught:
        contents(directory, "not/there")
    assert caught.value.code == ErrorCode.FILE_MISSING


def test_a_folder_is_not_a_file(directory: Directory) -> None:
    directory.commit("7/part", b"1")

    with pytest.raises(StorageError, match="7"):
        contents(directory, "7")


def test_names_are_sorted_and_chosen_by_their_beginning(directory: Directory) -> None:
    for name in ("8/a", "7/b", "7/a", "latest"):
        directory.commit(name, b"1")

    assert directory.names() == ["7/a", "7/b", "8/a", "latest"]
    assert directory.names("7/") == ["7/a", "7/b"]
    assert directory.names("9/") == []


def test_a_directory_that_does_not_exist_is_empty(directory: Directory) -> None:
    assert directory.names() == []


def test_removed_files_are_gone_and_absent_ones_are_ignored(directory: Directory) -> None:
    for name in ("7/a", "7/b", "8/a"):
        directory.commit(name, b"1")

    directory.remove("7/a", "7/b", "not there", "not/there")

    assert directory.names() == ["8/a"]
    directory.commit("7/a", b"2")
    assert contents(directory, "7/a") == b"2"


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../up", "a/../b", "a//b", "a/", ".", "a.tmp"])
def test_names_outside_of_the_directory_are_refused(directory: Directory, name: str) -> None:
    for act in (directory.read, directory.write):
        with pytest.raises(ValueError, match="not a name"), act(name):
            pass
    with pytest.raises(ValueError, match="not a name"):
        directory.remove(name)


def test_a_small_file_that_is_too_large_is_refused(directory: Directory) -> None:
    directory.commit("manifest", bytes(100))

    with pytest.raises(StorageError, match="it is 100 bytes long"):
        contents(directory, "manifest", limit_bytes=99)


def test_array_files_are_written_and_read(directory: Directory) -> None:
    with directory.write("7/part 0/emb.arrays") as out:
        writer = ArrayFileWriter(out)
        for meta, arrays in PAGES:
            writer.page(meta, arrays)
        seal = writer.finish()

    with directory.read("7/part 0/emb.arrays") as file:
        assert_pages(list(ArrayFileReader(file, seal)))


def test_files_under_several_names_are_written_at_the_same_time(directory: Directory) -> None:
    with directory.write("a") as first, directory.write("b") as second:
        first.write(b"1")
        second.write(b"2")
        first.write(b"1")

    assert (contents(directory, "a"), contents(directory, "b")) == (b"11", b"2")


def test_an_error_names_the_whole_place(directory: Directory) -> None:
    with pytest.raises(StorageError) as caught:
        contents(directory, "7/part")

    assert f"{directory.location}/7/part" in str(caught.value)


def test_a_url_of_a_missing_protocol_is_an_error_of_the_catalogue() -> None:
    with pytest.raises(StorageError, match="nosuch://cuts"):
        directory_at("nosuch://cuts")


def test_a_file_url_is_a_local_directory(tmp_path: Path) -> None:
    directory_at(f"file://{tmp_path}/cuts").commit("latest", b"1")

    assert (tmp_path / "cuts" / "latest").read_bytes() == b"1"


def test_a_broken_writers_file_is_hidden_and_removed(tmp_path: Path) -> None:
    directory = directory_at(tmp_path)
    directory.commit("7/part", b"1")
    (tmp_path / "7" / "part.123-0.tmp").write_bytes(b"half")
    own = tmp_path / "7" / f"other.{os.getpid()}-0.tmp"
    own.write_bytes(b"of an earlier process with this number")
    directory.commit("7/other", b"2")

    assert directory.names() == ["7/other", "7/part"]
    removed = directory.remove_unfinished()

    assert removed == [f"7/{own.name}", "7/part.123-0.tmp"]
    assert sorted(each.name for each in (tmp_path / "7").iterdir()) == ["other", "part"]


def test_storages_that_cannot_write_say_so() -> None:
    with (
        pytest.raises(StorageError, match="cannot write http") as caught,
        directory_at("http://127.0.0.1:1/cuts").write("a"),
    ):
        pass
    assert caught.value.code == ErrorCode.STORAGE_FAILED


class Interrupting:
    """A file of fsspec whose upload breaks off."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: bytes) -> int:
        raise ConnectionResetError(104, "Connection reset by peer")


def test_an_upload_that_broke_off_cannot_be_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    directory: Any = directory_at(f"memory://{uuid.uuid4()}")
    real = directory._system.open
    monkeypatch.setattr(
        directory._system, "open", lambda *a, **k: Interrupting(real(*a, **k)), raising=True
    )

    with pytest.raises(StorageError, match="Connection reset"):
        write_and_forget_the_error(directory)

    assert directory.names() == []


def write_and_forget_the_error(directory: Directory) -> None:
    with directory.write("part") as out, contextlib.suppress(StorageError):
        out.write(b"1")
