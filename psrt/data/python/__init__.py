"""Users' generators and reader decorators: files in reading order.

generator   Users' own preprocessing: their lines in, MultiSlot text out
decorators  Reader decorators: from readers to readers, one example after the other
read_ahead  Reader decorators with threads: `buffered` and `xmap_readers`
processes   Reader decorator with processes: `multiprocess_reader`

Decorators with threads or processes are loaded on first use: a generator, which a dataset starts
for every file, needs no kernels.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from psrt.data.python.decorators import (
    ComposeNotAligned,
    Reader,
    batch,
    cache,
    chain,
    compose,
    firstn,
    map_readers,
    shuffle,
)
from psrt.data.python.generator import (
    DataGenerator,
    MultiSlotDataGenerator,
    MultiSlotStringDataGenerator,
)

if TYPE_CHECKING:
    from psrt.data.python.processes import ReaderProcessError, multiprocess_reader
    from psrt.data.python.read_ahead import buffered, xmap_readers

_LATER = {
    "ReaderProcessError": "processes",
    "buffered": "read_ahead",
    "multiprocess_reader": "processes",
    "xmap_readers": "read_ahead",
}

__all__ = ["ComposeNotAligned", "DataGenerator", "MultiSlotDataGenerator"]
__all__ += ["MultiSlotStringDataGenerator", "Reader", "batch", "buffered", "cache", "chain"]
__all__ += ["compose", "firstn", "map_readers", "multiprocess_reader", "shuffle"]
__all__ += ["ReaderProcessError", "xmap_readers"]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__} has no attribute {name}", name=name)
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
