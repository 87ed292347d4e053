"""Hosts, slots, and the host of each process."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.core.errors import ConfigError
from psrt.launch.hosts import Host, hosts_in, placed


def test_a_list_names_hosts_with_and_without_slots() -> None:
    assert hosts_in("a:2, user@b ,[::1]:3") == [Host("a", 2), Host("user@b"), Host("::1", 3)]


def test_a_file_has_one_host_a_line_as_of_open_mpi_or_mpich(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# ours\na slots=2\n\nb:3  # the large one\nc\n")

    assert hosts_in(str(file)) == [Host("a", 2), Host("b", 3), Host("c")]


@pytest.mark.parametrize("text", [" ", "a:x", "a b", "a:2:3", "a,a"])
def test_a_mistake_in_the_hosts_is_reported_before_anything_starts(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--hosts.*nothing was started"):
        hosts_in(text)


@pytest.mark.parametrize(
    ("slots", "processes", "places"),
    [
        ([0, 0], 5, [0, 1, 0, 1, 0]),
        ([1, 3], 4, [0, 1, 1, 1]),
        ([2, 1, 0], 6, [0, 1, 2, 0, 2, 2]),
        ([4], 2, [0, 0]),
    ],
)
def test_processes_take_hosts_in_turn_while_those_have_slots(
    slots: list[int], processes: int, places: list[int]
) -> None:
    assert placed([Host(f"h{i}", n) for i, n in enumerate(slots)], processes) == places


def test_too_few_slots_are_an_error() -> None:
    with pytest.raises(ConfigError, match="3 slots for 4 processes"):
        placed([Host("a", 1), Host("b", 2)], 4)
