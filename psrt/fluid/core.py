"""Names of Fluid's C++ core that users import."""

from __future__ import annotations

import importlib
from collections.abc import MutableMapping
from types import SimpleNamespace
from typing import Any

from psrt.core.errors import PsrtError
from psrt.fluid.names import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place, VarType, flags, missing

_LATER = {
    "Dataset": ("feeding", "CoreDataset"),
    "AnalysisConfig": ("running", "AnalysisConfig"),
    "LoDTensor": ("running", "LoDTensor"),
    "LoDTensorArray": ("running", "LoDTensorArray"),
    "NativeConfig": ("running", "NativeConfig"),
    "PaddleBuf": ("running", "PaddleBuf"),
    "PaddleDType": ("running", "PaddleDType"),
    "PaddlePredictor": ("running", "PaddlePredictor"),
    "PaddleTensor": ("running", "PaddleTensor"),
    "Scope": ("running", "FluidScope"),
    "Tensor": ("running", "LoDTensor"),
    "create_paddle_predictor": ("running", "create_paddle_predictor"),
    "from_dlpack": ("running", "from_dlpack"),
}
"""Name → its room and its name there, loaded on first use."""


class EOFException(Exception):
    """Raised at the end of the data of a loader that feeds runs."""


EnforceNotMet = PsrtError  # Fluid's error of C++ code: here any error that is raised on purpose


VarDesc = SimpleNamespace(VarType=VarType)


def is_compiled_with_cuda() -> bool:
    """Return False: psrt computes on CPUs."""
    return False


def is_compiled_with_mkldnn() -> bool:
    """Return False: kernels are psrt's own."""
    return False


def is_compiled_with_dist() -> bool:
    """Return True: psrt trains with pservers."""
    return True


def is_compiled_with_brpc() -> bool:
    """Return False: calls travel in frames of psrt, or by gRPC."""
    return False


def get_cuda_device_count() -> int:
    """Return 0: psrt uses no GPUs."""
    return 0


def _set_eager_deletion_mode(threshold: float, fraction: float, use_gpu_buffer: bool) -> None:
    """Without effect, as the memory of a step is reused in the next."""


def _set_fuse_parameter_group_size(size: int) -> None:
    """Without effect: gradients of a step are updated in groups of psrt's own choice."""


def _set_fuse_parameter_memory_size(size: float) -> None:
    """Without effect, see `_set_fuse_parameter_group_size`."""


def globals() -> MutableMapping[str, Any]:
    """Return the flags of this process, `FLAGS_…`, which may be set; psrt reads none of them."""
    return flags.values


__all__ = ["CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "EOFException", "EnforceNotMet"]
__all__ += ["Place", "VarDesc", "VarType"]
__all__ += ["get_cuda_device_count", "globals", "is_compiled_with_brpc", "is_compiled_with_cuda"]
__all__ += ["is_compiled_with_dist", "is_compiled_with_mkldnn", *_LATER]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        room, there = _LATER[name]
        return getattr(importlib.import_module(f"psrt.fluid.{room}"), there)
    raise missing("fluid.core", name, __all__)
