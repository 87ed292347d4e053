"""`fluid.layers`: every layer of psrt under Fluid's name and arguments.

Most are made from `layer_table`; layers that need more than other names are in `written_layers`,
schedules in `learning_rates`. A name psrt does not have raises an `AttributeError` that names a
substitute. Errors are those of `psrt.layers`.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

from psrt.fluid.adapting import (
    ALIKE,
    INSTEAD,
    OWN,
    SIGNATURES,
    Layer,
    adapted,
    arrays,
    bare,
    beams,
    branches,
    composed,
    constants,
    learning_rates,
    loops,
    nested,
    readers,
    signature_like,
    signatures,
    tagging,
    tensors,
    whiles,
    written_layers,
)
from psrt.fluid.names import Variable as Variable  # programs import it from `layers.tensor`
from psrt.fluid.names import cpu_places as get_places  # noqa: F401 (that of `layers.device`)
from psrt.fluid.names import missing
from psrt.graph import layers as psrt_layers


def _layers() -> dict[str, Layer]:
    found = dict(signatures(SIGNATURES))
    for name in (ALIKE + OWN).split():
        found[name] = signature_like(getattr(psrt_layers, name))
    made = {name: adapted(name, like, getattr(psrt_layers, name)) for name, like in found.items()}
    for room in (
        written_layers,
        nested,
        tensors,
        branches,
        loops,
        whiles,
        arrays,
        beams,
        tagging,
        *composed.ROOMS,
        constants,
        readers,
        learning_rates,
    ):
        made |= {name: getattr(room, name) for name in room.__all__}
    return dict(sorted(made.items()))


LAYERS = _layers()

_decay_step_counter = learning_rates.decay_step_counter  # schedules of others begin with it

_PATHS = (
    *("control_flow", "device", "io", "learning_rate_scheduler", "loss", "metric_op", "nn", "ops"),
    *("rnn", "sequence_lod", "tensor"),
)
"""PaddlePaddle's modules of layers, all of which are this one."""

__path__: list[str] = []  # `import paddle.fluid.layers.nn` asks for a package

sys.modules.update((f"{__name__}.{path}", sys.modules[__name__]) for path in _PATHS)

__all__ = list(LAYERS)


def __getattr__(name: str) -> Any:
    if name in LAYERS:
        return LAYERS[name]
    if name in _PATHS:
        return sys.modules[__name__]
    raise missing("fluid.layers", name, LAYERS, INSTEAD)


def __dir__() -> list[str]:
    return list(LAYERS)


def signature_of(name: str) -> inspect.Signature:
    """Return a layer's signature as users call it, without notes on its arguments."""
    return bare(inspect.signature(LAYERS[name]))
