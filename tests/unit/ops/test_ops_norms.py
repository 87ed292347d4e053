"""Normalisation: against the formulas in double precision, finite differences, and refusals."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from psrt import Executor, Param, Ragged, Scope, initializer, layers, optimizer, program
from psrt.core.errors import ProgramError
from psrt.core.types import Array
from psrt.executor.program.sequential import Executor as SequentialExecutor
from psrt.graph.program import Program, Var
from psrt.graph.verify import verify
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(8)
ROWS: Array = RNG.normal(2.0, 3.0, size=(6, 4)).astype(np.float32)
IMAGES: Array = RNG.normal(-1.0, 2.0, size=(5, 4, 3, 2)).astype(np.float32)
SCALE: Array = np.array([1.0, -2.0, 0.5, 3.0], np.float32)
BIAS: Array = np.array([0.0, 1.0, -1.0, 2.0], np.float32)
EPSILON = 1e-5


def batch() -> Var:
    return layers.data("x", (4,))


def normalised(x: Array, axes: tuple[int, ...], epsilon: float = EPSILON) -> Array:
    exact = x.astype(np.float64)
    variance = exact.var(axis=axes, keepdims=True)
    return np.asarray((exact - exact.mean(axis=axes, keepdims=True)) / np.sqrt(variance + epsilon))


def ready(p: Program, values: Mapping[str, Array]) -> tuple[SequentialExecutor, Scope]:
    verify(p)
    scope = Scope()
    scope.init_parameters(p)
    for name, value in values.items():
        scope[name] = value.copy()
    return Executor(p, scope), scope


def compute(
    build: Callable[[], Var], x: Array | Ragged, values: Mapping[str, Array]
) -> Array | Ragged:
    with program() as p:
        out = build()
    executor, _ = ready(p, values)
    return executor.run({"x": x}, [out], roles=("forward",))[0]


BATCH_NORM = {"batch_norm_0.w_0": SCALE, "batch_norm_0.b_0": BIAS}


def test_batch_norm_of_rows_equals_its_formula() -> None:
    found = compute(lambda: layers.batch_norm(batch()), ROWS, BATCH_NORM)

    expected = SCALE * normalised(ROWS, (0,)) + BIAS
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_batch_norm_of_images_equals_its_formula() -> None:
    found = compute(
        lambda: layers.batch_norm(layers.data("x", (4, 3, 2)), act="relu", epsilon=0.1),
        IMAGES,
        BATCH_NORM,
    )

    scale, bias = SCALE[:, None, None], BIAS[:, None, None]
    expected = np.maximum(scale * normalised(IMAGES, (0, 2, 3), 0.1) + bias, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_running_statistics_follow_the_batches_and_stay_in_the_scope() -> None:
    with program() as p:
        loss = layers.mean(layers.batch_norm(batch(), momentum=0.8))
        optimizer.Sgd(0.1).minimize(loss)
    executor, scope = ready(p, {})
    other = ROWS[:3] * 2 + 1

    executor.run({"x": ROWS})
    executor.run({"x": other}, roles=("forward",))

    mean, variance = np.zeros(4), np.ones(4)
    for x in (ROWS, other):
        mean = 0.8 * mean + 0.2 * x.mean(axis=0)
        variance = 0.8 * variance + 0.2 * x.var(axis=0)
    np.testing.assert_allclose(scope["batch_norm_0.w_1"], mean, rtol=1e-5)
    np.testing.assert_allclose(scope["batch_norm_0.w_2"], variance, rtol=1e-5)


@pytest.mark.parametrize("argument", ["is_test", "use_global_stats"])
def test_test_mode_takes_the_running_statistics_and_leaves_them(argument: str) -> None:
    mean, variance = BIAS * 0.3, SCALE**2
    with program() as p:
        x = batch()
        normed = layers.batch_norm(
            x, moving_mean_name="m", moving_variance_name="v", **{argument: True}
        )
    executor, scope = ready(p, {**BATCH_NORM, "m": mean, "v": variance})

    (found,) = executor.run({"x": ROWS}, [normed], roles=("forward",))

    expected = SCALE * (ROWS - mean) / np.sqrt(variance + EPSILON) + BIAS
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(scope["m"], mean)
    np.testing.assert_array_equal(scope["v"], variance)


def test_clone_for_test_reads_what_training_wrote() -> None:
    with program() as p:
        normed = layers.batch_norm(batch())
        optimizer.Sgd(0.1).minimize(layers.mean(normed))
    executor, scope = ready(p, {})
    for _ in range(200):
        executor.run({"x": ROWS}, roles=("forward",))

    clone = Executor(p.clone(for_test=True), scope)
    (one_row,) = clone.run({"x": ROWS[:1]}, [normed], roles=("forward",))

    np.testing.assert_allclose(one_row, normalised(ROWS, (0,))[:1], rtol=1e-4, atol=1e-5)


def test_running_statistics_stay_where_a_condition_is_false() -> None:
    with program() as p:
        moves = layers.less_than(layers.reduce_sum(batch()), layers.fill_constant((), "float32", 0))
        out = layers.batch_norm(p.vars["x"], momentum=0.8, condition=moves)
    executor, scope = ready(p, {})

    for x, expected in (
        (np.abs(ROWS), 0.0 * ROWS[0]),
        (-np.abs(ROWS), -0.2 * np.abs(ROWS).mean(0)),
    ):
        (found,) = executor.run({"x": x}, [out])
        np.testing.assert_allclose(found, normalised(x, (0,)), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(scope["batch_norm_0.w_1"], expected, rtol=1e-5)


def test_running_statistics_are_not_trained() -> None:
    with program() as p:
        optimizer.Sgd(0.1).minimize(layers.mean(layers.batch_norm(batch())))

    trained = {parameter.name for parameter in p.trained()}

    assert trained == {"batch_norm_0.w_0", "batch_norm_0.b_0"}
    assert set(p.gradients()) == trained


def test_empty_batch_changes_no_statistics() -> None:
    with program() as p:
        loss = layers.reduce_sum(layers.batch_norm(layers.fc(batch(), 4)))
        optimizer.Sgd(0.1).minimize(loss)
    executor, scope = ready(p, {})

    executor.run({"x": ROWS[:0]})

    assert scope["batch_norm_0.w_1"].tolist() == [0.0] * 4
    assert scope["batch_norm_0.w_2"].tolist() == [1.0] * 4
    assert not executor.gradients()["batch_norm_0.w_0"].any()  # type: ignore[union-attr]


LAYER_NORM = {"layer_norm_0.w_0": SCALE, "layer_norm_0.b_0": BIAS}


def test_layer_norm_equals_its_formula() -> None:
    found = compute(lambda: layers.layer_norm(batch()), ROWS, LAYER_NORM)

    expected = SCALE * normalised(ROWS, (1,)) + BIAS
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("axis", "axes"), [(1, (1, 2, 3)), (2, (2, 3)), (3, (3,))])
def test_layer_norm_from_a_dimension_on(axis: int, axes: tuple[int, ...]) -> None:
    found = compute(
        lambda: layers.layer_norm(
            layers.data("x", (4, 3, 2)), scale=False, shift=False, begin_norm_axis=axis
        ),
        IMAGES,
        {},
    )

    np.testing.assert_allclose(found, normalised(IMAGES, axes), rtol=1e-4, atol=1e-5)


def test_layer_norm_of_ragged_rows_stays_ragged() -> None:
    def build() -> Var:
        ids = layers.data("x", dtype="int64", ragged=True)
        return layers.layer_norm(layers.embedding(ids, ROWS.shape, param="table"), act="tanh")

    found = compute(build, Ragged.of([[0], [], [1, 2, 3], [4, 5]]), {**LAYER_NORM, "table": ROWS})

    assert isinstance(found, Ragged)
    assert found.offsets.tolist() == [0, 1, 1, 4, 6]
    expected = np.tanh(SCALE * normalised(ROWS, (1,)) + BIAS)
    np.testing.assert_allclose(found.values, expected, rtol=1e-4, atol=1e-5)


def weighted(x: Var) -> Var:
    """A scalar in which every element of `x` counts differently: errors cannot cancel."""
    return layers.reduce_sum(layers.fc(x, 1, param="last", bias=False))


def features(size: int) -> Var:
    return layers.fc(layers.data("x", (3,)), size, param="first")


FEED = {"x": RNG.normal(size=(4, 3))}


@pytest.mark.parametrize("is_frozen", [False, True])
def test_gradient_of_batch_norm_over_rows(is_frozen: bool) -> None:
    def build() -> Var:
        normed = layers.batch_norm(features(3), epsilon=0.01, use_global_stats=is_frozen)
        return weighted(layers.tanh(normed))

    check_gradients(build, FEED)


@pytest.mark.parametrize("is_frozen", [False, True])
def test_gradient_of_batch_norm_over_images(is_frozen: bool) -> None:
    def build() -> Var:
        images = layers.reshape(features(8), (-1, 2, 2, 2))
        normed = layers.batch_norm(images, epsilon=0.01, is_test=is_frozen)
        return weighted(layers.tanh(normed))

    check_gradients(build, FEED)


def test_gradient_of_batch_norm_of_data_alone() -> None:
    def build() -> Var:
        return weighted(layers.batch_norm(layers.data("x", (3,))))

    check_gradients(build, FEED)


def test_gradient_of_batch_norm_with_constant_scale() -> None:
    fixed = Param("fixed", initializer.Constant(1.5), trainable=False)

    def build() -> Var:
        return weighted(layers.batch_norm(features(3), param=fixed, epsilon=0.01))

    check_gradients(build, FEED)


@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("axis", [1, 2])
def test_gradient_of_layer_norm(axis: int, scale: bool, shift: bool) -> None:
    def build() -> Var:
        cubes = layers.reshape(features(6), (-1, 2, 3))
        normed = layers.layer_norm(cubes, scale, shift, axis, epsilon=0.01)
        return weighted(layers.tanh(normed))

    check_gradients(build, FEED)


def test_gradient_of_layer_norm_of_ragged_rows() -> None:
    def build() -> Var:
        ids = layers.data("lists", dtype="int64", ragged=True)
        normed = layers.layer_norm(layers.embedding(ids, (6, 3)), epsilon=0.01)
        return weighted(layers.sequence_pool(normed))

    check_gradients(build, {"lists": Ragged.of([[1, 4, 4], [], [2], [5, 0]])})


def test_a_steady_step_allocates_nothing_large() -> None:
    with program() as p:
        images = layers.batch_norm(layers.data("x", (4, 40, 40)), act="relu")
        normed = layers.layer_norm(images)
        optimizer.Sgd(0.1).minimize(layers.mean(layers.fc(layers.batch_norm(normed), 1)))
    executor, _ = ready(p, {})
    feed = {"x": RNG.normal(size=(20, 4, 40, 40)).astype(np.float32)}
    for _ in range(3):
        executor.run(feed)

    tracemalloc.start()
    executor.run(feed)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak_bytes < 100_000 < feed["x"].nbytes


REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "batch norm of cubes": (
        lambda: layers.batch_norm(layers.data("x", (2, 3))),
        r"layers.batch_norm \(batch_norm_0\).*argument input is x of type float32 \(-1, 2, 3\), "
        r"which is not \(rows, channels\)",
    ),
    "batch norm of ids": (
        lambda: layers.batch_norm(layers.data("x", (2,), "int64")),
        r"argument input must hold floats, not int64 \(-1, 2\)",
    ),
    "batch norm of ragged rows": (
        lambda: layers.batch_norm(
            layers.embedding(layers.data("x", dtype="int64", ragged=True), (9, 2))
        ),
        r"argument input is embedding_0.out of type ragged float32 \(-1, 2\)",
    ),
    "a shared scale of another shape": (
        lambda: [layers.batch_norm(layers.data(f"x{n}", (n,)), param="w") for n in (2, 3)],
        r"parameter w exists with shape \(2,\), .*declared with shape \(3,\)",
    ),
    "layer norm over the batch": (
        lambda: layers.layer_norm(batch(), begin_norm_axis=0),
        r"layers.layer_norm \(layer_norm_0\).*argument begin_norm_axis is 0, not within 1 to 1; "
        r"argument input has shape \(-1, 4\)",
    ),
    "layer norm of a dimension that is not there": (
        lambda: layers.layer_norm(batch(), begin_norm_axis=2),
        "argument begin_norm_axis is 2, not within 1 to 1",
    ),
    "layer norm of ids": (
        lambda: layers.layer_norm(layers.data("x", (2,), "int64")),
        r"argument input must hold floats, not int64 \(-1, 2\)",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = REFUSALS[case]

    with program(), pytest.raises(ProgramError, match=complaint):
        call()
