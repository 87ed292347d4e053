"""What narrow gradients have lost: kept on the trainer and added to the next one (error feedback).

Source: Seide, Fu, Droppo, Li, Yu, "1-bit stochastic gradient descent and its application to
data-parallel distributed training of speech DNNs", Interspeech 2014. So the sum of what pservers
get differs from the sum of the gradients by what the last one has lost, however many there were.

For dense parameters only, one more array for each that travels narrow: what was lost of the rows of
a table would in the end be another table. Any thread may push; a parameter's pushes take turns.
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
class _Lost:
    values: F32
    turn: threading.Lock = field(default_factory=threading.Lock)


class Residuals:
    def __init__(self) -> None:
        self._lost: dict[str, _Lost] = {}
        self._adding = threading.Lock()

    def narrowed(
        self, name: str, gradient: F32, blocks: list[DenseTableSpec], precision: str
    ) -> list[Narrow]:
        """`gradient` (elements,) of parameter `name` and what was lost before, block by block."""
        lost = self._of(name, gradient.size, precision)
        if lost is None:
            return [Narrow((block,)) for block in _cut(gradient, blocks)]
        with lost.turn:
            elementwise.add_(lost.values, gradient)
            return [_taken(block, precision) for block in _cut(lost.values, blocks)]

    def _of(self, name: str, size: int, precision: str) -> _Lost | None:
        """None where nothing is lost and nothing ever was."""
        if precision == "float32":
            return self._lost.get(name)
        with self._adding:
            return self._lost.setdefault(name, _Lost(np.zeros(size, np.float32)))


def _cut(flat: F32, blocks: list[DenseTableSpec]) -> list[F32]:
    return [flat[block.offset : block.offset + block.size] for block in blocks]


def _taken(total: F32, precision: str) -> Narrow:
    """`total` in `precision`; what that loses is all that stays in it.

    Of an inf or a NaN, which has been sent, nothing is left: it would be in every later gradient.
    """
    made = narrow(total.copy() if precision == "float32" else total, precision, small=True)
    halves.keep_lost_(total, widened(made.tensors, made.factor))
    return made
