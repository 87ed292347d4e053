"""Limits of control groups, of both versions, from files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.core.process.control_group import group_cores, group_limit_bytes

GIB = 1 << 30


class Groups:
    """A copy of /sys/fs/cgroup and /proc/self/cgroup in a folder."""

    def __init__(self, folder: Path, *lines: str) -> None:
        self.own, self.root = folder / "own", folder / "sys"
        self.own.write_text("".join(f"{line}\n" for line in lines))

    def write(self, file: str, text: str) -> None:
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    @property
    def limit_bytes(self) -> int | None:
        return group_limit_bytes(self.own, self.root)

    @property
    def cores(self) -> float | None:
        return group_cores(self.own, self.root)


def test_the_least_limit_up_to_the_root_counts(tmp_path: Path) -> None:
    groups = Groups(tmp_path, "0::/psrt.slice/pserver.service")
    groups.write("psrt.slice/pserver.service/memory.max", str(4 * GIB))
    groups.write("psrt.slice/memory.max", str(2 * GIB))
    groups.write("psrt.slice/pserver.service/cpu.max", "150000 100000")
    groups.write("psrt.slice/cpu.max", "max 100000")

    assert (groups.limit_bytes, groups.cores) == (2 * GIB, 1.5)


def test_groups_of_version_1_have_files_of_their_own(tmp_path: Path) -> None:
    groups = Groups(tmp_path, "4:memory:/job", "2:cpu,cpuacct:/job", "1:name=systemd:/", "0::/")
    groups.write("memory/job/memory.limit_in_bytes", str(GIB))
    groups.write("cpu/job/cpu.cfs_quota_us", "50000")
    groups.write("cpu/job/cpu.cfs_period_us", "100000")

    assert (groups.limit_bytes, groups.cores) == (GIB, 0.5)


def test_a_quota_of_version_1_may_be_none(tmp_path: Path) -> None:
    groups = Groups(tmp_path, "2:cpu,cpuacct:/")
    groups.write("cpu/cpu.cfs_quota_us", "-1")
    groups.write("cpu/cpu.cfs_period_us", "100000")

    assert groups.cores is None


def test_in_a_container_the_own_group_is_the_root(tmp_path: Path) -> None:
    groups = Groups(tmp_path, "0::/docker/4f3a")
    groups.write("memory.max", str(GIB))

    assert groups.limit_bytes == GIB


@pytest.mark.parametrize("text", ["max", ""])
def test_no_limit_is_none(tmp_path: Path, text: str) -> None:
    groups = Groups(tmp_path, "0::/job")
    groups.write("job/memory.max", text)
    groups.write("job/cpu.max", text and "max 100000")

    assert groups.limit_bytes is None
    assert groups.cores is None


def test_without_control_groups_nothing_is_limited(tmp_path: Path) -> None:
    assert group_limit_bytes(tmp_path / "none", tmp_path) is None
    assert group_cores(tmp_path / "none", tmp_path) is None
