"""Error feedback: the rounding error of a narrow gradient is added to the next one.

Source: Seide, Fu, Droppo, Li, Yu, "1-bit stochastic gradient descent and its application to
data-parallel distributed training of speech DNNs", Interspeech 2014. So the sum of the pushed
gradients differs from the sum of all gradients by the rounding error of the last one only.

For dense parameters only, one more array for each that travels narrow: the residuals of the rows of
a table would grow into another table. Any thread may push; a parameter's pushes take turns.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

from psrt.core.specs import DenseTableSpec
from psrt.core.types import F32
from psrt.kernels.optimizers import elementwise
from psrt.kernels.precision import Narrow, halves, narrow, widened


@dataclass(eq=False)
class _Residual:
    values: F32
    turn: threading.Lock = field(default_factory=threading.Lock)


class Residuals:
    """The residuals of all dense parameters of a trainer."""

    def __init__(self) -> None:
        self._residuals: dict[str, _Residual] = {}
        self._adding = threading.Lock()

    def narrowed(
        self, name: str, gradient: F32, blocks: list[DenseTableSpec], precision: str
    ) -> list[Narrow]:
        """`gradient` (elements,) of parameter `name` plus its residual, narrowed block by block."""
        residual = self._of(name, gradient.size, precision)
        if residual is None:
            return [Narrow((block,)) for block in _cut(gradient, blocks)]
        with residual.turn:
            elementwise.add_(residual.values, gradient)
            return [_narrowed(block, precision) for block in _cut(residual.values, blocks)]

    def _of(self, name: str, size: int, precision: str) -> _Residual | None:
        """None for a parameter that has always travelled in float32."""
        if precision == "float32":
            return self._residuals.get(name)
        with self._adding:
            return self._residuals.setdefault(name, _Residual(np.zeros(size, np.float32)))


def _cut(flat: F32, blocks: list[DenseTableSpec]) -> list[F32]:
    return [flat[block.offset : block.offset + block.size] for block in blocks]


def _narrowed(total: F32, precision: str) -> Narrow:
    """`total` in `precision`; `total` keeps the rounding error.

    An inf or a NaN leaves no residual: it would be in every later gradient.
    """
    sent = narrow(total.copy() if precision == "float32" else total, precision, small=True)
    halves.keep_lost_(total, widened(sent.tensors, sent.factor))
    return sent
