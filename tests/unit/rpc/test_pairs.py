"""The pservers that may serve a part."""

from __future__ import annotations

import pytest

from psrt.core.errors import ConfigError
from psrt.rpc.pairs import PartAddress, pair_of, parts_paired_with


def test_the_backup_is_the_next_pserver_on_another_host_if_there_is_one() -> None:
    endpoints = ["a:1", "a:2", "b:1", "b:2"]

    assert [pair_of(endpoints, part).other for part in range(4)] == ["b:1", "b:1", "a:1", "a:1"]


def test_on_one_host_the_backup_is_the_next_pserver() -> None:
    endpoints = ["a:1", "a:2", "a:3"]

    assert [pair_of(endpoints, part).other for part in range(3)] == ["a:2", "a:3", "a:1"]


def test_the_two_pservers_of_a_part_take_turns() -> None:
    pair = pair_of(["a:1", "b:1"], 1)

    assert pair.serving(0) == PartAddress("b:1", 0)
    assert [pair.serving(epoch) for epoch in (1, 2)] == [
        PartAddress("a:1", 2, 1),
        PartAddress("b:1", 2, 2),
    ]
    assert [pair.backup(epoch) for epoch in (0, 1, 2)] == ["a:1", "b:1", "a:1"]


def test_one_pserver_has_no_backup() -> None:
    with pytest.raises(ConfigError, match="two pservers or more"):
        pair_of(["a:1"], 0)


def test_a_pserver_finds_the_parts_that_it_serves_or_backs_up() -> None:
    endpoints = ["a:1", "a:2", "b:1", "b:2"]

    assert parts_paired_with("a:1", endpoints) == {0, 2, 3}
    assert parts_paired_with("b:2", endpoints) == {3}
