"""Buffers of gradients for a backend: memory of the host, or with NCCL also of a GPU.

Gradients are computed on the CPU. For NCCL they are copied to the GPU and back on a stream of their
own, from pinned memory: the training thread starts the copies and goes on. It waits once, for an
event, before it updates parameters; it never synchronises the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.collective.group import TrainerGroup
from psrt.core.extras import required
from psrt.core.types import F32


class HostBuffer:
    """`values` (size,) float32, reduced where they are."""

    def __init__(self, group: TrainerGroup, size: int) -> None:
        torch = required("torch", "torch", "mode collective")
        self.values: F32 = np.zeros(size, np.float32)
        self._group, self._tensor = group, torch.from_numpy(self.values)
        self._work: Any = None

    def begin(self) -> None:
        """Start to replace the values by their sums."""
        self._work = self._group.all_reduce(self._tensor)

    def end(self) -> None:
        """Wait for the sums."""
        self._group.wait(self._work)
        self._work = None

    def broadcast(self) -> None:
        """Replace the values by those of rank 0."""
        self._group.broadcast(self._tensor)


class DeviceBuffer:
    """`values` (size,) float32 in pinned memory, reduced on a GPU."""

    def __init__(self, group: TrainerGroup, size: int) -> None:
        torch = required("torch", "torch", "mode collective")
        device = torch.device("cuda", group.seat.device)
        self._torch, self._group = torch, group
        self._host = torch.zeros(size, pin_memory=True)
        self._device = torch.zeros(size, device=device)
        self._stream, self._arrived = torch.cuda.Stream(device), torch.cuda.Event()
        self.values: F32 = self._host.numpy()

    def begin(self) -> None:
        """Start the copy to the GPU, the sum, and the copy back."""
        with self._torch.cuda.stream(self._stream):
            self._device.copy_(self._host, non_blocking=True)
            self._group.all_reduce(self._device).wait()  # the stream waits, not this thread
            self._host.copy_(self._device, non_blocking=True)
            self._arrived.record(self._stream)

    def end(self) -> None:
        """Wait for the sums to be in the host's memory."""
        self._arrived.synchronize()

    def broadcast(self) -> None:
        """Replace the values by those of rank 0."""
        self._device.copy_(self._host)
        self._group.broadcast(self._device)
        self._host.copy_(self._device)


def buffer(group: TrainerGroup, size: int) -> HostBuffer | DeviceBuffer:
    """Return the buffer that the backend of a group needs."""
    return HostBuffer(group, size) if group.seat.device < 0 else DeviceBuffer(group, size)


__all__ = ["DeviceBuffer", "HostBuffer", "buffer"]
