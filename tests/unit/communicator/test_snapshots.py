"""Buffers of dense parameters: held sets stay unchanged, free ones are used again."""

from __future__ import annotations

import numpy as np

from psrt.communicator.requests.snapshots import Snapshots


def publish(snapshots: Snapshots, value: float) -> None:
    dense = snapshots.fill()
    dense["w"].fill(value)
    snapshots.publish(dense, {(0, "w"): int(value)})


def test_the_newest_set_is_handed_out_once() -> None:
    snapshots = Snapshots({"w": (2, 3)}, keep=1)
    publish(snapshots, 1)
    publish(snapshots, 2)

    dense, versions = snapshots.take()

    np.testing.assert_array_equal(dense["w"], np.full((2, 3), 2, np.float32))
    assert versions == {(0, "w"): 2}
    assert snapshots.take() == ({}, {})


def test_what_is_held_stays_unchanged_until_as_many_newer_sets_were_taken() -> None:
    snapshots = Snapshots({"w": (1,)}, keep=2)
    publish(snapshots, 1)
    older, _ = snapshots.take()
    publish(snapshots, 2)
    newer, _ = snapshots.take()

    for value in range(3, 20):
        publish(snapshots, value)

    assert (older["w"].tolist(), newer["w"].tolist()) == ([1], [2])


def test_no_more_sets_exist_than_are_needed() -> None:
    snapshots = Snapshots({"w": (1,)}, keep=2)
    addresses = set()
    for value in range(50):
        publish(snapshots, value)
        addresses.add(snapshots.take()[0]["w"].ctypes.data)

    assert len(addresses) <= 4
