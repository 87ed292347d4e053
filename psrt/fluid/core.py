"""Names of Fluid's C++ core that users import."""

from __future__ import annotations

import importlib
from collections.abc import MutableMapping
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

from psrt.fluid.names import CPUPlace, CUDAPinnedPlace, CUDAPlace, flags, missing

_LATER = {
    "Dataset": ("dataset", "CoreDataset"),
    "LoDTensor": ("running", "LoDTensor"),
    "Scope": ("running", "FluidScope"),
    "Tensor": ("running", "LoDTensor"),
}
"""Name → its room and its name there, loaded on first use."""

_INSTEAD = {
    "AnalysisConfig": "Predict with fluid.io.load_inference_model, or `psrt predict`.",
    "NativeConfig": "Predict with fluid.io.load_inference_model, or `psrt predict`.",
    "PaddleBuf": "Predict with fluid.io.load_inference_model, or `psrt predict`.",
    "PaddleTensor": "Predict with fluid.io.load_inference_model, or `psrt predict`.",
    "create_paddle_predictor": "Predict with fluid.io.load_inference_model, or `psrt predict`.",
}


class EOFException(Exception):
    """Raised at the end of the data of a loader that feeds runs."""


class VarType(IntEnum):
    """Types of vars and their elements, by Fluid's numbers."""

    BOOL = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    FP16 = 4
    FP32 = 5
    FP64 = 6
    LOD_TENSOR = 7
    SELECTED_ROWS = 8
    STEP_SCOPES = 11
    LOD_TENSOR_ARRAY = 13
    READER = 15
    RAW = 17
    UINT8 = 20
    INT8 = 21


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


def globals() -> MutableMapping[str, Any]:
    """Return the flags of this process, `FLAGS_…`, which may be set; psrt reads none of them."""
    return flags.values


__all__ = ["CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "EOFException", "VarDesc", "VarType"]
__all__ += ["get_cuda_device_count", "globals", "is_compiled_with_brpc", "is_compiled_with_cuda"]
__all__ += ["is_compiled_with_dist", "is_compiled_with_mkldnn", *_LATER]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        room, there = _LATER[name]
        return getattr(importlib.import_module(f"psrt.fluid.{room}"), there)
    raise missing("fluid.core", name, __all__, _INSTEAD)
