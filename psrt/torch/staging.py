"""Copies between this host and a GPU, from pinned memory and on a stream of their own.

The training thread starts them and goes on; streams wait for each other. It waits once a step, for
an event, before gradients leave for the tables, and never for the whole device.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import torch

from psrt.core.types import F32, Array


class HostCopy(NamedTuple):
    """`values` float32 in memory of the host, complete once `arrived` is; None: at once."""

    values: torch.Tensor
    arrived: torch.cuda.Event | None = None

    def numbers(self, scale: float = 1.0) -> Array:
        """The values times `scale`, not copied for 1; waits until they have arrived."""
        if self.arrived is not None:
            self.arrived.synchronize()
        numbers: Array = self.values.numpy()
        return numbers if scale == 1.0 else numbers * np.float32(scale)


def on_device(given: torch.Tensor, device: torch.device) -> torch.Tensor:
    """`given` on `device`; operations there wait for a copy to a GPU, this thread does not."""
    if given.is_cuda or device.type != "cuda":
        return given.to(device)
    pinned = given if given.is_pinned() else _pinned(given.shape, given.dtype).copy_(given)
    with torch.cuda.stream(stream := _stream(device)):
        there = pinned.to(device, non_blocking=True)
    current = torch.cuda.current_stream(device)
    current.wait_stream(stream)
    there.record_stream(current)
    return there


def start_to_host(given: torch.Tensor) -> HostCopy:
    """Start the copy of `given`, a gradient, to float32 in this host's memory.

    One that is here already is not copied unless it is a view: a later backward may write to that
    memory, as DDP does with `gradient_as_bucket_view`.
    """
    if not given.is_cuda:
        copies = given._is_view()
        return HostCopy(given.detach().to("cpu", torch.float32, copy=copies).contiguous())
    stream, arrived = _stream(given.device), torch.cuda.Event()
    stream.wait_stream(torch.cuda.current_stream(given.device))
    host = _pinned(given.shape, torch.float32)
    with torch.cuda.stream(stream):
        host.copy_(given, non_blocking=True)
        arrived.record(stream)
    given.record_stream(stream)
    return HostCopy(host, arrived)


def numbers_of(parameter: torch.Tensor) -> F32:
    """A copy of a tensor as float32."""
    numbers: F32 = parameter.detach().to("cpu", torch.float32, copy=True).contiguous().numpy()
    return numbers


def _pinned(shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    """Memory that is used again only once the copies from it have ended."""
    return torch.empty(shape, dtype=dtype, pin_memory=True)


@functools.cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


__all__ = ["HostCopy", "numbers_of", "on_device", "start_to_host"]
