"""Layers of Fluid that are made of others, against numpy. The numbers of PaddlePaddle 2.6.2 were
equal to 1e-6 when these were written, gradients of `teacher_student_sigmoid_loss` included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError
from psrt.core.types import Array

layers = fluid.layers
RNG = np.random.default_rng(4)
X, Y = RNG.normal(size=(2, 4, 6)).astype("f4") * 2
SHARES = np.where(np.arange(24).reshape(4, 6) == 3, 0, np.abs(Y)).astype("f4")
IMAGES = RNG.normal(size=(2, 4, 3, 3)).astype("f4")
CHANCES = (np.exp(X) / np.exp(X).sum(1, keepdims=True)).astype("f4")
CLASSES = np.array([[1], [0], [5], [2]])
LOGITS = np.array([[-20], [-3], [0.5], [2], [18], [1]], "f4")
TAUGHT = np.array([[-2], [-1], [0.3], [1.6], [0.2], [0]], "f4")


def computed(layer: Callable[..., Any], *feeds: Array) -> list[Array]:
    """Arrays that `layer` makes of vars that are fed these."""
    names = [f"v{number}" for number in range(len(feeds))]
    given = [
        fluid.data(name, [None, *array.shape[1:]], str(array.dtype))
        for name, array in zip(names, feeds, strict=True)
    ]
    made = layer(*given)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    outs = made if isinstance(made, list) else [made]
    return [
        np.asarray(each)
        for each in exe.run(feed=dict(zip(names, feeds, strict=True)), fetch_list=outs)
    ]


def divergence() -> Array:
    safe = np.where(SHARES > 0, SHARES, 1)
    return np.where(SHARES > 0, SHARES * (np.log(safe) - X), 0)


def dice() -> Array:
    wanted = np.eye(6)[CLASSES[:, 0]]
    both, each = (CHANCES * wanted).sum(1), (CHANCES + wanted).sum(1)
    return np.mean(1 - 2 * both / (each + 1e-5))


def log_loss(label: Array) -> Array:
    return np.logaddexp(0, LOGITS) - LOGITS * label


def taught() -> Array:
    click = (TAUGHT >= 1) | ((TAUGHT < 0) & (TAUGHT >= -1))
    of_teacher = log_loss(TAUGHT - (TAUGHT >= 1))
    return log_loss(click) + np.where(TAUGHT >= 0, of_teacher, 0)


def raised(x: Array) -> Array:
    return np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)) * 1.0507009873554805


def bilinear(x: Any, y: Any) -> Any:
    weights = fluid.initializer.NumpyArrayInitializer(np.arange(36.0).reshape(1, 6, 6))
    return layers.bilinear_tensor_product(x, y, 1, param_attr=weights, act="tanh")


TIED = np.array([[3, 1, 3, 2, 1, 1], [0, 0, 5, -1, 5, 0]], "f4")
RISING, FALLING = np.argsort(TIED, 1, kind="stable"), np.argsort(-TIED, 1, kind="stable")

CASES: dict[str, tuple[Callable[..., Any], tuple[Array, ...], Any]] = {
    "selu": (layers.selu, (X,), raised(X)),
    "thresholded_relu": (layers.thresholded_relu, (X,), np.where(X > 1, X, 0)),
    "softshrink": (layers.softshrink, (X,), X - X.clip(-0.5, 0.5)),
    "hard_shrink": (layers.hard_shrink, (X,), np.where(np.abs(X) > 0.5, X, 0)),
    "maxout": (lambda x: layers.maxout(x, 2), (IMAGES,), IMAGES.reshape(2, 2, 2, 3, 3).max(2)),
    "maxout of the last": (lambda x: layers.maxout(x, 3, axis=-1), (X,), X.reshape(4, 2, 3).max(2)),
    "divergences": (lambda x, y: layers.kldiv_loss(x, y, "none"), (X, SHARES), divergence()),
    "mean divergence": (layers.kldiv_loss, (X, SHARES), divergence().mean()),
    "divergence": (lambda x, y: layers.kldiv_loss(x, y, "sum"), (X, SHARES), divergence().sum()),
    "divergence of an example": (
        lambda x, y: layers.kldiv_loss(x, y, "batchmean"),
        (X, SHARES),
        divergence().sum() / 4,
    ),
    "dice_loss": (layers.dice_loss, (CHANCES, CLASSES), dice()),
    "teacher and student": (layers.teacher_student_sigmoid_loss, (LOGITS, TAUGHT), taught()),
    "pad": (
        lambda x: layers.pad(x, [0, 0, 1, 2], 0.5),
        (X,),
        np.pad(X, ((0, 0), (1, 2)), constant_values=0.5),
    ),
    "pad2d": (
        lambda x: layers.pad2d(x, [1, 0, 2, 1], pad_value=0.5),
        (IMAGES,),
        np.pad(IMAGES, ((0, 0), (0, 0), (1, 0), (2, 1)), constant_values=0.5),
    ),
    "pad2d of channels behind": (
        lambda x: layers.pad2d(x, [1, 0, 0, 1], data_format="NHWC"),
        (IMAGES,),
        np.pad(IMAGES, ((0, 0), (1, 0), (0, 1), (0, 0))),
    ),
    "reverse": (lambda x: layers.reverse(x, [1, -1]), (IMAGES,), IMAGES[:, ::-1, :, ::-1]),
    "sorted": (lambda x: layers.argsort(x)[0], (X,), np.sort(X, 1)),
    "argsort": (lambda x: layers.argsort(x)[1], (TIED,), RISING),
    "argsort of falling ones": (lambda x: layers.argsort(x, descending=True)[1], (TIED,), FALLING),
    "multiplex": (
        lambda x, y, at: layers.multiplex([x, y], at),
        (X, Y, np.array([[1], [0], [1], [0]])),
        np.stack([Y[0], X[1], Y[2], X[3]]),
    ),
    "bilinear_tensor_product": (
        bilinear,
        (X / 50, Y / 50),
        np.tanh(np.einsum("bi,ij,bj->b", X / 50, np.arange(36.0).reshape(6, 6), Y / 50))[:, None],
    ),
    "clip_by_norm": (lambda x: layers.clip_by_norm(x, 1.5), (X,), X * 1.5 / np.linalg.norm(X)),
    "clip_by_norm of less": (lambda x: layers.clip_by_norm(x, 1e3), (X,), X),
    "reduce_all": (lambda x: layers.reduce_all(x > -1.0, 1), (X,), (X > -1).all(1)),
    "reduce_any": (
        lambda x: layers.reduce_any(x > 3.0, 1, keep_dim=True),
        (X,),
        (X > 3).any(1, keepdims=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layer_has_its_formula(name: str) -> None:
    layer, feeds, expected = CASES[name]

    (found,) = computed(layer, *feeds)

    np.testing.assert_allclose(found.reshape(np.shape(expected)), expected, rtol=1e-5, atol=1e-6)


def test_logits_beyond_the_bounds_teach_nothing() -> None:
    x = fluid.data("x", [None, 1])
    x.stop_gradient = False
    label = fluid.data("label", [None, 1])
    loss = layers.reduce_sum(layers.teacher_student_sigmoid_loss(x, label))
    fetches = fluid.gradients([loss], [x])

    (found,) = fluid.Executor().run(feed={"x": LOGITS, "label": TAUGHT}, fetch_list=fetches)

    chance = 1 / (1 + np.exp(-LOGITS.astype("f8")))
    twice, once = 2 * chance - TAUGHT, chance - (TAUGHT >= -1)
    expected = np.where(TAUGHT >= 0, twice, once) * (np.abs(LOGITS) < 15)
    np.testing.assert_allclose(np.asarray(found), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1.0, [True, False, False]), (np.inf, [False, True, False]), (np.nan, [False, False, True])],
)
def test_elements_that_are_no_finite_numbers_are_found(value: float, expected: list[bool]) -> None:
    values = X.copy()
    values[2, 3] = value

    found = computed(lambda x: [layers.isfinite(x), layers.has_inf(x), layers.has_nan(x)], values)

    assert [bool(each.item()) for each in found] == expected


def test_vars_of_numbers() -> None:
    outs = [
        layers.range(0, 5, 2, "int64"),
        layers.linspace(0, 1, 5),
        layers.diag([1.0, 2.0]),
        layers.eye(2, 3, [2]),
        layers.rank(fluid.data("x", [None, 3, 4])),
        *layers.unbind(layers.eye(2)),
    ]

    found = fluid.Executor().run(feed={}, fetch_list=outs)

    expected: list[Any] = [
        [0, 2, 4],
        np.linspace(0, 1, 5),
        np.diag([1, 2]),
        [np.eye(2, 3)] * 2,
        [3],
    ]
    for got, wanted in zip(found, [*expected, [1, 0], [0, 1]], strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted)


@pytest.mark.parametrize(
    ("layer", "what"),
    [
        (lambda x: layers.pad(x, [1, 0, 0, 0]), r"paddings \[1, 0, 0, 0\].*\[-1, 6\]"),
        (lambda x: layers.argsort(x, 0), "argsort was given axis 0"),
        (lambda x: layers.pad(x, [1, 0]), "layers.pad was given paddings"),
        (lambda x: layers.pad2d(x, mode="reflect"), "pad2d was given mode 'reflect'"),
        (lambda x: layers.kldiv_loss(x, x, "most"), "kldiv_loss was given reduction 'most'"),
        (lambda x: layers.range(0, x, 1, "int64"), "layers.range was given a var"),
    ],
)
def test_what_psrt_has_not_is_refused_by_name(layer: Callable[..., Any], what: str) -> None:
    with pytest.raises(ProgramError, match=what):
        layer(fluid.data("x", [None, 6]))
