"""running: files in reading order.

scope         Scopes by Fluid's names: arrays by var name, and what is at work over them
values        What goes into a run and comes out of it, in the forms of Fluid
runs          What runs a program over a scope: psrt's executors, made when they are first
              needed
ending        How a script ended: what the interpreter tells of it to those who are called at
              its exit
connection    A trainer's way to its pservers: one `ConnectedExecutor` for each transpiled
              program
watching      `debug=True` of `train_from_dataset`: what ops took, the share of reading,
              examples a second
saved_vars    Values of vars as array files: in a directory one `.npy` for each, or one `.npz`
              of all
saved_models  Models to predict with, in the form of `psrt.save_inference_model`
"""

from __future__ import annotations

from psrt.fluid.running.connection import connected, disconnect
from psrt.fluid.running.runs import LocalRun, ReplicatedRun, Run, initialise, sequential
from psrt.fluid.running.saved_models import load_inference_model, save_inference_model
from psrt.fluid.running.saved_vars import (
    is_parameter,
    is_persistable,
    load_params,
    load_persistables,
    load_vars,
    save_params,
    save_persistables,
    save_vars,
)
from psrt.fluid.running.scope import FluidScope, Scope, chosen, global_scope, scope_guard
from psrt.fluid.running.values import (
    Batch,
    Feed,
    Fetch,
    create_lod_tensor,
    feed_of,
    names_of,
    returned,
)
from psrt.fluid.running.watching import run_watched

__all__ = [
    "Batch",
    "Feed",
    "Fetch",
    "FluidScope",
    "LocalRun",
    "ReplicatedRun",
    "Run",
    "Scope",
    "chosen",
    "connected",
    "create_lod_tensor",
    "disconnect",
    "feed_of",
    "global_scope",
    "initialise",
    "is_parameter",
    "is_persistable",
    "load_inference_model",
    "load_params",
    "load_persistables",
    "load_vars",
    "names_of",
    "returned",
    "run_watched",
    "save_inference_model",
    "save_params",
    "save_persistables",
    "save_vars",
    "scope_guard",
    "sequential",
]
