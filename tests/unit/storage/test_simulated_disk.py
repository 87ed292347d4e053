"""After a crash at every step a file is the old one or the new one; faults of a disk are errors."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from psrt.core.errors import ErrorCode, StorageError
from psrt.storage import json_file
from psrt.storage.array_reader import ArrayFileReader
from psrt.storage.array_writer import ArrayFileWriter
from psrt.storage.directory import contents
from psrt.storage.local_directory import LocalDirectory
from psrt.storage.seals import Seal
from tests.sim.disk import Crashed, SimulatedDisk, SimulatedFile
from tests.support.array_files import PAGES, assert_pages

ROOT = Path("/data/cuts")
OLD, NEW = b"cut 7 of job a", b"cut 8 of job a, with more parts"
SEEDS = range(40)
PARTS = ("8/part-0.arrays", "8/part-1.arrays")


def directory(disk: SimulatedDisk) -> LocalDirectory:
    return LocalDirectory(ROOT, disk, owner="1")


def found(disk: SimulatedDisk, name: str) -> bytes | None:
    """Return the file that a reader finds after a restart; None for no file."""
    try:
        return contents(directory(disk), name)
    except StorageError as error:
        if error.code != ErrorCode.FILE_MISSING:
            raise
        return None


def crashed_at_each_step(
    new_disk: Callable[[int], SimulatedDisk], act: Callable[[SimulatedDisk], None]
) -> list[tuple[SimulatedDisk, bool]]:
    """Disks after `act` and a restart, one per seed and step, and whether `act` had returned."""
    outcomes = []
    for seed in SEEDS:
        step, returned = 0, False
        while not returned:
            disk = new_disk(seed)
            step += 1
            disk.crash_at = disk.steps + step
            returned = is_completed(act, disk)
            disk.restart()
            outcomes.append((disk, returned))
    return outcomes


def is_completed(act: Callable[[SimulatedDisk], None], disk: SimulatedDisk) -> bool:
    try:
        act(disk)
    except Crashed:
        return False
    return True


def disk_with_old(seed: int) -> SimulatedDisk:
    disk = SimulatedDisk(seed)
    directory(disk).commit("latest", OLD)
    return disk


def commit_new(disk: SimulatedDisk) -> None:
    directory(disk).commit("latest", NEW)


def violations(
    new_disk: Callable[[int], SimulatedDisk], before: bytes | None
) -> list[tuple[bytes | None, list[str]]]:
    return [
        (content, disk.history)
        for disk, returned in crashed_at_each_step(new_disk, commit_new)
        if (content := found(disk, "latest")) not in ({NEW} if returned else {before, NEW})
    ]


def test_after_a_crash_at_any_step_of_a_commit_the_old_or_the_new_file_is_there() -> None:
    assert violations(disk_with_old, OLD) == []


def test_after_a_crash_at_any_step_of_a_first_commit_no_file_or_the_new_one_is_there() -> None:
    assert violations(SimulatedDisk, None) == []


def test_a_commit_has_several_steps_to_crash_at() -> None:
    outcomes = crashed_at_each_step(disk_with_old, commit_new)

    assert len(outcomes) >= 8 * len(SEEDS)
    assert {found(disk, "latest") for disk, _ in outcomes} == {OLD, NEW}


class WithoutFileSync(SimulatedDisk):
    def sync(self, inode: object, path: Path) -> None:
        pass


class WithoutDirectorySync(SimulatedDisk):
    def sync_directory(self, path: Path) -> None:
        pass


class WithoutRename(SimulatedDisk):
    """Overwrites the file in place instead."""

    def create(self, path: Path) -> SimulatedFile:
        if path in self._now.files:
            self._now.files[path].data.clear()
            self._now.files[path].durable_bytes = 0
            return SimulatedFile(self, self._now.files[path], path)
        return super().create(path)

    def rename(self, old: Path, new: Path) -> None:
        if new not in self._now.files:
            super().rename(old, new)
            return
        self._now.files[new].data[:] = self._now.files[old].data
        self._now.files[new].durable_bytes = 0


@pytest.mark.parametrize("planted", [WithoutFileSync, WithoutDirectorySync, WithoutRename])
def test_a_disk_that_skips_a_step_of_a_commit_is_caught(planted: type[SimulatedDisk]) -> None:
    def new_disk(seed: int) -> SimulatedDisk:
        disk = disk_with_old(seed)
        disk.__class__ = planted
        return disk

    assert violations(new_disk, OLD) != []


def write_cut(disk: SimulatedDisk) -> None:
    """Two parts in a folder of their own, then the manifest that names them."""
    place, seals = directory(disk), {}
    for name in PARTS:
        with place.write(name) as out:
            writer = ArrayFileWriter(out)
            for meta, arrays in PAGES:
                writer.page(meta, arrays)
            seals[name] = writer.finish().to_plain()
    place.commit("8/manifest.json", json_file.encode("cut", 1, {"parts": seals}))


def test_after_a_crash_at_any_step_of_a_cut_a_manifest_names_complete_parts_only() -> None:
    complete = 0
    for disk, returned in crashed_at_each_step(SimulatedDisk, write_cut):
        manifest = found(disk, "8/manifest.json")
        assert manifest is not None or not returned, disk.history
        if manifest is not None:
            complete += 1
            assert_complete(disk, json_file.decode("manifest", manifest, "cut", 1))

    assert complete >= len(SEEDS)


def assert_complete(disk: SimulatedDisk, manifest: dict) -> None:
    for name, seal in manifest["parts"].items():
        with directory(disk).read(name) as file:
            assert_pages(list(ArrayFileReader(file, Seal.from_plain(seal))))


def test_files_of_a_broken_cut_are_visible_only_if_they_are_complete() -> None:
    for disk, _ in crashed_at_each_step(SimulatedDisk, write_cut):
        for name in directory(disk).names("8/part"):
            with directory(disk).read(name) as file:
                assert_pages(list(ArrayFileReader(file)))


def test_what_a_crash_left_is_removed_and_the_next_cut_is_written() -> None:
    for disk, _ in crashed_at_each_step(SimulatedDisk, write_cut)[:200]:
        directory(disk).remove_unfinished()
        write_cut(disk)
        disk.restart()

        assert directory(disk).names() == ["8/manifest.json", *PARTS]
        assert directory(disk).remove_unfinished() == []


def test_a_removed_file_stays_removed() -> None:
    def remove(disk: SimulatedDisk) -> None:
        directory(disk).remove("latest")

    for disk, returned in crashed_at_each_step(disk_with_old, remove):
        assert found(disk, "latest") in ({None} if returned else {OLD, None})


def assert_refused(disk: SimulatedDisk, number: int, says: str) -> None:
    with pytest.raises(StorageError, match=says) as caught:
        commit_new(disk)
    assert caught.value.code == ErrorCode.STORAGE_FAILED
    assert str(ROOT / "latest") in caught.value.message
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == number


@pytest.mark.parametrize("free", range(len(NEW)))
def test_a_full_disk_keeps_the_old_file_and_no_part_of_the_new_one(free: int) -> None:
    disk = disk_with_old(0)
    disk.capacity_bytes = disk.used_bytes() + free

    assert_refused(disk, errno.ENOSPC, "No space left on device")

    assert (found(disk, "latest"), disk.used_bytes()) == (OLD, len(OLD))
    disk.capacity_bytes += len(NEW)
    commit_new(disk)
    assert found(disk, "latest") == NEW


@pytest.mark.parametrize("sync", [1, 2, 3])
def test_a_failed_sync_of_any_directory_above_is_an_error(sync: int) -> None:
    disk = disk_with_old(0)
    disk.failing_syncs = {disk.syncs + sync}

    assert_refused(disk, errno.EIO, "Input/output error")


def test_a_read_only_disk_keeps_the_old_file() -> None:
    disk = disk_with_old(0)
    disk.read_only = True

    assert_refused(disk, errno.EROFS, "Read-only file system")

    assert found(disk, "latest") == OLD


def test_after_a_failed_sync_of_its_contents_a_file_never_gets_its_name() -> None:
    for seed in SEEDS:
        disk = disk_with_old(seed)
        place = directory(disk)
        place.commit("other", OLD)
        disk.failing_syncs = {disk.syncs + 1}

        with pytest.raises(StorageError, match="Input/output error"):
            place.commit("latest", NEW)

        assert found(disk, "latest") == OLD
        disk.restart()
        assert found(disk, "latest") == OLD


def test_a_failed_sync_of_the_directory_is_an_error_and_either_file_is_there() -> None:
    after = set()
    for seed in SEEDS:
        disk = disk_with_old(seed)
        place = directory(disk)
        place.commit("other", OLD)
        disk.failing_syncs = {disk.syncs + 2}

        with pytest.raises(StorageError, match="Input/output error"):
            place.commit("latest", NEW)

        disk.restart()
        after.add(found(disk, "latest"))
    assert after == {OLD, NEW}


def test_the_same_seed_loses_the_same() -> None:
    def story(seed: int) -> tuple[list[str], bytes | None]:
        disk = disk_with_old(seed)
        disk.crash_at = disk.steps + 7
        assert not is_completed(commit_new, disk)
        disk.restart()
        return disk.history, found(disk, "latest")

    assert story(3) == story(3)
    assert "rename /data/cuts/latest.1-0.tmp latest" in "\n".join(story(3)[0])
