"""The CTR-DNN in Fluid's words, with the methods of the model zoo's class."""

from __future__ import annotations

import math
from typing import Any

import psrt.fluid as fluid
from benchmarks.fluid_ctr.settings import BINS, HIDDEN, SLOTS


class Clicks:
    """A dense network over one table, whose lists have one id each, and dense numbers."""

    def __init__(self, range: float) -> None:
        self._range = range

    def input_data(self, args: Any) -> list[Any]:
        """Return the vars that are fed, in the order of a line of the data."""
        dense = fluid.data("dense_input", [-1, args.dense_feature_dim], "float32")
        ids = [fluid.data(f"C{i}", [-1, 1], "int64", lod_level=1) for i in range(1, SLOTS + 1)]
        return [dense, *ids, fluid.data("label", [-1, 1], "int64")]

    def net(self, inputs: list[Any], args: Any) -> tuple[Any, Any]:
        """Return the loss, summed over a batch, and the AUC of the last batches."""
        dense, *ids, label = inputs
        table = fluid.ParamAttr(
            name="SparseFeatFactors",
            initializer=fluid.initializer.Uniform(-self._range, self._range),
        )
        size = [args.sparse_feature_dim, args.embedding_size]
        rows = [
            fluid.layers.embedding(input=slot, size=size, is_sparse=True, param_attr=table)
            for slot in ids
        ]
        layer = fluid.layers.concat([*rows, dense], axis=1)
        for width in HIDDEN:
            layer = _dense(layer, width, "relu")
        predicted = _dense(layer, 2, "softmax")
        loss = fluid.layers.reduce_sum(fluid.layers.cross_entropy(input=predicted, label=label))
        auc, _, _ = fluid.layers.auc(
            input=predicted, label=label, num_thresholds=BINS, slide_steps=20
        )
        return loss, auc


def _dense(layer: Any, width: int, act: str) -> Any:
    scale = 1 / math.sqrt(layer.shape[1])
    weights = fluid.ParamAttr(initializer=fluid.initializer.Normal(scale=scale))
    return fluid.layers.fc(input=layer, size=width, act=act, param_attr=weights)
