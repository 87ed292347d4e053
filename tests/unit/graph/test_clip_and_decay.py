"""Clipping and regularisation against plain numpy, in float32 and float64, dense and sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from psrt import (
    Executor,
    Model,
    Param,
    Program,
    Scope,
    clip,
    initializer,
    layers,
    optimizer,
    program,
    regularizer,
)
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.tensors import SelectedRows
from psrt.graph.verify import verify

X = np.random.default_rng(1).normal(size=(6, 4))
IDS = np.array([[3], [1], [3], [0], [5], [1]])
LOOKED_UP = [3, 1, 0, 5]
PASSES = ("forward", "backward")

every_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


def build(w: Param | None = None, padding: int | None = None, **options: Any) -> Program:
    """A dense `w` (4, 3) and a sparse `t` (7, 3); loss = Σ (x·w + t[ids])³, so gradients differ."""
    with program() as p:
        x, ids = layers.data("x", (4,)), layers.data("ids", (1,), "int64")
        param = w or Param("w", initializer.Uniform(-1.0, 1.0))
        table = Param("t", initializer.Uniform(-1.0, 1.0))
        rows = layers.embedding(ids, (7, 3), is_sparse=True, padding_idx=padding, param=table)
        out = layers.elementwise_add(layers.fc(x, 3, param=param, bias=False), rows)
        cube = layers.elementwise_mul(out, layers.elementwise_mul(out, out))
        Model(layers.reduce_sum(cube), optimizer=optimizer.Sgd(0.1, **options))
    return p


def gradients(p: Program, dtype: str = "float64") -> tuple[dict[str, np.ndarray], Scope]:
    scope = Scope()
    scope.init_parameters(p)
    for name in p.parameters:
        scope[name] = scope[name].astype(dtype)
    executor = Executor(p, scope, dtype=dtype)
    executor.run({"x": X.astype(dtype), "ids": IDS}, roles=PASSES)
    found = executor.gradients()
    return {name: values_of(gradient).copy() for name, gradient in found.items()}, scope


def values_of(gradient: Any) -> np.ndarray:
    if isinstance(gradient, SelectedRows):
        assert gradient.ids.tolist() == LOOKED_UP
        return gradient.values
    return gradient


def plain(dtype: str = "float64") -> dict[str, np.ndarray]:
    return gradients(build(), dtype)[0]


def norm(*arrays: np.ndarray) -> float:
    return float(np.sqrt(sum((a.astype(np.float64) ** 2).sum() for a in arrays)))


def assert_close(got: np.ndarray, want: np.ndarray, dtype: str) -> None:
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=1e-12 if dtype == "float64" else 1e-5, atol=1e-5)


@every_dtype
def test_l2_decay_adds_the_weights_of_the_rows_at_hand(dtype: str) -> None:
    found, scope = gradients(build(regularization=regularizer.L2Decay(0.3)), dtype)

    before = plain(dtype)
    assert_close(found["w"], before["w"] + 0.3 * scope["w"], dtype)
    assert_close(found["t"], before["t"] + 0.3 * scope["t"][LOOKED_UP], dtype)


@every_dtype
def test_l1_decay_adds_signs(dtype: str) -> None:
    found, scope = gradients(build(regularization=regularizer.L1Decay(0.3)), dtype)

    before = plain(dtype)
    assert_close(found["w"], before["w"] + 0.3 * np.sign(scope["w"]), dtype)
    assert_close(found["t"], before["t"] + 0.3 * np.sign(scope["t"][LOOKED_UP]), dtype)


@every_dtype
@pytest.mark.parametrize(("low", "limits"), [(None, (-2.0, 2.0)), (-0.5, (-0.5, 2.0))])
def test_clipping_by_value(dtype: str, low: float | None, limits: tuple[float, float]) -> None:
    found, _ = gradients(build(grad_clip=clip.ByValue(2.0, low)), dtype)

    for name, gradient in plain(dtype).items():
        assert_close(found[name], np.clip(gradient, *limits), dtype)


@every_dtype
def test_clipping_by_norm_shortens_only_what_is_too_long(dtype: str) -> None:
    before = plain(dtype)
    lengths = {name: norm(gradient) for name, gradient in before.items()}
    limit = sum(lengths.values()) / 2

    found, _ = gradients(build(grad_clip=clip.ByNorm(limit)), dtype)

    assert min(lengths.values()) < limit < max(lengths.values())
    for name, gradient in before.items():
        assert_close(found[name], gradient * min(1.0, limit / lengths[name]), dtype)


@every_dtype
@pytest.mark.parametrize("share", [0.25, 2.0])
def test_clipping_by_global_norm_scales_all_gradients_alike(dtype: str, share: float) -> None:
    before = plain(dtype)
    limit = share * norm(*before.values())

    found, _ = gradients(build(grad_clip=clip.ByGlobalNorm(limit)), dtype)

    for name, gradient in before.items():
        assert_close(found[name], gradient * min(1.0, share), dtype)


def test_gradients_are_clipped_before_they_are_regularised() -> None:
    p = build(grad_clip=clip.ByNorm(0.1), regularization=regularizer.L2Decay(0.5))

    found, scope = gradients(p)

    before = plain()["w"]
    assert_close(found["w"], before * 0.1 / norm(before) + 0.5 * scope["w"], "float64")
    assert p.gradients() == {"w": "w@GRAD@DECAY", "t": "t@GRAD@DECAY"}


def test_what_a_parameter_says_counts_instead_of_what_the_optimizer_says() -> None:
    own = Param(
        "w",
        initializer.Uniform(-1.0, 1.0),
        regularizer=regularizer.L1Decay(0.2),
        clip=clip.ByValue(1.0),
    )
    p = build(own, grad_clip=clip.ByGlobalNorm(0.5), regularization=regularizer.L2Decay(0.3))

    found, scope = gradients(p)

    before = plain()
    assert_close(found["w"], np.clip(before["w"], -1, 1) + 0.2 * np.sign(scope["w"]), "float64")
    clipped = before["t"] * 0.5 / norm(before["t"])
    assert_close(found["t"], clipped + 0.3 * scope["t"][LOOKED_UP], "float64")


def test_a_parameter_is_left_out_of_regularisation_by_a_coefficient_of_zero() -> None:
    own = Param("w", initializer.Uniform(-1.0, 1.0), regularizer=regularizer.L2Decay(0.0))

    p = build(own, regularization=regularizer.L2Decay(0.3))

    assert p.gradients() == {"w": "w@GRAD", "t": "t@GRAD@DECAY"}


def test_the_padding_row_does_not_decay() -> None:
    p = build(padding=3, regularization=regularizer.L2Decay(0.3))

    found, _ = gradients(p)

    assert not found["t"][LOOKED_UP.index(3)].any()
    assert found["t"][LOOKED_UP.index(1)].all()


def test_updates_read_the_adjusted_gradient() -> None:
    p = build(grad_clip=clip.ByGlobalNorm(0.5), regularization=regularizer.L2Decay(0.3))
    found, scope = gradients(p)
    before = {name: scope[name].copy() for name in p.parameters}

    Executor(p, scope, dtype="float64").run({"x": X, "ids": IDS}, roles=(*PASSES, "optimize"))

    assert_close(scope["w"], before["w"] - 0.1 * found["w"], "float64")
    assert_close(scope["t"][LOOKED_UP], before["t"][LOOKED_UP] - 0.1 * found["t"], "float64")
    assert_close(scope["t"][[2, 4, 6]], before["t"][[2, 4, 6]], "float64")


def test_a_program_with_adjusted_gradients_survives_its_text_form() -> None:
    p = build(grad_clip=clip.ByGlobalNorm(0.5), regularization=regularizer.L1Decay(0.3))

    again = Program.from_text(p.to_text())

    verify(again)
    assert again == p
    assert [op.type for op in again.ops if op.role == "clip_and_decay"] == [
        "global_norm",
        *["scale_by_global_norm"] * 2,
        *["l1_decay"] * 2,
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (clip.ByNorm(0.0), r"clip ByNorm\(norm=0.0\) is not usable: norm is 0.0, not above 0"),
        (clip.ByGlobalNorm(-1.0), "norm is -1.0, not above 0"),
        (clip.ByValue(1.0, min=2.0), "min 2.0 is above max 1.0"),
    ],
)
def test_a_clip_that_makes_no_sense_is_refused(wrong: clip.Clip, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(grad_clip=wrong)


def test_two_users_of_a_parameter_may_not_regularise_it_differently() -> None:
    with program():
        x = layers.data("x", (4,))
        layers.fc(x, 3, param=Param("w", regularizer=regularizer.L2Decay(0.1)))
        layers.fc(x, 3, param="w")
        with pytest.raises(ProgramError, match="parameter w exists with regularizer"):
            layers.fc(x, 3, param=Param("w", regularizer=regularizer.L2Decay(0.2)))
