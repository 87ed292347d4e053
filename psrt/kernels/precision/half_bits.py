"""float16 conversions by integer arithmetic, for x86 processors without F16C; equal bits.

Kept although numpy converts on every processor: kernels convert single numbers inside loops over
rows, where numpy cannot be called, and LLVM's own conversion ends the process there (without F16C
it calls C functions that numba does not link). After Giesen's `float_to_half_fast3_rtne` and
`half_to_float` (fgiesen.wordpress.com, 2012).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.kernels.jit import device

_INF = np.uint32(0x7F800000)
_LEAST_NORMAL = np.uint32(0x38800000)  # 2⁻¹⁴
_HALF = np.float32(0.5)  # its last place is the smallest float16 there is
_HALF_BITS = np.uint32(0x3F000000)
_ROUND = np.uint32(0xC8000FFF)  # another bias of the exponent, and all but half of the last place
_BIAS = np.float32(2.0**112)


@device
def truncated(x: Any) -> Any:
    """The bits of the float16 nearest to float32 `x`, ties to even; `x` does not overflow."""
    bits = np.float32(x).view(np.uint32)
    magnitude = np.uint32(bits & np.uint32(0x7FFFFFFF))
    sign = np.uint32((bits >> np.uint32(16)) & np.uint32(0x8000))
    if magnitude >= _INF:
        half = np.uint32(0x7E00) if magnitude > _INF else np.uint32(0x7C00)
    elif magnitude < _LEAST_NORMAL:
        aligned = np.float32(magnitude.view(np.float32) + _HALF)
        half = np.uint32(aligned.view(np.uint32) - _HALF_BITS)
    else:
        odd = np.uint32((magnitude >> np.uint32(13)) & np.uint32(1))
        half = np.uint32(np.uint32(magnitude + _ROUND + odd) >> np.uint32(13))
    return np.uint16(sign | half)


@device
def extended(bits: Any) -> Any:
    """The float32 of these bits of a float16."""
    magnitude = np.uint32(np.uint32(bits & np.uint16(0x7FFF)) << np.uint32(13))
    sign = np.uint32(np.uint32(bits & np.uint16(0x8000)) << np.uint32(16))
    if magnitude >= np.uint32(0x7C00 << 13):
        number = np.uint32(magnitude | _INF)
    else:
        number = np.float32(magnitude.view(np.float32) * _BIAS).view(np.uint32)
    return np.uint32(number | sign).view(np.float32)
