"""Numbers of 16 and 8 bits. In reading order:

half_bits  float16 conversions by integer arithmetic, for x86 processors without F16C
halves     kernels from and to float16, bfloat16 and int8
narrow     float32 arrays as narrower tensors for the wire, and back
"""

from psrt.kernels.precision import halves
from psrt.kernels.precision.halves import bf16_of, f16_of, f32_of_bf16, f32_of_f16
from psrt.kernels.precision.narrow import Narrow, narrow, precision_of, scales_of, widen, widened

__all__ = ["Narrow", "narrow", "precision_of", "scales_of", "widen", "widened"]
__all__ += ["bf16_of", "f16_of", "f32_of_bf16", "f32_of_f16", "halves"]
