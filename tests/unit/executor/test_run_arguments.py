"""Arguments of `run` of both executors, and its errors on invalid ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import DataError, ProgramError
from psrt.executor.parallel.loss_gradient import LossGradient
from psrt.executor.strategies import GradientScaleStrategy
from psrt.graph.program import Program

TRAIN, FORWARD = ("forward", "backward", "optimize"), ("forward",)
X = np.ones((4, 2), np.float32)


def one(program: Program, scope: psrt.Scope, **options: Any) -> Any:
    return psrt.Executor(program, scope, **options)


def replicas(program: Program, scope: psrt.Scope, **options: Any) -> Any:
    return psrt.ParallelExecutor(program, scope, 2, **options)


def linear() -> tuple[Program, psrt.Scope]:
    with psrt.program(seed=1) as program:
        loss = layers.mean(layers.fc(layers.data("x", (2,)), 1))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    return program, started(program)


def started(program: Program) -> psrt.Scope:
    scope = psrt.Scope()
    scope.init_parameters(program)
    return scope


# --- feed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [one, replicas])
@pytest.mark.parametrize(
    ("feed", "complaint"),
    [
        (None, "not as NoneType"),
        ([{"x": X}], "not as list"),
        ({}, "does not feed x, declared as float32"),
        ({"x": None}, r"x is declared with shape \(-1, 2\), but fed with"),
        ({"x": 3.0}, r"x is declared with shape \(-1, 2\), but fed with"),
    ],
)
def test_a_feed_that_is_no_batch_is_refused(make: Any, feed: Any, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        make(*linear()).run(feed)


def lists(offsets: Any) -> dict[str, psrt.Ragged]:
    return {"ids": psrt.Ragged(np.array([1, 2, 3]), offsets)}


def pooled() -> tuple[Program, str]:
    with psrt.program(seed=1) as program:
        ids = layers.data("ids", dtype="int64", ragged=True)
        rows = layers.embedding(ids, (9, 2), is_sparse=True, param="t")
        loss = layers.mean(layers.sequence_pool(rows))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    return program, loss.name


@pytest.mark.parametrize("make", [one, replicas])
@pytest.mark.parametrize("offsets", [[0, 2, 3], np.array([0, 2, 3], np.int32)])
def test_offsets_of_other_integers_are_taken(make: Any, offsets: Any) -> None:
    program, loss = pooled()

    (found,) = make(program, started(program)).run(lists(offsets), [loss], roles=TRAIN)

    expected = one(program, started(program)).run(lists(np.array([0, 2, 3])), [loss])
    np.testing.assert_allclose(found, expected[0], rtol=1e-6)


@pytest.mark.parametrize("make", [one, replicas])
def test_offsets_that_are_no_integers_are_refused(make: Any) -> None:
    program, _ = pooled()

    with pytest.raises(DataError, match=r"offsets of ids are float64 .*one integer for the start"):
        make(program, started(program)).run(lists(np.array([0.0, 2.0, 3.0])))


@pytest.mark.parametrize("make", [one, replicas])
def test_a_program_that_is_fed_nothing_runs_once(make: Any) -> None:
    with psrt.program() as program:
        loss = layers.reduce_sum(layers.square(layers.create_parameter((2,), param="w")))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    scope = psrt.Scope()
    scope["w"] = np.ones(2, np.float32)

    (found,) = make(program, scope).run({}, [loss], roles=TRAIN)

    assert found == 2
    np.testing.assert_allclose(scope["w"], 0.8)


# --- fetch, roles, rows ---------------------------------------------------------------------------


@pytest.mark.parametrize("make", [one, replicas])
def test_one_var_may_be_fetched_without_a_list(make: Any) -> None:
    program, scope = linear()
    executor = make(program, scope)

    (expected,) = executor.run({"x": X}, ["mean_0.out"])

    assert executor.run({"x": X}, "mean_0.out") == [expected]
    assert executor.run({"x": X}, program.vars["mean_0.out"]) == [expected]
    assert executor.run({"x": X}, None) == []


@pytest.mark.parametrize("make", [one, replicas])
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"fetch": [3]}, "fetch holds 3, which is neither a var nor the name"),
        ({"fetch": "abc"}, "no var abc to fetch"),
        ({"roles": ("train",)}, r"got the roles \('train',\)"),
        ({"roles": "forward"}, "got the roles 'forward'"),
        ({"rows": {"zzz": 1}}, "bound to zzz, which is no sparse table"),
    ],
)
def test_arguments_without_a_meaning_are_refused(make: Any, arguments: Any, complaint: str) -> None:
    with pytest.raises(ProgramError, match=complaint):
        make(*linear()).run({"x": X}, **arguments)


@pytest.mark.parametrize("make", [one, replicas])
@pytest.mark.parametrize("dtype", ["foo", "int32", "float16", None])
def test_executors_compute_in_two_dtypes(make: Any, dtype: Any) -> None:
    with pytest.raises(ProgramError, match=r"dtype=.*float32.*float64"):
        make(*linear(), dtype=dtype)


# --- the start of the gradient --------------------------------------------------------------------


CUSTOMIZED = psrt.BuildStrategy(gradient_scale_strategy="Customized")


@pytest.mark.parametrize("start", [None, np.empty(0), "abc", np.array("abc"), psrt.Ragged(X, X)])
def test_a_customized_start_must_be_numbers(start: Any) -> None:
    executor = replicas(*linear(), build_strategy=CUSTOMIZED)

    with pytest.raises(DataError, match=r"The batch .* mean_0.out@GRAD, the initial gradient"):
        executor.run({"x": X, "mean_0.out@GRAD": start})


def test_a_customized_start_is_of_one_loss() -> None:
    with psrt.program() as program:
        x = layers.data("x", (2,))
        for _ in range(2):
            psrt.optimizer.Sgd(0.1).minimize(layers.mean(layers.fc(x, 1)))

    with pytest.raises(ProgramError, match="has 2 losses"):
        LossGradient.of(GradientScaleStrategy.Customized, program)


def test_ones_are_ones_and_backward_begins_with_an_op_of_its_own() -> None:
    with psrt.program(seed=1) as program:
        x = layers.data("x", (2,))
        ones = layers.ones_like(x)
        psrt.optimizer.Sgd(0.1).minimize(layers.mean(layers.fc(x, 1)))

    (found,) = replicas(program, started(program)).run({"x": X}, [ones])

    np.testing.assert_array_equal(found, X)


def test_a_program_text_whose_backward_begins_with_ones_like_trains_the_same() -> None:
    program, scope = linear()
    text = program.to_text().replace('"loss_gradient"', '"ones_like"')
    replicas(program, scope).run({"x": X}, roles=TRAIN)
    older = started(program)

    replicas(Program.from_text(text), older).run({"x": X}, roles=TRAIN)

    for name in scope:
        np.testing.assert_array_equal(older[name], scope[name])


# --- several losses, and readers that fail --------------------------------------------------------


@pytest.mark.parametrize("make", [one, replicas])
@pytest.mark.parametrize("memory_optimize", [False, True])
def test_two_losses_train_as_they_would_alone(make: Any, memory_optimize: bool) -> None:
    def program_of(names: str) -> Program:
        with psrt.program(seed=1) as program:
            x = layers.data("x", (2,))
            for name in names:
                out = layers.fc(x, 600, act="tanh", param=name, bias=False)
                psrt.optimizer.Sgd(0.1).minimize(layers.mean(layers.square(out)))
        return program

    build = psrt.BuildStrategy(memory_optimize=memory_optimize)
    scope = started(program_of("ab"))
    make(program_of("ab"), scope, build_strategy=build).run({"x": X}, roles=TRAIN)

    for name in "ab":
        alone = started(program_of(name))
        make(program_of(name), alone).run({"x": X}, roles=TRAIN)
        np.testing.assert_array_equal(scope[name], alone[name])


@pytest.mark.parametrize("async_mode", [False, True])
def test_a_reader_must_give_batches(async_mode: bool) -> None:
    executor = replicas(*linear(), build_strategy=psrt.BuildStrategy(async_mode=async_mode))

    with pytest.raises(DataError, match="not as NoneType"):
        executor.run_from([None], roles=TRAIN)


@pytest.mark.parametrize("async_mode", [False, True])
def test_an_error_of_the_reader_comes_as_it_is(async_mode: bool) -> None:
    def batches() -> Iterator[dict[str, Any]]:
        yield {"x": X}
        raise ValueError("a line of the reader")

    executor = replicas(*linear(), build_strategy=psrt.BuildStrategy(async_mode=async_mode))

    with pytest.raises(ValueError, match=r"^a line of the reader$"):
        executor.run_from(batches(), roles=TRAIN)
