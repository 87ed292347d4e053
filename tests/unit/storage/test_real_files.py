"""Files of the real disk: write-back begins while they are appended to."""

import errno
import os

import pytest

from psrt.storage.disk import RealDisk

_MIB = 1 << 20
_PIECE = bytes(range(256)) * (3 * _MIB // 256)


@pytest.fixture
def advice(monkeypatch):
    """Return the list of (start, size) that files are advised to write back."""
    given = []
    monkeypatch.setattr(
        os, "posix_fadvise", lambda _, start, size, kind: given.append((start, size, kind))
    )
    return given


def _append_seven_pieces(path):
    file = RealDisk().create(path)
    for _ in range(7):
        file.append([_PIECE])
    file.sync()
    file.close()


def test_write_back_begins_after_every_eight_mebibytes(tmp_path, advice):
    _append_seven_pieces(tmp_path / "file")
    dont_need = os.POSIX_FADV_DONTNEED
    assert advice == [(0, 9 * _MIB, dont_need), (9 * _MIB, 9 * _MIB, dont_need)]


def test_small_files_are_left_to_the_system(tmp_path, advice):
    file = RealDisk().create(tmp_path / "file")
    file.append([b"a few", b" bytes"])
    file.close()
    assert advice == []


def test_a_file_system_that_refuses_advice_holds_the_same_bytes(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSYS, "not supported")

    monkeypatch.setattr(os, "posix_fadvise", refuse)
    _append_seven_pieces(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == _PIECE * 7
