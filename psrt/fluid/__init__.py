"""PaddlePaddle Fluid's API by its own names: `import psrt.fluid as fluid`.

A thin facade: programs, layers and optimizers are those of `psrt.graph`, runs those of
`psrt.executor`, clusters those of `psrt.partition` and `psrt.trainer`. Names of Fluid that psrt
does not have raise errors that name a substitute; docs/reference/fluid.md lists them all. A class
that shares its name with one of psrt's is called `Fluid…` here, with Fluid's name as an alias. In
reading order:

    names            missing · unique_name · variable · places, in a sub-room; core
    programs         block · framework
    declarations     parameters: what a layer is told about one · updates: clips, optimizers
                     and gradients
    layers           adapting (psrt's layers under Fluid's signatures) · layers · layer_helper
                     nets
    files            formats: PaddlePaddle's own files
    running          scopes, values, runs and saved files, in a sub-room; default_scope_funcs
                     compiler · feeding: batches for runs · parallel_executor · executor
                     profiler · log_helper · dygraph op (refuse)
    clusters         transpiler · communicator
    data and files   io · metrics · average
    fleet            incubate · distributed
    contrib          layers and readers of `fluid.contrib`
    other programs   paddle: psrt in PaddlePaddle's place · __main__

PaddlePaddle's paths of modules that lie in sub-rooms, such as `fluid.clip`, are second paths of
them. Importing it loads no kernels; modules that run programs are loaded on first use.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from psrt.fluid import core, framework, layers
from psrt.fluid.adapting import input_data as data
from psrt.fluid.adapting import lookup as embedding
from psrt.fluid.adapting import one_hot_behind as one_hot
from psrt.fluid.core import is_compiled_with_cuda
from psrt.fluid.framework import (
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    in_dygraph_mode,
    name_scope,
    program_guard,
)
from psrt.fluid.names import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    ModulePaths,
    cpu_places,
    cuda_places,
    get_flags,
    missing,
    require_version,
    set_flags,
    unique_name,
)
from psrt.fluid.parameters import ParamAttr, entry_attr, initializer, regularizer
from psrt.fluid.updates import backward, clip, gradients, optimizer

_PATHS = {
    f"{__name__}.{path}": f"{__name__}.{room}.{path}"
    for room, paths in {
        "feeding": ("data_feeder", "dataset", "reader"),
        "names": ("unique_name",),
        "parameters": ("entry_attr", "initializer", "param_attr", "regularizer"),
        "running": ("lod_tensor",),
        "updates": ("backward", "clip", "optimizer"),
    }.items()
    for path in paths
}
"""Paths of modules in sub-rooms that PaddlePaddle has a level higher, as `fluid.clip`."""

sys.meta_path.insert(0, ModulePaths(_PATHS))

_LATER = {
    "BuildStrategy": "compiler",
    "CompiledProgram": "compiler",
    "DataFeeder": "feeding",
    "DatasetFactory": "feeding",
    "InMemoryDataset": "feeding",
    "QueueDataset": "feeding",
    "DistributeTranspiler": "transpiler",
    "DistributeTranspilerConfig": "transpiler",
    "ExecutionStrategy": "compiler",
    "Executor": "executor",
    "ParallelExecutor": "parallel_executor",
    "Scope": "running",
    "LoDTensor": "running",
    "LoDTensorArray": "running",
    "Tensor": "running",
    "create_lod_tensor": "running",
    "create_random_int_lodtensor": "running",
    "global_scope": "running",
    "install_as_paddle": "paddle",
    "load": "running",
    "load_program_state": "running",
    "save": "running",
    "set_program_state": "running",
    "memory_optimize": "transpiler",
    "release_memory": "transpiler",
    "scope_guard": "running",
}
"""Name → its file, loaded on first use."""

_ROOMS = (
    "average",
    "communicator",
    "compiler",
    "contrib",
    "data_feeder",
    "dataset",
    "default_scope_funcs",
    "distributed",
    "dygraph",
    "executor",
    "incubate",
    "io",
    "layer_helper",
    "lod_tensor",
    "metrics",
    "nets",
    "op",
    "parallel_executor",
    "profiler",
    "reader",
    "transpiler",
)
"""Files and packages that users name: `fluid.io`, `fluid.compiler`."""

_INSTEAD = {
    "install_check": "`psrt version` prints what is installed.",
    "WeightNormParamAttr": "Use layers.l2_normalize over a layers.create_parameter.",
    "cuda_pinned_places": "psrt computes on CPUs: fluid.cpu_places().",
}

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "ParamAttr",
    "Program",
    "Variable",
    "backward",
    "clip",
    "core",
    "cpu_places",
    "cuda_places",
    "data",
    "default_main_program",
    "default_startup_program",
    "embedding",
    "entry_attr",
    "framework",
    "get_flags",
    "gradients",
    "in_dygraph_mode",
    "initializer",
    "is_compiled_with_cuda",
    "layers",
    "name_scope",
    "one_hot",
    "optimizer",
    "program_guard",
    "regularizer",
    "require_version",
    "set_flags",
    "unique_name",
    *_LATER,
    *_ROOMS,
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"psrt.fluid.{_LATER[name]}"), name)
    if name in _ROOMS or f"{__name__}.{name}" in _PATHS:
        return importlib.import_module(f"psrt.fluid.{name}")
    raise missing("fluid", name, __all__, _INSTEAD)
