"""precision: files in reading order.

half_bits  float16 for a processor that cannot convert it: the same bits, by whole numbers
halves     Numbers of 16 and 8 bits, as rows are stored and tensors travel; psrt computes in
           float32
narrow     float32 arrays as the tensors that travel in their place, and back
"""

from __future__ import annotations

from psrt.kernels.precision import halves
from psrt.kernels.precision.halves import bf16_of, f16_of, f32_of_bf16, f32_of_f16
from psrt.kernels.precision.narrow import Narrow, narrow, precision_of, scales_of, widen, widened

__all__ = [
    "Narrow",
    "bf16_of",
    "f16_of",
    "f32_of_bf16",
    "f32_of_f16",
    "halves",
    "narrow",
    "precision_of",
    "scales_of",
    "widen",
    "widened",
]
