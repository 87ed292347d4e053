"""`fluid.contrib`, as far as programs for CPUs used it. In reading order:

layers  layers that were composed for speed
reader  the mini-batches of one trainer
"""

from __future__ import annotations

from typing import Any

from psrt.fluid.contrib import layers, reader
from psrt.fluid.contrib.layers import fused_embedding_seq_pool
from psrt.fluid.names import missing

__all__ = ["fused_embedding_seq_pool", "layers", "reader"]


def __getattr__(name: str) -> Any:
    raise missing("fluid.contrib", name, __all__)
