"""Values that each step prints."""

from __future__ import annotations

from psrt.fluid.adapting.composed.calls import called
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers


def Print(
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_layout: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """Return a copy of `input`, which each step prints on standard output, as its gradient.

    `first_n` is in how many steps, `summarize` the number of elements shown, -1 for all of both.
    `print_phase` is forward, backward or both; a gradient is that of the result.
    """
    parts = {
        "name": print_tensor_name,
        "message": True,
        "lod": print_tensor_lod,
        "place": True,
        "shape": print_tensor_shape,
        "layout": print_tensor_layout,
        "dtype": print_tensor_type,
    }
    shown = [part for part, is_on in parts.items() if is_on]
    options = (message or "", first_n or -1, summarize, input.name, shown, print_phase.lower())
    return called(psrt_layers.print_value, input, *options)


__all__ = ["Print"]
