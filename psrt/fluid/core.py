"""Names of Fluid's C++ core that users import."""

from __future__ import annotations


class EOFException(Exception):
    """Raised at the end of the data of a loader that feeds runs."""


def is_compiled_with_cuda() -> bool:
    """Return False: psrt computes on CPUs."""
    return False


def get_cuda_device_count() -> int:
    """Return 0: psrt uses no GPUs."""
    return 0


__all__ = ["EOFException", "get_cuda_device_count", "is_compiled_with_cuda"]
