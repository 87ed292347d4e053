"""Products between the features of one example, in one pass over them."""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32
from psrt.kernels.jit import kernel


@kernel("const f4[:, :, ::1], f4[:, ::1], f4[:, ::1] -> void", group="op")
def pairwise_products(x: F32, sums: F32, out: F32) -> None:
    """`out` (b, d) = Σ over pairs of fields of their products = ½ ((Σ v)² − Σ v²).

    `x` is (b, fields, d); `sums` (b, d) = Σ v is kept for the gradient. Linear in the number of
    fields (Rendle 2010, "Factorization Machines", lemma 3.1).
    """
    for i in range(len(x)):
        total, result = sums[i], out[i]
        for j in range(len(total)):
            total[j] = 0.0
            result[j] = 0.0
        for field in range(x.shape[1]):
            row = x[i, field]
            for j in range(len(row)):
                total[j] += row[j]
                result[j] += row[j] * row[j]
        for j in range(len(total)):
            result[j] = np.float32(0.5) * (total[j] * total[j] - result[j])


@kernel("const f4[:, :, ::1], const f4[:, ::1], const f4[:, ::1], f4[:, :, ::1] -> void", "op")
def pairwise_products_grad(x: F32, sums: F32, grad_out: F32, grad_x: F32) -> None:
    """`grad_x` (b, fields, d) = d (Σ v − v); `grad_out` is (b, d), or (b, 1) for all columns."""
    is_total = grad_out.shape[1] == 1
    for i in range(len(x)):
        total, first = sums[i], grad_out[i, 0]
        for field in range(x.shape[1]):
            row, result = x[i, field], grad_x[i, field]
            if is_total:
                for j in range(len(row)):
                    result[j] = first * (total[j] - row[j])
            else:
                for j in range(len(row)):
                    result[j] = grad_out[i, j] * (total[j] - row[j])
