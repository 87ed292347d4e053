"""registry: files in reading order.

recorded_steps  steps that append to a command list, and lists of steps run in order
table           the table of computations: op type → how an op of that type becomes a step
strided_rows    rows with a stride: gradients are often some columns of wider ones
"""

from psrt.executor.compute.registry.recorded_steps import RecordedStep, Step, StepSequence
from psrt.executor.compute.registry.strided_rows import (
    are_strided,
    flat_groups,
    flat_rows,
    reshape_strided,
)
from psrt.executor.compute.registry.table import (
    ALIASING,
    COMPUTE,
    SHAPES_ONLY,
    Bound,
    Compute,
    computes,
)

__all__ = ["ALIASING", "COMPUTE", "SHAPES_ONLY", "Bound", "Compute", "computes"]
__all__ += ["RecordedStep", "Step", "StepSequence"]
__all__ += ["are_strided", "flat_groups", "flat_rows", "reshape_strided"]
