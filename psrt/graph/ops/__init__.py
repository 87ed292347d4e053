"""Op types by family; importing this package fills the table `OPS`.

First table (the type of an op, inference of shapes) and slots; then by family: values · dense ·
elementwise · lookups · interactions · losses · ranking · sampling · metrics · math ·
norms · reductions · shapes · sequence · repeating · tagging · images · random ·
clip_and_decay · updates.
"""

from __future__ import annotations

from psrt.graph.ops import (  # noqa: F401 (each fills the table)
    clip_and_decay,
    dense,
    elementwise,
    images,
    interactions,
    lookups,
    losses,
    math,
    metrics,
    norms,
    random,
    ranking,
    reductions,
    repeating,
    sampling,
    sequence,
    shapes,
    tagging,
    updates,
    values,
)
from psrt.graph.ops.dense import FUSED_ACTIVATIONS
from psrt.graph.ops.elementwise import aligned
from psrt.graph.ops.math import BY_NAME
from psrt.graph.ops.repeating import array_axis, array_shape, body_as_lines, body_as_text
from psrt.graph.ops.table import (
    ANY,
    OPS,
    OWN,
    ROWS,
    ArgumentSlot,
    Mismatch,
    OpCall,
    OpDef,
    TensorType,
    slots,
)
from psrt.graph.ops.values import DTYPES

__all__ = ["ANY", "BY_NAME", "DTYPES", "FUSED_ACTIVATIONS", "OPS", "OWN", "ROWS", "ArgumentSlot"]
__all__ += ["Mismatch", "OpCall", "OpDef", "TensorType", "aligned", "slots"]
__all__ += ["array_axis", "array_shape", "body_as_lines", "body_as_text"]
