"""`fluid.contrib.layers`. In reading order:

nn         layers that were composed for speed, and rows in another order
metric_op  sums from which metrics of click rates are computed
"""

from __future__ import annotations

from typing import Any

from psrt.fluid.contrib.layers.metric_op import ctr_metric_bundle
from psrt.fluid.contrib.layers.nn import fused_embedding_seq_pool, shuffle_batch
from psrt.fluid.names import missing, refusing_class

__all__ = ["ctr_metric_bundle", "fused_embedding_seq_pool", "shuffle_batch"]

_STEPS_FIRST = ("BasicGRUUnit", "BasicLSTMUnit", "basic_gru", "basic_lstm")
"""Names that can be imported, and raise `ConfigError` when used."""


def __getattr__(name: str) -> Any:
    if name in _STEPS_FIRST:
        hint = "Use layers.StaticRNN, layers.dynamic_lstm or layers.dynamic_gru."
        return refusing_class("fluid.contrib.layers", name, "vars with the steps first", hint)
    raise missing("fluid.contrib.layers", name, __all__)
