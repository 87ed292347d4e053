"""The layers that one turn or step is made of, while they are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from psrt.graph.builder import Layer
from psrt.graph.program import Op

_KEPT = ("state", "parameter")


class RepeatedLayers:
    """Layers between `begin` and `_taken`; they leave the program for the op that repeats them."""

    def __init__(self, kind: str) -> None:
        self._layer = Layer(kind)
        self._begin = 0

    def begin(self) -> None:
        """Begin the turn, or the step: layers called from here on belong to it."""
        self._begin = len(self._layer.program.ops)

    def layers(self) -> list[Op]:
        """Return the ops since `begin`."""
        return self._layer.program.ops[self._begin :]

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Let the layers of the block compute before all turns, once."""
        ops = self._layer.program.ops
        inside = self._taken()
        yield
        self._begin = len(ops)
        ops += inside

    def _check_op(self, op: Op, where: str) -> None:
        """Raise for an op that repetition would get wrong: it reads a table, or keeps values."""
        vars = self._layer.program.vars
        if "table" in op.inputs or any(vars[name].kind in _KEPT for name in op.writes()):
            raise self._layer.error(
                f"{op} is in the {where}",
                "Look up rows, and keep metrics and the statistics of batch_norm, outside of it.",
            )

    def _taken(self) -> list[Op]:
        """Take the layers out of the program."""
        ops = self._layer.program.ops
        taken = ops[self._begin :]
        del ops[self._begin :]
        return taken


__all__ = ["RepeatedLayers"]
