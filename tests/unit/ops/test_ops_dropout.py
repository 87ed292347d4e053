"""Dropout: rates, repeatability, replicas, gradients, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from psrt import Executor, Ragged, Scope, layers, optimizer, program
from psrt.core.errors import ProgramError
from psrt.core.types import Array
from psrt.executor.memory.cells import StepContext
from psrt.graph.program import Var
from psrt.kernels.ops.random import keep_mask
from tests.support import twins
from tests.support.gradcheck import check_gradients

ONES: Array = np.ones((200, 50), np.float32)


def executor_of(p_seed: int = 0, **asked: Any) -> tuple[Executor, Var]:
    with program(seed=p_seed) as p:
        out = layers.dropout(layers.data("x", (50,)), **asked)
    return Executor(p, Scope()), out


def draw(executor: Executor, out: Var, x: Array = ONES) -> Array:
    return np.asarray(executor.run({"x": x}, [out], roles=("forward",))[0])


def moment_of(executor: Executor) -> StepContext:
    return executor._compiled.context


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_elements_are_dropped_at_the_rate_asked_for(p: float) -> None:
    out = draw(*executor_of(dropout_prob=p))

    spread = 4 * np.sqrt(p * (1 - p) / out.size)
    assert (out == 0).mean() == pytest.approx(p, abs=spread + 1e-12)
    assert set(np.unique(out)) <= {0.0, 1.0}


@pytest.mark.parametrize("axis", [0, 1])
def test_no_row_or_column_is_favoured(axis: int) -> None:
    kept = draw(*executor_of(dropout_prob=0.3)).mean(axis=axis)

    # Five standard deviations of a mean of that many draws.
    assert np.abs(kept - 0.7).max() < 5 * np.sqrt(0.21 / ONES.shape[axis])


@pytest.mark.parametrize(
    ("implementation", "is_test", "kept"),
    [
        ("downgrade_in_infer", False, 1.0),
        ("downgrade_in_infer", True, 0.75),
        ("upscale_in_train", False, 1 / 0.75),
        ("upscale_in_train", True, 1.0),
    ],
)
def test_what_is_kept_is_scaled(implementation: str, is_test: bool, kept: float) -> None:
    out = draw(
        *executor_of(dropout_prob=0.25, dropout_implementation=implementation, is_test=is_test)
    )

    np.testing.assert_allclose(np.unique(out), [kept] if is_test else [0.0, kept], rtol=1e-6)


def test_clone_for_test_drops_nothing() -> None:
    with program() as p:
        out = layers.dropout(layers.data("x", (50,)), 0.5)

    found = draw(Executor(p.clone(for_test=True), Scope()), out)

    np.testing.assert_array_equal(found, ONES / 2)


def test_every_step_draws_anew_and_a_run_can_be_repeated() -> None:
    runs = [executor_of(dropout_prob=0.5) for _ in range(2)]

    (first, second), (again, _) = ([draw(*each) for _ in range(2)] for each in runs)

    assert (first != second).mean() == pytest.approx(0.5, abs=0.03)
    np.testing.assert_array_equal(first, again)


def test_a_seed_of_the_user_fixes_the_mask_of_all_steps() -> None:
    executor, out = executor_of(dropout_prob=0.5, seed=7)

    first, second = draw(executor, out), draw(executor, out)

    np.testing.assert_array_equal(first, second)
    assert (first != draw(*executor_of(dropout_prob=0.5, seed=8))).any()


def test_layers_and_programs_draw_different_masks() -> None:
    with program() as p:
        x = layers.data("x", (50,))
        outs = [layers.dropout(x, 0.5) for _ in range(2)]
    one, other = Executor(p, Scope()).run({"x": ONES}, outs, roles=("forward",))
    elsewhere = draw(*executor_of(p_seed=1, dropout_prob=0.5))

    for first, second in [(one, other), (one, elsewhere)]:
        assert (np.asarray(first) != np.asarray(second)).mean() == pytest.approx(0.5, abs=0.03)


def test_replicas_draw_what_one_executor_with_the_whole_batch_draws() -> None:
    whole = draw(*executor_of(dropout_prob=0.5))
    replica, out = executor_of(dropout_prob=0.5)

    moment_of(replica).first_example = 120
    part = draw(replica, out, ONES[120:])

    np.testing.assert_array_equal(part, whole[120:])


def test_mask_equals_its_definition_in_numpy() -> None:
    mask = np.empty((3, 9), np.uint8)

    keep_mask(-5, 11, 1000, 20_000, mask)

    (of_step,) = twins.mix64(twins.mix64(np.array([-5]).astype(np.uint64)) ^ np.uint64(11))
    rows = twins.mix64(of_step ^ np.arange(1000, 1003).astype(np.uint64))
    fours = np.arange(1, 4).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    quarters = np.arange(0, 64, 16).astype(np.uint64)
    bits = twins.mix64(rows[:, None] + fours)[:, :, None] >> quarters
    levels = (bits & np.uint64(0xFFFF)).reshape(3, 12)[:, :9]
    np.testing.assert_array_equal(mask, levels >= 20_000)


def weighted(x: Var) -> Var:
    return layers.reduce_sum(layers.fc(x, 1, param="last", bias=False))


@pytest.mark.parametrize("is_test", [False, True])
@pytest.mark.parametrize("p", [0.4, 1.0])
@pytest.mark.parametrize("implementation", ["downgrade_in_infer", "upscale_in_train"])
def test_gradient_of_dropout_with_a_fixed_mask(
    implementation: str, p: float, is_test: bool
) -> None:
    def build() -> Var:
        hidden = layers.fc(layers.data("x", (3,)), 5, act="tanh")
        cubes = layers.reshape(hidden, (-1, 5, 1))
        return weighted(layers.dropout(cubes, p, is_test, 3, implementation))

    check_gradients(build, {"x": np.random.default_rng(1).normal(size=(4, 3))})


def test_gradient_of_dropout_of_ragged_rows() -> None:
    def build() -> Var:
        ids = layers.data("lists", dtype="int64", ragged=True)
        kept = layers.dropout(layers.embedding(ids, (6, 3)), 0.4, seed=3)
        return weighted(layers.sequence_pool(kept))

    check_gradients(build, {"lists": Ragged.of([[1, 4, 4], [], [2], [5, 0]])})


def test_backward_drops_what_forward_dropped() -> None:
    with program() as p:
        weights = layers.create_parameter((50,), "w")
        kept = layers.dropout(layers.elementwise_mul(layers.data("x", (50,)), weights), 0.5)
        loss = layers.reduce_sum(kept)
        optimizer.Sgd(0.1).minimize(loss)
    scope = Scope()
    scope.init_parameters(p)
    scope["w"] = np.ones(50, np.float32)
    executor = Executor(p, scope)

    for _ in range(3):
        (out,) = executor.run({"x": ONES}, [kept])
        np.testing.assert_allclose(executor.gradients()["w"], np.asarray(out).sum(axis=0))


REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "a probability above 1": (
        lambda: layers.dropout(layers.data("x", (3,)), 1.5),
        r"layers.dropout \(dropout_0\).*argument dropout_prob 1.5 is not within 0 and 1",
    ),
    "an unknown implementation": (
        lambda: layers.dropout(layers.data("x", (3,)), 0.5, dropout_implementation="none"),
        "argument dropout_implementation 'none' is not one of downgrade_in_infer, upscale_in_train",
    ),
    "dropout of ids": (
        lambda: layers.dropout(layers.data("x", (3,), "int64"), 0.5),
        r"argument x must hold floats, not int64 \(-1, 3\)",
    ),
    "dropout of a scalar": (
        lambda: layers.dropout(layers.mean(layers.data("x", (3,))), 0.5),
        r"argument x must have a dimension of rows, not float32 \(\)",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = REFUSALS[case]

    with program(), pytest.raises(ProgramError, match=complaint):
        call()
