"""`fluid.layers`: every layer of psrt under Fluid's name and arguments.

Most are made from `layer_table`; layers that need more than other names are in `written_layers`,
schedules in `learning_rates`. A name psrt does not have raises an `AttributeError` that names a
substitute. Errors are those of `psrt.layers`.
"""

from __future__ import annotations

import inspect
from typing import Any

from psrt.fluid.adapting import (
    ALIKE,
    INSTEAD,
    OWN,
    SIGNATURES,
    Layer,
    adapted,
    bare,
    learning_rates,
    signature_like,
    signatures,
    written_layers,
)
from psrt.fluid.names import missing
from psrt.graph import layers as psrt_layers


def _layers() -> dict[str, Layer]:
    found = dict(signatures(SIGNATURES))
    for name in (ALIKE + OWN).split():
        found[name] = signature_like(getattr(psrt_layers, name))
    made = {name: adapted(name, like, getattr(psrt_layers, name)) for name, like in found.items()}
    for room in (written_layers, learning_rates):
        made |= {name: getattr(room, name) for name in room.__all__}
    return dict(sorted(made.items()))


LAYERS = _layers()

__all__ = list(LAYERS)


def __getattr__(name: str) -> Any:
    if name in LAYERS:
        return LAYERS[name]
    raise missing("fluid.layers", name, LAYERS, INSTEAD)


def __dir__() -> list[str]:
    return list(LAYERS)


def signature_of(name: str) -> inspect.Signature:
    """Return a layer's signature as users call it, without notes on its arguments."""
    return bare(inspect.signature(LAYERS[name]))
