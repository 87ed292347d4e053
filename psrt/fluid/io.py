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
    multiprocess_reader,
    shuffle,
    xmap_readers,
)
from psrt.fluid.feeding import DataLoader, PyReader
from psrt.fluid.names import missing
from psrt.fluid.running import (
    get_parameter_value,
    get_parameter_value_by_name,
    get_program_parameter,
    get_program_persistable_vars,
    is_parameter,
    is_persistable,
    load,
    load_inference_model,
    load_params,
    load_persistables,
    load_program_state,
    load_vars,
    save,
    save_inference_model,
    save_params,
    save_persistables,
    save_vars,
    set_program_state,
)

__all__ = ["ComposeNotAligned", "DataLoader", "PyReader", "batch", "buffered", "cache", "chain"]
__all__ += ["compose", "firstn", "is_parameter", "is_persistable", "load_inference_model"]
__all__ += ["load_params", "load_persistables", "load_vars", "map_readers", "multiprocess_reader"]
__all__ += ["get_parameter_value", "get_parameter_value_by_name", "get_program_persistable_vars"]
__all__ += ["get_program_parameter", "save_inference_model"]
__all__ += ["load", "load_program_state", "save", "set_program_state"]
__all__ += ["save_params", "save_persistables", "save_vars", "shuffle", "xmap_readers"]


def __getattr__(name: str) -> object:
    raise missing("fluid.io", name, __all__)
