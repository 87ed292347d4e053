"""Places of programs: the CPU. Places of GPUs raise errors with psrt's substitute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from psrt.config.load import cpu_num
from psrt.core.errors import ConfigError


@dataclass(frozen=True)
class CPUPlace:
    """The processor of this host."""

    def _type(self) -> int:
        return 0

    def _equals(self, other: Any) -> bool:
        return isinstance(other, CPUPlace | FluidPlace)


class FluidPlace:
    """Any place, as `set_place` sets it: the CPU."""

    def set_place(self, place: CPUPlace) -> None:
        """Set the place; there is one."""

    def is_cpu_place(self) -> bool:
        """Return True."""
        return True

    def is_gpu_place(self) -> bool:
        """Return False."""
        return False

    def _type(self) -> int:
        return 0

    def _equals(self, other: Any) -> bool:
        return isinstance(other, CPUPlace | FluidPlace)


Place = FluidPlace  # its name in PaddlePaddle


class CUDAPlace:
    """A GPU: no object is one, and making one raises `ConfigError`."""

    def __init__(self, id: int = 0) -> None:
        raise no_cuda(f"fluid.CUDAPlace({id})")


class CUDAPinnedPlace:
    """Memory beside a GPU: no object is one, and making one raises `ConfigError`."""

    def __init__(self) -> None:
        raise no_cuda("fluid.CUDAPinnedPlace()")


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """Return one place per replica: `device_count`, or CPU_NUM."""
    return [CPUPlace()] * (cpu_num() if device_count is None else device_count)


def cuda_places(device_ids: object = None) -> NoReturn:
    """Raise `ConfigError`: psrt computes on CPUs."""
    raise no_cuda("fluid.cuda_places()")


def no_cuda(name: str) -> ConfigError:
    """Return the error for a request of GPUs."""
    return ConfigError(
        f"{name} names a GPU, but psrt computes on CPUs.",
        hint="Use fluid.CPUPlace(); CPU_NUM sets the number of replicas that share a batch in "
        "fluid.ParallelExecutor and CompiledProgram.with_data_parallel.",
    )


__all__ = ["CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "Place", "cpu_places", "cuda_places"]
