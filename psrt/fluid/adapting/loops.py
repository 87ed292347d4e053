"""Recurrences whose step is written with layers: `DynamicRNN` and `StaticRNN`.

Both are `psrt.layers.Recurrence`. Steps of a StaticRNN come first in the shapes of its inputs and
outputs, (steps, batch, …), where psrt has examples: such a var is a `StepsFirst`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.steps_first import StepsFirst
from psrt.fluid.adapting.targets import with_dimensions
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers
from psrt.graph.ops import ROWS


def transpose(x: Any, perm: Sequence[int], name: str | None = None) -> Any:
    """Reorder dimensions: dimension i of the result is `perm[i]` of `x`.

    `perm` may exchange the batch and the steps for a StaticRNN, and exchange them back; nothing
    else takes the result.
    """
    order = [*perm]
    exchanged = [1, 0, *range(2, len(order))]
    if isinstance(x, StepsFirst):
        if order != exchanged:
            raise ProgramError(
                f"layers.transpose was given perm {order} for a var whose steps come first.",
                hint=f"Exchange them back first, {exchanged}: in psrt the batch is dimension 0.",
            )
        return x.batch_first
    rows_move = order[:1] != [0] and x.var.shape[:1] == (ROWS,)
    if rows_move and order == exchanged:
        return StepsFirst(x)
    return default_main_program().call(psrt_layers.transpose, x, order, layer_name=name or "")


def stack(x: Any, axis: int = 0, name: str | None = None) -> Any:
    """Join vars of one shape along a new dimension, at `axis` of the result.

    Of batches, those of axis 0 are steps: see `transpose`.
    """
    parts = with_dimensions([x] if isinstance(x, Variable) else [*x])
    are_steps = axis == 0 and parts[0].var.shape[:1] == (ROWS,)
    made: Variable = default_main_program().call(
        psrt_layers.stack, parts, 1 if are_steps else axis, layer_name=name or ""
    )
    return StepsFirst(made) if are_steps else made


class _UserLoop:
    """The step of a recurrence under construction."""

    def __init__(self, name: str | None = None) -> None:
        self._loop: Any = None
        self._outputs: list[Variable] = []

    @contextmanager
    def _step(self) -> Iterator[None]:
        program = default_main_program()
        self._loop = self._call(psrt_layers.Recurrence)
        self._call(self._loop.begin)
        program.steps += 1
        try:
            yield
        finally:
            program.steps -= 1
        self._call(self._loop.end)
        self._outputs = self._call(self._loop.outputs)

    def _state(self, init: Variable | None, size: int, value: float) -> Variable:
        made: Variable = self._call(self._loop.state, init, size, value)
        return made

    def _begun(self) -> Any:
        if self._loop is None:
            raise ProgramError(f"{type(self).__name__} was used outside of its block.")
        return self._loop

    def update_memory(self, mem: Variable, var: Variable) -> None:
        """Let the memory `mem` be `var` in the next step."""
        self._call(self._begun().update, mem, var)

    def output(self, *outputs: Variable) -> None:
        """Collect vars (rows, width) of each step; calling the object returns them."""
        self._call(self._begun().output, *outputs)

    def _call(self, function: Any, *args: Any) -> Any:
        return default_main_program().call(function, *args)


class DynamicRNN(_UserLoop):
    """A recurrence over the elements of each example, as many as it has.

    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(words)
        before = rnn.memory(shape=[16])
        after = fluid.layers.fc([word, before], 16, act="tanh")
        rnn.update_memory(before, after)
        rnn.output(after)
    states = rnn()
    """

    def block(self) -> Any:
        """Begin the step, in a `with` statement."""
        return self._step()

    def step_input(self, x: Variable, level: int = 0) -> Variable:
        """Return the element of each example at this step: lod (n, …) → (rows, …)."""
        made: Variable = self._call(self._begun().element, x)
        return made

    def static_input(self, x: Variable) -> Variable:
        """Return the row of each example, equal in all steps."""
        made: Variable = self._call(self._begun().static, x)
        return made

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        value: float = 0.0,
        need_reorder: bool = False,
        dtype: str = "float32",
    ) -> Variable:
        """Return a value of the step before: at first `init` (rows, size), or `value`.

        `need_reorder` has no effect: examples keep their order. Raises `ProgramError` without
        `init` and `shape`.
        """
        self._begun()
        if init is None and not shape:
            raise ProgramError("DynamicRNN.memory was given neither init nor shape.")
        return self._state(init, 0 if init is not None else int(shape[-1]), value)  # type: ignore[index]

    def __call__(self) -> Any:
        """Return the outputs of all steps, lod (n, width): a list, or the only one."""
        return self._outputs[0] if len(self._outputs) == 1 else self._outputs


class StaticRNN(_UserLoop):
    """A recurrence over the steps of vars (steps, batch, …), equally many for all examples."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._steps = 0

    @contextmanager
    def _step(self) -> Iterator[None]:
        with super()._step():
            yield
        self._outputs = [self._padded(var) for var in self._outputs]

    def step(self) -> Any:
        """Begin the step, in a `with` statement."""
        return self._step()

    def step_input(self, x: Any) -> Variable:
        """Return the part of `x` (steps, batch, …) at this step: (batch, …).

        Raises `ProgramError` for a var whose first dimension is the batch.
        """
        loop = self._begun()
        if not isinstance(x, StepsFirst):
            raise ProgramError(
                f"StaticRNN.step_input was given {x!r}, whose first dimension is no step.",
                hint="Exchange batch and steps first: layers.transpose(x, perm=[1, 0, 2]).",
            )
        self._steps = x.batch_first.shape[1]
        made: Variable = self._call(self._element, loop, x.batch_first)
        return made

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        batch_ref: Variable | None = None,
        init_value: float = 0.0,
        init_batch_dim_idx: int = 0,
        ref_batch_dim_idx: int = 1,
    ) -> Variable:
        """Return a value of the step before: at first `init` (batch, size), or `init_value`.

        The batch is that of the inputs; `batch_ref` and the last two have no effect. Raises
        `ProgramError` without `init` and `shape`.
        """
        self._begun()
        if init is None and not shape:
            raise ProgramError("StaticRNN.memory was given neither init nor shape.")
        return self._state(init, 0 if init is not None else int(shape[-1]), init_value)  # type: ignore[index]

    def step_output(self, o: Variable) -> None:
        """Collect one var of each step."""
        self.output(o)

    def __call__(self) -> Any:
        """Return the outputs (steps, batch, width): a list, or the only one."""
        made = [StepsFirst(var) for var in self._outputs]
        return made[0] if len(made) == 1 else made

    def _element(self, loop: Any, x: Any) -> Any:
        """The element of the examples' lists, all of which have as many elements as steps."""
        with loop.outside():
            lists = psrt_layers.sequence_unpad(x, _lengths(x, self._steps))
        return loop.element(lists)

    def _padded(self, lists: Variable) -> Variable:
        steps = self._steps if self._steps >= 0 else None
        padded, _ = self._call(psrt_layers.sequence_pad, lists, 0.0, steps)
        made: Variable = padded
        return made


def _lengths(x: Any, steps: int) -> Any:
    """Equal lengths of all examples of `x` (batch, steps, …), whose steps may differ by batch."""
    like = psrt_layers.fill_constant_batch_size_like
    if steps >= 0:
        return like(x, (ROWS, 1), "int64", steps)
    found = psrt_layers.slice(psrt_layers.shape(x), [0], [1], [2])
    return psrt_layers.elementwise_mul(like(x, (ROWS, 1), "int64", 1), found)


__all__ = ["DynamicRNN", "StaticRNN", "stack", "transpose"]
