"""`fluid.contrib.layers`. In reading order:

nn         layers that were composed for speed, and rows in another order
metric_op  sums from which metrics of click rates are computed
"""

from __future__ import annotations

from typing import Any

from psrt.fluid.contrib.layers.metric_op import ctr_metric_bundle
from psrt.fluid.contrib.layers.nn import fused_embedding_seq_pool, shuffle_batch
from psrt.fluid.names import missing

__all__ = ["ctr_metric_bundle", "fused_embedding_seq_pool", "shuffle_batch"]


def __getattr__(name: str) -> Any:
    raise missing("fluid.contrib.layers", name, __all__)
