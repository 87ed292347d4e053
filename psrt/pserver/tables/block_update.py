"""Updates of a dense block: the gradient is prepared, then the optimizer's formula is applied.

A gradient that takes several passes (mean of a round, delay compensation, decay) is processed in
pieces that stay in the cache from the first pass to the last. A large block is processed in two
halves, one of them by a helper thread if one is idle. With 16 M numbers and the mean of two
trainers that takes 29 instead of 50 ms, and half of it on two idle cores. Results have the same
bits, since every pass is element by element; optimizers that take norms of a whole parameter get it
in one piece. A table calls all of this under its lock.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from psrt.core.specs import LAYER_WISE, DenseTableSpec
from psrt.core.tracing import traced
from psrt.core.types import F32
from psrt.kernels.optimizers import compensate, decay_of, elementwise, rule_of
from psrt.pserver.tables.block_values import BlockValues
from psrt.pserver.tables.helper_threads import NO_HELPERS, HelperThreads

PIECE = 1 << 16
"""Numbers of a piece: with weights, scratch and two gradients it takes 1 MiB."""

LARGE = 1 << 21
"""Numbers of a block from which a second thread pays off: it takes up to 0.1 ms to wake."""

Pieces: TypeAlias = Callable[[slice, F32, F32], F32]
"""(part, its weights, scratch of its size) → the gradient of that part, perhaps the scratch."""

Source: TypeAlias = F32 | Pieces
"""A gradient (n,) that is ready, or a function that computes pieces of it."""


def mean_of(gradients: Sequence[F32], trainers: int) -> Source:
    """The sum of `gradients`, each (n,), in their order, times 1 / `trainers`."""

    def mean(part: slice, w: F32, out: F32) -> F32:
        elementwise.copy(gradients[0][part], out)
        for gradient in gradients[1:]:
            elementwise.add_(out, gradient[part])
        elementwise.scale_(out, 1.0 / trainers)
        return out

    return gradients[0] if len(gradients) == trainers == 1 else mean


def compensated(gradient: F32, pulled: F32, strength: float) -> Source:
    """`gradient` (n,), computed on `pulled` (n,), as approximated for the present weights
    (DC-ASGD).

    `strength` is λ.
    """

    def moved(part: slice, w: F32, out: F32) -> F32:
        compensate(gradient[part], w, pulled[part], strength, out)
        return out

    return moved


class BlockUpdate:
    """Optimizer, decay, state and scratch of one block of `spec.size` numbers, n.

    `state` has the vectors of the optimizer one behind the other.
    """

    def __init__(self, spec: DenseTableSpec, helpers: HelperThreads = NO_HELPERS) -> None:
        self._helpers = helpers
        self._rule = rule_of(spec.optimizer)
        self._decay = decay_of(spec.regularizer)
        self._shape = self._rule.state_vectors, spec.size
        self.state = BlockValues(np.repeat(np.array(self._rule.first, np.float32), spec.size))
        is_whole = isinstance(spec.optimizer, LAYER_WISE)
        self._piece = spec.size if is_whole else min(spec.size, PIECE)
        ends = [0, spec.size]
        if spec.size >= LARGE and not is_whole:
            ends.insert(1, spec.size // 2)
        self._halves = [slice(*both) for both in itertools.pairwise(ends)]
        # The operating system gives memory on first write: gradients that are ready need none.
        self._scratch: list[F32] = [np.empty(self._piece, np.float32) for _ in self._halves]

    @property
    def vectors(self) -> int:
        """Vectors of optimizer state."""
        return self._shape[0]

    @property
    def nbytes(self) -> int:
        """The optimizer state."""
        return self.state.now().nbytes

    @traced("kernel")
    def __call__(self, weights: F32, source: Source, rate: float, version: int) -> None:
        """Update `weights` (n,) and state by the gradient of `source`; `version` counts updates."""
        is_ready = not callable(source) and self._decay is None
        piece = len(weights) if is_ready else self._piece
        state = self.state.to_change().reshape(self._shape)

        def move(half: slice, scratch: F32) -> None:
            for start in range(half.start, half.stop, piece):
                part = slice(start, min(start + piece, half.stop))
                w = weights[part]
                gradient = self._gradient(source, part, w, scratch)
                self._rule.update_block(w, state[:, part], gradient, rate, version)

        if len(self._halves) == 1:
            move(self._halves[0], self._scratch[0])
        else:
            each = zip(self._halves, self._scratch, strict=True)
            self._helpers.run([partial(move, *half) for half in each])

    def _gradient(self, source: Source, part: slice, w: F32, scratch: F32) -> F32:
        out = scratch[: len(w)]
        gradient = source(part, w, out) if callable(source) else source[part]
        return gradient if self._decay is None else self._decay.of_block(gradient, w, out)
