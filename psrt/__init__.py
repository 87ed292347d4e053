"""psrt: a parameter-server runtime for CPU clusters.

Trainers run a program, a communicator moves gradients up and parameters down, pservers hold tables
and apply optimizer kernels.
"""

# Layout: a package imports only packages with lower numbers.
#   0  core           errors, specs, tensors, clock, metrics: what all rooms share
#   1  config         settings from TOML, environment and flags
#      kernels        numba loops
#      graph          programs as data: layers, backward, optimizers
#   2  data           files to batches
#      rpc            frames and the carriers that move them
#      executor       programs at work
#      partition      which block and which rows live on which pserver
#   3  pserver        tables, rounds, the daemon
#      communicator   gradients up, parameters down
#      launch         a cluster of local processes
#   4  trainer        a job's loop over all of these
#   5  cli            the `psrt` command
# This file gives the public names; importing it loads core and graph alone. Executor, Scope and
# saved models bring numba with them and are loaded when first asked for.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psrt.core.tensors import Ragged, SelectedRows
from psrt.graph import clip, initializer, layers, optimizer, regularizer
from psrt.graph.builder import Param, program
from psrt.graph.model import Model
from psrt.graph.program import Program

if TYPE_CHECKING:
    from psrt.executor import (
        BuildStrategy,
        ExecutionStrategy,
        Executor,
        ParallelExecutor,
        Scope,
    )
    from psrt.trainer.inference import load_inference_model, save_inference_model

__version__ = "0.1.0"

__all__ = [
    "BuildStrategy",
    "ExecutionStrategy",
    "Executor",
    "Model",
    "ParallelExecutor",
    "Param",
    "Program",
    "Ragged",
    "Scope",
    "SelectedRows",
    "__version__",
    "clip",
    "initializer",
    "layers",
    "load_inference_model",
    "optimizer",
    "program",
    "regularizer",
    "save_inference_model",
]

_OF_EXECUTOR = ("BuildStrategy", "ExecutionStrategy", "Executor", "ParallelExecutor", "Scope")


def __getattr__(name: str) -> Any:
    if name in _OF_EXECUTOR:
        from psrt import executor

        return getattr(executor, name)
    if name in ("load_inference_model", "save_inference_model"):
        from psrt.trainer import inference

        return getattr(inference, name)
    raise AttributeError(f"module 'psrt' has no attribute {name!r}")
