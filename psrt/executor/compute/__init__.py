"""Computations by family, in the families of `psrt.graph.ops`; importing fills `COMPUTE`.

First registry (op type to step), lengths (offsets of ragged vars), parts (pieces of large arrays)
and updates (optimizer ops in local training); then by family: dense · elementwise · lookups ·
pooling · padding · interactions · losses · metrics · math · norms ·
reductions · shapes · sequence · recurrences · repeating · images · random ·
values · printing · clip_and_decay.
"""

from psrt.executor.compute import (
    clip_and_decay,
    dense,
    elementwise,
    images,
    interactions,
    lookups,
    math,
    metrics,
    norms,
    padding,
    pooling,
    printing,
    random,
    recurrences,
    reductions,
    repeating,
    sequence,
    shapes,
    values,
)
from psrt.executor.compute.lengths import checked
from psrt.executor.compute.losses import class_losses, losses, ranking, sampled_losses, sampling
from psrt.executor.compute.parts import SMALL, part_of
from psrt.executor.compute.recurrences import RecurrentStep, steps_of
from psrt.executor.compute.registry import (
    ALIASING,
    COMPUTE,
    SHAPES_ONLY,
    Bound,
    Compute,
    RecordedStep,
    Step,
    StepSequence,
    computes,
)
from psrt.executor.compute.sequence import offsets_of
from psrt.executor.compute.updates import (
    DenseUpdate,
    LocalRowUpdate,
    Update,
    go_on,
    in_sequence,
    make_update,
)

__all__ = ["ALIASING", "COMPUTE", "SHAPES_ONLY", "Bound", "Compute", "RecordedStep", "Step"]
__all__ += [
    "SMALL",
    "DenseUpdate",
    "LocalRowUpdate",
    "StepSequence",
    "Update",
    "computes",
    "go_on",
    "in_sequence",
    "make_update",
    "part_of",
]
__all__ += ["checked", "class_losses", "losses", "ranking", "sampled_losses", "sampling"]
__all__ += ["clip_and_decay", "dense", "elementwise", "images", "interactions", "lookups", "math"]
__all__ += [
    "metrics",
    "norms",
    "padding",
    "pooling",
    "printing",
    "random",
    "recurrences",
    "reductions",
    "sequence",
    "shapes",
]
__all__ += ["RecurrentStep", "offsets_of", "repeating", "steps_of", "values"]
