"""`fluid.contrib`, as far as programs for CPUs used it. In reading order:

layers             layers that were composed for speed, rows in another order, sums for metrics
reader             the mini-batches of one trainer
memory_usage_calc  an estimate of the memory of a step
op_frequence       counts of the ops of a program
model_stat         a table of the layers of a model
utils              files of a Hadoop file system
"""

from __future__ import annotations

from typing import Any

from psrt.fluid.contrib import layers, model_stat, reader, utils
from psrt.fluid.contrib.layers import ctr_metric_bundle, fused_embedding_seq_pool, shuffle_batch
from psrt.fluid.contrib.memory_usage_calc import memory_usage
from psrt.fluid.contrib.op_frequence import op_freq_statistic
from psrt.fluid.names import missing

__all__ = ["ctr_metric_bundle", "fused_embedding_seq_pool", "layers", "memory_usage"]
__all__ += ["model_stat", "op_freq_statistic", "reader", "shuffle_batch", "utils"]


def __getattr__(name: str) -> Any:
    raise missing("fluid.contrib", name, __all__)
