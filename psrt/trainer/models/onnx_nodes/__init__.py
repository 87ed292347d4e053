"""Exporters by family of ops; importing this package fills the table `EXPORTS`.

First table (ONNX graph and nodes), then initial_rows (rows that were never trained) and ragged (ids
of examples of any length), then by family:
dense · elementwise · lookups · interactions · math · reductions · shapes · images · values.
"""

from psrt.trainer.models.onnx_nodes import (
    dense,
    elementwise,
    images,
    interactions,
    lookups,
    math,
    reductions,
    shapes,
    values,
)
from psrt.trainer.models.onnx_nodes.ragged import offsets_of
from psrt.trainer.models.onnx_nodes.table import (
    EXPORTS,
    ML_DOMAIN,
    ML_OPSET,
    OPSET,
    Drawing,
    OnnxGraph,
    OnnxNode,
    Vocabulary,
    refusal,
)

__all__ = ["EXPORTS", "ML_DOMAIN", "ML_OPSET", "OPSET", "Drawing", "OnnxGraph", "OnnxNode"]
__all__ += ["Vocabulary", "dense", "elementwise", "images"]
__all__ += ["interactions", "lookups", "math", "offsets_of", "reductions", "refusal", "shapes"]
__all__ += ["values"]
