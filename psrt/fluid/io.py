"""`fluid.io`: values of vars, models to predict with, readers and data loaders."""

from __future__ import annotations

from psrt.data.python import (
    ComposeNotAligned,
    batch,
    buffered,
    cache,
    chain,
    compose,
    firstn,
    map_readers,
    shuffle,
    xmap_readers,
)
from psrt.fluid.names import missing
from psrt.fluid.reader import DataLoader, PyReader
from psrt.fluid.running import (
    is_parameter,
    is_persistable,
    load_inference_model,
    load_params,
    load_persistables,
    load_vars,
    save_inference_model,
    save_params,
    save_persistables,
    save_vars,
)

_INSTEAD = {
    "save": "Use save_persistables, or save_inference_model.",
    "load": "Use load_persistables, or load_inference_model.",
}

__all__ = ["ComposeNotAligned", "DataLoader", "PyReader", "batch", "buffered", "cache", "chain"]
__all__ += ["compose", "firstn", "is_parameter", "is_persistable", "load_inference_model"]
__all__ += ["load_params", "load_persistables", "load_vars", "map_readers", "save_inference_model"]
__all__ += ["save_params", "save_persistables", "save_vars", "shuffle", "xmap_readers"]


def __getattr__(name: str) -> object:
    raise missing("fluid.io", name, __all__, _INSTEAD)
