"""Gradients of programs against central finite differences, in double precision.

    (f(w + h) − f(w − h)) / 2h   with h = 1e-6 and an error of order h² f'''

The oracle is the forward pass alone: it never looks at a gradient rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from psrt.core.tensors import Ragged, SelectedRows
from psrt.core.types import Array
from psrt.executor import Executor, Scope
from psrt.graph import builder
from psrt.graph.backward import append_backward
from psrt.graph.program import Program, Var

STEP = 1e-6
Feed = Mapping[str, Array | Ragged]


def check_gradients(build: Callable[[], Var], feed: Feed, *, spread: float = 1.0) -> None:
    """Every element of every parameter of the scalar that `build` returns.

    What is trained is random numbers of standard deviation `spread`, not initial values: small ones
    would hide errors in the rules of saturating functions.
    """
    with builder.program() as program:
        loss = build()
        append_backward(program, loss)
    scope = random_scope(program, spread)
    executor = Executor(program, scope, dtype="float64")
    executor.run(feed)
    found = {name: dense(gradient) for name, gradient in executor.gradients().items()}

    expected = {name: numeric_gradient(executor, feed, loss, name) for name in found}

    assert found.keys() == {p.name for p in program.parameters.values() if p.trainable}
    for name, gradient in found.items():
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-5, atol=1e-7, err_msg=name)
    check_float32(program, scope, feed, found)


def check_float32(
    program: Program, scope: Scope, feed: Feed, expected: Mapping[str, Array]
) -> None:
    """The compiled kernels give the same gradients as their double precision forms."""
    single = Scope()
    for name in scope:
        single[name] = scope[name].astype(np.float32 if name in program.parameters else np.int64)
    executor = Executor(program, single)
    executor.run(feed)
    for name, gradient in executor.gradients().items():
        scale = max(1.0, float(np.abs(expected[name]).max()))
        np.testing.assert_allclose(dense(gradient), expected[name], rtol=1e-3, atol=1e-4 * scale)


def numeric_gradient(executor: Executor, feed: Feed, loss: Var, name: str) -> Array:
    parameter = executor.scope[name]
    gradient = np.zeros_like(parameter)
    for at in np.ndindex(parameter.shape):
        kept = parameter[at]
        ends = []
        for moved in (kept + STEP, kept - STEP):
            parameter[at] = moved
            (value,) = executor.run(feed, [loss], roles=("forward",))
            ends.append(float(value))  # type: ignore[arg-type]
        parameter[at] = kept
        gradient[at] = (ends[0] - ends[1]) / (2 * STEP)
    return gradient


def random_scope(program: Program, spread: float = 1.0) -> Scope:
    rng = np.random.default_rng(7)
    scope = Scope()
    scope.init_parameters(program, dtype="float64")
    for parameter in program.parameters.values():
        if parameter.trainable:
            scope[parameter.name] = rng.normal(0.0, spread, scope[parameter.name].shape)
    return scope


def dense(gradient: Array | SelectedRows) -> Array:
    """The whole gradient, zeros in rows nobody touched."""
    if not isinstance(gradient, SelectedRows):
        return gradient
    whole = np.zeros((gradient.height, gradient.values.shape[1]), gradient.values.dtype)
    np.add.at(whole, gradient.ids, gradient.values)
    return whole
