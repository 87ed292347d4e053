"""What Fluid's users name of its C++ core."""

from __future__ import annotations


class EOFException(Exception):
    """The data of a loader that runs take their batches from have ended."""


def is_compiled_with_cuda() -> bool:
    """psrt computes on CPUs."""
    return False


def get_cuda_device_count() -> int:
    """psrt sees no GPUs."""
    return 0


__all__ = ["EOFException", "get_cuda_device_count", "is_compiled_with_cuda"]
