"""A value of several replicas is that of the batch, or refused if that does not follow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import ProgramError
from psrt.core.types import Array
from psrt.executor.program.merging import Merge, merges
from psrt.graph.program import Var

X = np.arange(1, 15, dtype=np.float32).reshape(7, 2)
FORWARD = ("forward",)


def fetched(build: Callable[[Var], Var], replicas: int | None, merged: bool = True) -> Array:
    """The value of `build` on X, by replicas or by one executor."""
    with psrt.program(seed=1) as program:
        var = build(layers.data("x", (2,)))
    scope = psrt.Scope()
    scope.init_parameters(program)
    if replicas is None:
        (found,) = psrt.Executor(program, scope).run({"x": X}, [var], roles=FORWARD)
        return found
    with psrt.ParallelExecutor(program, scope, replicas) as executor:
        (found,) = executor.run({"x": X}, [var], roles=FORWARD, return_merged=merged)
    return found


def summed(x: Var) -> Var:
    return layers.reduce_sum(x)


FOLLOW: dict[str, Callable[[Var], Var]] = {
    "ones": layers.ones_like,
    "ones like a mean": lambda x: layers.ones_like(layers.mean(x)),
    "sum of column means": lambda x: layers.reduce_sum(layers.reduce_mean(x, dim=0)),
    "half a sum": lambda x: layers.scale(summed(x), 0.5),
    "a mean and something": lambda x: layers.scale(layers.mean(x), 0.5, bias=1.0),
    "sums": lambda x: layers.sums([summed(x), summed(layers.square(x))]),
    "a sum less another": lambda x: layers.elementwise_sub(summed(x), summed(layers.exp(x))),
    "a sum reshaped": lambda x: layers.reshape(summed(x), (1,)),
    "a mean of column sums": lambda x: layers.mean(layers.reduce_sum(x, dim=0)),
    "a sum counted": lambda x: layers.cast(summed(x), "int64"),
    "examples multiplied away": lambda x: layers.matmul(x, x, transpose_x=True),
    "a maximum of maxima": lambda x: layers.reduce_max(layers.reduce_max(x, dim=0)),
    "twice a minimum": lambda x: layers.scale(layers.reduce_min(x), 2.0),
    "a mean and a penalty": lambda x: layers.elementwise_add(
        layers.mean(x), layers.reduce_sum(layers.square(layers.create_parameter((2,))))
    ),
    "a sum by a weight": lambda x: layers.elementwise_mul(
        layers.reduce_sum(x, dim=0), layers.create_parameter((2,))
    ),
}


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("case", FOLLOW)
def test_what_follows_from_the_replicas_is_that_of_the_batch(case: str, replicas: int) -> None:
    found = fetched(FOLLOW[case], replicas)

    np.testing.assert_allclose(found, fetched(FOLLOW[case], None), rtol=1e-5)


APART: dict[str, Callable[[Var], Var]] = {
    "position in a sum": lambda x: layers.argmax(layers.reduce_sum(x, dim=0), axis=0),
    "root of a mean": lambda x: layers.sqrt(layers.mean(x)),
    "square of a sum": lambda x: layers.elementwise_mul(summed(x), summed(x)),
    "sum and mean": lambda x: layers.elementwise_add(summed(x), layers.mean(x)),
    "a sum and something": lambda x: layers.scale(summed(x), 0.5, bias=1.0),
    "a mean cut": lambda x: layers.cast(layers.mean(x), "int64"),
    "a maximum turned": lambda x: layers.scale(layers.reduce_max(x), -1.0),
    "examples against examples": lambda x: layers.matmul(x, x, transpose_y=True),
}


@pytest.mark.parametrize("case", APART)
def test_what_does_not_follow_is_refused_but_may_be_had_by_replica(case: str) -> None:
    with pytest.raises(ProgramError, match=r"return_merged=False") as refused:
        fetched(APART[case], 2)

    assert "one replica's share" in refused.value.message
    assert len(fetched(APART[case], 2, merged=False)) == 2
    np.testing.assert_array_equal(fetched(APART[case], 1), fetched(APART[case], None))


def test_a_fetch_that_cannot_be_merged_is_refused_before_anything_is_trained() -> None:
    with psrt.program(seed=1) as program:
        loss = layers.mean(layers.fc(layers.data("x", (2,)), 1))
        root = layers.sqrt(loss)
        psrt.optimizer.Sgd(0.1).minimize(loss)
    scope = psrt.Scope()
    scope.init_parameters(program)
    before = scope["fc_0.w_0"].copy()

    with psrt.ParallelExecutor(program, scope, 2) as executor, pytest.raises(ProgramError):
        executor.run({"x": X}, [root], roles=("forward", "backward", "optimize"))

    np.testing.assert_array_equal(scope["fc_0.w_0"], before)


def test_a_loss_that_does_not_follow_is_the_mean_that_replicas_make_small() -> None:
    with psrt.program(seed=1) as program:
        loss = layers.sqrt(layers.mean(layers.square(layers.fc(layers.data("x", (2,)), 1))))
        psrt.optimizer.Sgd(0.1).minimize(loss)

    assert merges(program)[loss.name] is Merge.MEAN


def test_gradients_without_rows_are_added() -> None:
    with psrt.program(seed=1) as program:
        w = layers.create_parameter((2,))
        loss = layers.mean(layers.elementwise_mul(layers.data("x", (2,)), layers.square(w)))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    scope = psrt.Scope()
    scope.init_parameters(program)
    names = ["square_0.out@GRAD", f"{loss.name}@GRAD", f"{w.name}@GRAD"]

    with psrt.ParallelExecutor(program, scope, 3) as executor:
        found = executor.run({"x": X}, names)

    expected = psrt.Executor(program, scope).run({"x": X}, names)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_what_is_computed_from_a_running_metric_is_the_last_replicas() -> None:
    with psrt.program() as program:
        error = layers.rmse(layers.data("p"), layers.data("y"))
        percent = layers.scale(error, 100.0)
    feed = {"p": X[:, :1], "y": X[:, 1:]}
    scope = psrt.Scope()
    scope.reset_state(program)

    with psrt.ParallelExecutor(program, scope, 3) as executor:
        (found,) = executor.run(feed, [percent], roles=FORWARD)

    assert found == pytest.approx(100.0)
