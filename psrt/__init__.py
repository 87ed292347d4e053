"""psrt: a parameter-server runtime for CPU clusters.

Trainers run a program, a communicator moves gradients up and parameters down, pservers hold tables
and apply optimizer kernels.
"""

# Layout: a package imports only packages with lower numbers.
#   0  core           errors, specs, tensors, clock, metrics: shared by all rooms
#   1  config         settings from TOML, environment and flags
#      kernels        numba loops
#      graph          programs as data: layers, backward, optimizers
#   2  data           files to batches
#      rpc            frames and the carriers that move them
#      executor       runs programs
#      partition      which block and which rows live on which pserver
#   3  pserver        tables, rounds, the daemon
#      communicator   gradients up, parameters down
#      launch         a cluster of local processes
#   4  trainer        the training loop of a job over all of these
#   5  fluid          PaddlePaddle Fluid's names for all of these
#      cli            the `psrt` command
# This file exports the public names; importing it loads core and graph only. Executors, Scope,
# datasets, the transpiler and saved models import numba and are loaded on first use.

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from psrt.core.process import shorten_uncaught
from psrt.core.specs import WarmRule, WarmStart
from psrt.core.tensors import Ragged, SelectedRows
from psrt.graph import clip, initializer, layers, optimizer, regularizer, tables
from psrt.graph.builder import Param, program
from psrt.graph.model import Model
from psrt.graph.names import unknown_name
from psrt.graph.program import Program

if TYPE_CHECKING:
    from psrt import checkpoint, reader
    from psrt.config.init import init
    from psrt.data.datasets import InMemoryDataset, QueueDataset
    from psrt.data.hashing import hash_ids
    from psrt.data.python import DataGenerator, MultiSlotDataGenerator, MultiSlotStringDataGenerator
    from psrt.executor import BuildStrategy, ExecutionStrategy, Executor, ParallelExecutor, Scope
    from psrt.partition.transpiler import DistributeTranspiler
    from psrt.partition.transpiler_config import DistributeTranspilerConfig
    from psrt.pserver.process import serve
    from psrt.trainer.fitting import LocalExecutor, fit
    from psrt.trainer.models import load_inference_model, save_inference_model
    from psrt.trainer.training import ConnectedExecutor

__version__ = "0.1.0"

__all__ = ["BuildStrategy", "ConnectedExecutor", "DataGenerator", "DistributeTranspiler"]
__all__ += ["DistributeTranspilerConfig", "ExecutionStrategy", "Executor", "InMemoryDataset"]
__all__ += [
    "LocalExecutor",
    "Model",
    "MultiSlotDataGenerator",
    "MultiSlotStringDataGenerator",
    "ParallelExecutor",
]
__all__ += ["Param", "Program", "QueueDataset", "Ragged", "Scope", "SelectedRows", "WarmRule"]
__all__ += ["WarmStart", "__version__"]
__all__ += [
    "checkpoint",
    "clip",
    "fit",
    "hash_ids",
    "init",
    "initializer",
    "layers",
    "load_inference_model",
]
__all__ += ["optimizer", "program", "reader", "regularizer", "save_inference_model", "serve"]
__all__ += ["tables"]

_MODULE_OF = {
    "BuildStrategy": "psrt.executor",
    "ConnectedExecutor": "psrt.trainer.training.connected",
    "DataGenerator": "psrt.data.python.generator",
    "DistributeTranspiler": "psrt.partition.transpiler",
    "DistributeTranspilerConfig": "psrt.partition.transpiler_config",
    "ExecutionStrategy": "psrt.executor",
    "Executor": "psrt.executor",
    "MultiSlotDataGenerator": "psrt.data.python.generator",
    "MultiSlotStringDataGenerator": "psrt.data.python.generator",
    "InMemoryDataset": "psrt.data.datasets",
    "LocalExecutor": "psrt.trainer.fitting.local_executor",
    "ParallelExecutor": "psrt.executor",
    "QueueDataset": "psrt.data.datasets",
    "Scope": "psrt.executor",
    "fit": "psrt.trainer.fitting.one_call",
    "hash_ids": "psrt.data.hashing",
    "init": "psrt.config.init",
    "load_inference_model": "psrt.trainer.models.inference",
    "save_inference_model": "psrt.trainer.models.inference",
    "serve": "psrt.pserver.process.in_process",
}


def _is_debugging() -> bool:
    from psrt.config.load import is_debugging

    return is_debugging()


shorten_uncaught(_is_debugging)


def __getattr__(name: str) -> Any:
    if name in ("checkpoint", "reader"):
        return importlib.import_module(f"psrt.{name}")
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    if name.startswith("__"):
        raise AttributeError(name)
    raise unknown_name("psrt", "name", name, __all__)
