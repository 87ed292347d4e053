"""Text of zstd files and URLs, and their errors."""

from __future__ import annotations

import functools
import gzip
import http.server
import importlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
import zstandard

from psrt.core.errors import ConfigError, DataError
from psrt.data.sources.files import expand, text_bytes
from psrt.data.sources.sources import blocks

TEXT = b"".join(b"1 %d\n" % (i * i) for i in range(5000))


def read(path: Path | str, block_bytes: int = 4096) -> bytes:
    return b"".join(block.tobytes() for block in blocks(path, block_bytes))


@pytest.fixture
def served(tmp_path) -> Iterator[str]:
    """The URL of an HTTP server for `tmp_path`."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None: ...

    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def memory() -> Iterator[str]:
    system = fsspec.filesystem("memory")
    for name in ("part-1", "part-0", "other"):
        system.pipe(f"/psrt-test/{name}", TEXT + name.encode())
    yield "memory://psrt-test"
    system.rm("/psrt-test", recursive=True)


def test_zstd_frames_behind_each_other_are_one_text(tmp_path):
    path = tmp_path / "a.zst"
    parts = [TEXT[at : at + 999] for at in range(0, len(TEXT), 999)]
    path.write_bytes(b"".join(map(zstandard.compress, parts)))

    assert read(path) == TEXT


@pytest.mark.parametrize("first", [0x50, 0x5F])
def test_a_zstd_file_may_begin_with_a_frame_without_text(tmp_path, first):
    skippable = bytes([first]) + b"\x2a\x4d\x18\x02\0\0\0no"
    (tmp_path / "f").write_bytes(skippable + zstandard.compress(b"a\n") + skippable)

    assert read(tmp_path / "f") == b"a\n"


def test_a_zstd_file_that_expands_a_lot_is_read_in_blocks(tmp_path):
    path = tmp_path / "a.zst"
    line = b"7" * 999 + b"\n"
    path.write_bytes(zstandard.compress(line * 20_000))

    assert sum(block.size for block in blocks(path)) == 20_000_000


@pytest.mark.parametrize("kept", [5, 100, -1])
def test_a_zstd_file_cut_off_is_no_whole_file(tmp_path, kept):
    path = tmp_path / "a.zst"
    path.write_bytes(zstandard.compress(TEXT)[:kept])

    with pytest.raises(DataError, match=r"a\.zst: the zstd file is cut off before its end"):
        read(path)


def test_a_damaged_zstd_file_is_refused(tmp_path):
    path = tmp_path / "a.zst"
    content = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(TEXT))
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)

    with pytest.raises(DataError, match=r"a\.zst: the zstd file is damaged"):
        read(path)


def test_garbage_behind_a_zstd_frame_is_refused(tmp_path):
    path = tmp_path / "a.zst"
    path.write_bytes(zstandard.compress(TEXT) + b"rubbish")

    with pytest.raises(DataError, match="zstd file is damaged"):
        read(path)


@pytest.mark.parametrize(
    ("content", "package", "extra"),
    [(zstandard.compress(TEXT), "zstandard", "zstd"), (TEXT, "fsspec", "fsspec")],
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, content, package, extra):
    (tmp_path / "a").write_bytes(content)
    place = tmp_path / "a" if extra == "zstd" else f"memory://{tmp_path}/a"
    genuine = importlib.import_module

    def without(name: str) -> object:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return genuine(name)

    monkeypatch.setattr(importlib, "import_module", without)

    with pytest.raises(ConfigError, match=f"needs the Python package '{package}'") as raised:
        read(place)
    assert raised.value.hint.endswith(f"pip install '.[{extra}]'.")


def test_a_glob_on_a_url_lists_its_files_by_name(memory):
    assert expand([f"{memory}/part-*"]) == [
        "memory:///psrt-test/part-0",
        "memory:///psrt-test/part-1",
    ]
    assert [read(str(path)) for path in expand([f"{memory}/p*0"])] == [TEXT + b"part-0\n"]


@pytest.mark.parametrize(
    ("name", "message"), [("none", "does not exist"), ("none-*", "matches no file")]
)
def test_a_url_without_a_file_is_refused(memory, name, message):
    with pytest.raises(DataError, match=rf"memory://psrt-test/.* {message}"):
        expand([f"{memory}/{name}"])


@pytest.mark.parametrize("stored", [bytes, gzip.compress, zstandard.compress])
def test_a_file_is_read_over_http(tmp_path, served, stored):
    (tmp_path / "a").write_bytes(stored(TEXT))

    assert expand([f"{served}/a"]) == [f"{served}/a"]
    assert text_bytes(f"{served}/a") == len(stored(TEXT))
    assert read(f"{served}/a") == TEXT


def test_a_url_that_cannot_be_read_is_named(served):
    with pytest.raises(DataError, match=f"data file {served}/none cannot be read"):
        read(f"{served}/none")


def test_an_unknown_protocol_is_named():
    with pytest.raises(DataError, match=r"data file nowhere://a/b cannot be read: .*nowhere"):
        read("nowhere://a/b")


def test_a_named_pipe_can_be_compressed(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    content = gzip.compress(TEXT)
    thread = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    thread.start()

    assert read(tmp_path / "pipe") == TEXT
    thread.join()
