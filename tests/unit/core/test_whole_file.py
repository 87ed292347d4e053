"""A file at a path is complete; links, devices and pipes stay what they are."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from psrt.config.sections import PserverConfig
from psrt.core import whole_file
from psrt.core.errors import ConfigError
from psrt.pserver.process import abandoned_sockets, daemon
from psrt.trainer import report


def test_a_file_is_replaced_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("what was there before, and longer")

    whole_file.probe(path)
    whole_file.write(path, "new")

    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("before")

    with pytest.raises(TypeError), whole_file.writing(path) as out:
        out.writelines(["half", None])  # type: ignore[list-item]

    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


class DiskCalls:
    """Records, in order, what is synced with what size, and what is renamed to what."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[tuple[str, str, str | int]] = []
        self.refused: dict[int, OSError] = {}  # by file type: the error of its fsync
        self._fsync, self._replace = os.fsync, os.replace
        monkeypatch.setattr(os, "fsync", self.fsync)
        monkeypatch.setattr(os, "replace", self.replace)

    def fsync(self, descriptor: int) -> None:
        status, name = os.fstat(descriptor), os.readlink(f"/proc/self/fd/{descriptor}")
        kind = stat.S_IFMT(status.st_mode)
        self.events.append(("fsync", name, status.st_size if stat.S_ISREG(kind) else "directory"))
        if kind in self.refused:
            raise self.refused[kind]
        self._fsync(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        self.events.append(("rename", str(source), str(target)))
        self._replace(source, target)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> DiskCalls:
    return DiskCalls(monkeypatch)


def test_a_file_is_on_the_disk_before_its_name_and_then_its_name_is(
    tmp_path: Path, disk: DiskCalls
) -> None:
    path, text = tmp_path / "out", "all of it"

    whole_file.write(path, text)

    unfinished = f"{path}.{os.getpid()}.tmp"
    assert disk.events == [
        ("fsync", unfinished, len(text)),
        ("rename", unfinished, str(path)),
        ("fsync", str(tmp_path), "directory"),
    ]


def test_a_disk_that_fails_leaves_what_was_there(tmp_path: Path, disk: DiskCalls) -> None:
    path = tmp_path / "out"
    path.write_text("before")
    disk.refused[stat.S_IFREG] = OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(OSError, match="Input/output error"):
        whole_file.write(path, "new")

    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_syncs_no_directories_is_written_to(
    tmp_path: Path, disk: DiskCalls, code: int
) -> None:
    disk.refused[stat.S_IFDIR] = OSError(code, os.strerror(code))

    whole_file.write(tmp_path / "out", "new")

    assert (tmp_path / "out").read_text() == "new"


def test_a_directory_that_cannot_be_listed_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refusing(path: Path, flags: int, *rest: int) -> int:
        if flags & os.O_DIRECTORY:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, flags, *rest)

    monkeypatch.setattr(os, "open", refusing)

    whole_file.write(tmp_path / "out", "new")

    assert (tmp_path / "out").read_text() == "new"


def test_what_is_written_in_place_is_not_synced(tmp_path: Path, disk: DiskCalls) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    whole_file.write(pipe, "new")

    os.close(reader)
    assert disk.events == []


@pytest.mark.parametrize("there", [True, False])
def test_a_link_leads_to_the_file_that_is_written(tmp_path: Path, there: bool) -> None:
    (tmp_path / "runs").mkdir()
    target, link = tmp_path / "runs" / "out", tmp_path / "link"
    link.symlink_to(target)
    if there:
        target.write_text("before")

    whole_file.probe(link)
    whole_file.write(link, "new")

    assert link.is_symlink()
    assert target.read_text() == "new"
    whole_file.remove(link)
    assert link.is_symlink()
    assert not target.exists()


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        report.check_target(str(pipe))
        report.write(str(pipe), {"steps": 3})
        read = os.read(reader, 100)
    finally:
        os.close(reader)

    whole_file.remove(pipe)
    assert read == b'{\n "steps": 3\n}\n'
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_output_of_this_process_is_written_to_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    with path.open("w") as output:
        monkeypatch.setattr(whole_file, "_OUTPUTS", (output.fileno(),))
        before = path.stat().st_ino

        whole_file.write(path, "report")

    assert path.read_text() == "report"
    assert path.stat().st_ino == before


@pytest.mark.parametrize("try_it", [report.check_target, lambda path: report.write(path, {})])
def test_a_directory_is_refused_with_the_flag_that_names_it(
    tmp_path: Path, try_it: Callable[[str], None]
) -> None:
    with pytest.raises(ConfigError, match=r"--report .* cannot be written \(Is a directory\)"):
        try_it(str(tmp_path))


def test_a_place_that_takes_no_file_is_refused_beforehand() -> None:
    with pytest.raises(ConfigError, match=r"--state /proc/at.json cannot be written"):
        report.check_target("/proc/at.json", "--state")


def test_what_cannot_be_written_in_place_stays_too(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "s"))

        with pytest.raises(ConfigError, match="No such device"):
            report.write(str(tmp_path / "s"), {})

    assert stat.S_ISSOCK((tmp_path / "s").stat().st_mode)


def bound(path: Path) -> socket.socket:
    path.parent.mkdir(mode=0o700)
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(path))
    return door


def test_a_pserver_removes_sockets_of_killed_ones_and_of_no_other(tmp_path: Path) -> None:
    bound(tmp_path / "psrt-killed" / "psrt-1.sock").close()
    bound(tmp_path / "psrt-others" / "psrt-2.sock").close()
    (tmp_path / "psrt-others").chmod(0o755)
    bound(tmp_path / "psrt-shared" / "psrt-3.sock").close()
    (tmp_path / "psrt-shared" / "thesis.tex").touch()
    (tmp_path / "psrt-being-made").mkdir(mode=0o700)
    (tmp_path / "psrt-file").mkdir(mode=0o700)
    (tmp_path / "psrt-file" / "psrt-4.sock").touch()
    (tmp_path / "psrt-link").symlink_to(tmp_path / "psrt-others")

    with (
        bound(tmp_path / "psrt-starting" / "psrt-5.sock"),
        bound(tmp_path / "psrt-alive" / "psrt-6.sock") as alive,
    ):
        alive.listen()
        alive.setblocking(False)
        abandoned_sockets.remove_abandoned_sockets(tmp_path)
        with pytest.raises(BlockingIOError):
            alive.accept()  # nobody knocked

    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "psrt-alive",
        "psrt-alive/psrt-6.sock",
        "psrt-being-made",
        "psrt-file",
        "psrt-file/psrt-4.sock",
        "psrt-link",
        "psrt-others",
        "psrt-others/psrt-2.sock",
        "psrt-shared",
        "psrt-shared/thesis.tex",
        "psrt-starting",
        "psrt-starting/psrt-5.sock",
    ]


@pytest.mark.parametrize("kind", ["pipe", "directory"])
def test_a_pserver_takes_away_its_ready_file_and_nothing_else(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ready"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()

    daemon._remove_ready_file(PserverConfig(ready_file=str(path)))

    assert path.exists()
