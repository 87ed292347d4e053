"""Gradients over a GPU: NCCL in a group of one, from pinned memory, on a stream of their own."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.collective.meeting import meet
from psrt.collective.reducer import GradientReducer, StepCounts
from psrt.collective.seat import GroupSeat
from psrt.collective.staging import DeviceBuffer
from tests.support.live_pservers import free_port

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("this host has no GPU", allow_module_level=True)


def test_gradients_travel_from_pinned_memory_without_synchronising_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the training thread waits for the whole device")

    monkeypatch.setattr(torch.cuda, "synchronize", refuse)
    group = meet(GroupSeat(0, 1, "127.0.0.1", free_port(), device=0), "mark", 60.0, 60.0)
    reducer = GradientReducer(group, [("a", (3, 2)), ("b", (5,))], 16)

    for step in range(3):
        reducer.offer("b", np.full(5, step, np.float32))
        reducer.offer("a", np.full((3, 2), -step, np.float32))
        reducer.start_all(trained=True, goes_on=True)
        counts, means = reducer.end()
        assert counts == StepCounts(1, 1)
        np.testing.assert_array_equal(means["a"], -step)
        np.testing.assert_array_equal(means["b"], step)

    memory = DeviceBuffer(group, 4)
    assert torch.from_numpy(memory.values).is_pinned()
    group.leave()
