"""Optimizers, schedules, initializers, regularizers and clips, as psrt receives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psrt
import psrt.fluid as fluid
from psrt.core import specs
from psrt.core.errors import ProgramError

opt, rates = fluid.optimizer, fluid.layers

OPTIMIZERS: dict[str, tuple[Callable[[], Any], specs.Optimizer]] = {
    "SGD": (lambda: opt.SGD(0.1), specs.Sgd()),
    "Momentum": (lambda: opt.Momentum(0.1, 0.8, use_nesterov=True), specs.Momentum(0.8, True)),
    "Adagrad": (lambda: opt.Adagrad(0.1, 1e-5), specs.Adagrad(1e-5)),
    "DecayedAdagrad": (lambda: opt.DecayedAdagrad(0.1), specs.DecayedAdagrad()),
    "Adadelta": (lambda: opt.Adadelta(0.1, 1e-5, 0.9), specs.Adadelta(0.9, 1e-5)),
    "RMSProp": (lambda: opt.RMSProp(0.1, 0.9, momentum=0.5), specs.RmsProp(0.9, momentum=0.5)),
    "Adam": (lambda: opt.Adam(0.1), specs.Adam(lazy=False)),
    "Adam, lazy": (lambda: opt.Adam(0.1, lazy_mode=True), specs.Adam()),
    "Adamax": (lambda: opt.Adamax(0.1, 0.8), specs.Adamax(0.8)),
    "Ftrl": (lambda: opt.Ftrl(0.1, 0.01, l2=0.02), specs.Ftrl(0.01, 0.02)),
    "LarsMomentum": (lambda: opt.LarsMomentum(0.1, 0.8), specs.LarsMomentum(0.8)),
    "Lamb": (lambda: opt.Lamb(0.1), specs.Lamb()),
}

SCHEDULES: dict[str, tuple[Callable[[], Any], specs.LearningRate]] = {
    "exponential": (
        lambda: rates.exponential_decay(0.1, 10, 0.5, staircase=True),
        specs.ExponentialDecay(0.1, 10, 0.5, True),
    ),
    "natural": (lambda: rates.natural_exp_decay(0.1, 10, 0.5), specs.NaturalExpDecay(0.1, 10, 0.5)),
    "inverse": (
        lambda: rates.inverse_time_decay(0.1, 10, 0.5),
        specs.InverseTimeDecay(0.1, 10, 0.5),
    ),
    "polynomial": (lambda: rates.polynomial_decay(0.1, 10), specs.PolynomialDecay(0.1, 10)),
    "polynomial in cycles": (
        lambda: rates.polynomial_decay(0.1, 10, cycle=True),
        specs.PolynomialDecay(0.1, 10, cycle=True),
    ),
    "piecewise": (
        lambda: rates.piecewise_decay([1, 2], [0.3, 0.2, 0.1]),
        specs.PiecewiseDecay((1, 2), (0.3, 0.2, 0.1)),
    ),
    "noam": (lambda: rates.noam_decay(64, 100), specs.NoamDecay(1.0, 64, 100)),
    "cosine": (lambda: rates.cosine_decay(0.1, 10, 5), specs.CosineDecay(0.1, 10, 5)),
    "warm-up": (
        lambda: rates.linear_lr_warmup(0.1, 5, 0.0, 0.1),
        specs.Warmup(specs.ConstantRate(0.1), 5, 0.0, 0.1),
    ),
}


def loss_of_two_layers() -> fluid.Variable:
    x = fluid.layers.data("x", [2])
    return fluid.layers.mean(fluid.layers.fc(fluid.layers.fc(x, 3), 1))


def records() -> dict[str, Any]:
    return fluid.default_main_program().graph.parameters


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_is_that_of_psrt_with_the_defaults_of_fluid(name: str) -> None:
    make, expected = OPTIMIZERS[name]

    make().minimize(loss_of_two_layers())

    assert {record.optimizer for record in records().values()} == {expected}
    rate = 1.0 if name == "Adadelta" else 0.1
    assert {r.learning_rate for r in records().values()} == {specs.ConstantRate(rate)}


def test_every_optimizer_has_its_longer_name_too() -> None:
    short = {name for name in opt.__all__ if not name.endswith("Optimizer")}

    assert {getattr(opt, name) for name in short} == {
        getattr(opt, f"{name}Optimizer") for name in short
    }
    assert short == {name.split(",")[0] for name in OPTIMIZERS}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_that_of_psrt(name: str) -> None:
    make, expected = SCHEDULES[name]

    opt.SGD(make()).minimize(loss_of_two_layers())

    assert {record.learning_rate for record in records().values()} == {expected}


def test_minimize_returns_updates_and_what_they_read() -> None:
    decay = fluid.regularizer.L2DecayRegularizer(regularization_coeff=0.1)

    updates, pairs = opt.SGD(0.1, regularization=decay).minimize(loss_of_two_layers())

    assert [op.type for op in updates] == ["update"] * 4
    assert [p.name for p, _ in pairs] == ["fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"]
    assert all(g.var.gradient_of == p.name for p, g in pairs)


def test_only_the_parameters_listed_are_trained_and_none_that_is_excluded() -> None:
    loss = loss_of_two_layers()

    opt.SGD(0.1).minimize(loss, parameter_list=["fc_1.w_0", "fc_1.b_0"], no_grad_set={"fc_1.b_0"})

    assert [name for name, record in records().items() if record.optimizer] == ["fc_1.w_0"]


def test_two_losses_train_the_parameters_that_each_is_given() -> None:
    hidden = fluid.layers.fc(fluid.layers.data("x", [2]), 2, param_attr="first", bias_attr=False)
    losses = [
        fluid.layers.mean(fluid.layers.fc(hidden, 1, param_attr=name, bias_attr=False))
        for name in ("one", "two")
    ]
    for loss, names in zip(losses, (["one"], ["two", "first"]), strict=True):
        opt.SGD(0.5).minimize(loss, parameter_list=names)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    scope = fluid.global_scope()
    before = {name: scope[name].copy() for name in ("first", "one", "two")}

    exe.run(feed={"x": np.ones((1, 2), "f4")})

    out = before["first"].sum(axis=0, keepdims=True).T
    np.testing.assert_allclose(scope["one"], before["one"] - 0.5 * out, rtol=1e-5)
    np.testing.assert_allclose(scope["two"], before["two"] - 0.5 * out, rtol=1e-5)
    moved = 0.5 * np.ones((2, 1), "f4") @ before["two"].T
    np.testing.assert_allclose(scope["first"], before["first"] - moved, rtol=1e-5)


def test_a_layer_shares_a_parameter_that_is_trained_already() -> None:
    x, label = fluid.layers.data("x", [2]), fluid.layers.data("label", [1])
    attr = fluid.ParamAttr("w", learning_rate=0.5, regularizer=fluid.regularizer.L2Decay(0.1))
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=attr) - label)
    fluid.optimizer.SGD(0.1).minimize(loss)
    trained = fluid.default_main_program().graph.parameters["w"]

    fluid.layers.fc(x, 1, param_attr=fluid.ParamAttr("w", learning_rate=0.5))

    assert fluid.default_main_program().graph.parameters["w"] == trained


def test_a_gradient_cut_elsewhere_than_at_a_parameter_is_refused() -> None:
    loss = loss_of_two_layers()

    with pytest.raises(ProgramError, match=r"minimize names fc_0\.out, which is no parameter"):
        opt.SGD(0.1).minimize(loss, no_grad_set={"fc_0.out"})


CLIPS = {
    "value": (fluid.clip.GradientClipByValue(2.0, min=-1.0), psrt.clip.ByValue(2.0, -1.0)),
    "norm": (fluid.clip.GradientClipByNorm(2.0), psrt.clip.ByNorm(2.0)),
    "global": (fluid.clip.GradientClipByGlobalNorm(2.0), psrt.clip.ByGlobalNorm(2.0)),
}


@pytest.mark.parametrize("name", CLIPS)
def test_a_clip_of_an_optimizer_and_one_set_before_write_the_same_ops(name: str) -> None:
    def ops(set_before: bool) -> list[str]:
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            loss = loss_of_two_layers()
            if set_before:
                fluid.clip.set_gradient_clip(clip)
            opt.SGD(0.1, grad_clip=None if set_before else clip).minimize(loss)
            graph = fluid.default_main_program().graph
            return [op.type for op in graph.ops if op.role == "clip_and_decay"]

    clip, expected = CLIPS[name]

    assert clip == expected
    assert ops(set_before=True) == ops(set_before=False) != []


def test_a_clip_is_set_for_parameters_alone() -> None:
    loss_of_two_layers()
    clip = fluid.clip.GradientClipByNorm(1.0)

    fluid.clip.set_gradient_clip(clip, param_list=["fc_0.w_0"])

    asked = fluid.default_main_program().builder.declared
    assert [name for name in asked if asked[name].clip] == ["fc_0.w_0"]
    with pytest.raises(ProgramError, match="set_gradient_clip names x"):
        fluid.clip.set_gradient_clip(clip, param_list=["x"])


INITIALIZERS = {
    "Constant": (fluid.initializer.Constant(2.0), psrt.initializer.Constant(2.0)),
    "Uniform": (fluid.initializer.Uniform(-2.0, 3.0), psrt.initializer.Uniform(-2.0, 3.0)),
    "Normal": (fluid.initializer.Normal(1.0, 2.0), psrt.initializer.Normal(1.0, 2.0)),
    "TruncatedNormal": (
        fluid.initializer.TruncatedNormal(0.0, 0.5),
        psrt.initializer.TruncatedNormal(0.0, 0.5),
    ),
    "Xavier": (fluid.initializer.Xavier(False, fan_in=3), psrt.initializer.Xavier(False, 3)),
    "MSRA": (fluid.initializer.MSRA(uniform=False), psrt.initializer.Msra(False)),
}


@pytest.mark.parametrize("name", INITIALIZERS)
def test_an_initializer_is_that_of_psrt_by_both_names(name: str) -> None:
    given, expected = INITIALIZERS[name]

    assert given == expected
    room = fluid.initializer
    assert getattr(room, name) is getattr(room, f"{name}Initializer")
    others = {"NumpyArray", "init_on_cpu", "force_init_on_cpu"}
    assert {n.removesuffix("Initializer") for n in room.__all__} - others == set(INITIALIZERS)


@pytest.mark.parametrize(
    ("ask", "what"),
    [(lambda: fluid.clip.GradientClipByGlobalNorm(1.0, "towers"), "the group 'towers'")],
)
def test_what_psrt_does_otherwise_is_refused(ask: Callable[[], object], what: str) -> None:
    with pytest.raises(ProgramError, match=what):
        ask()


@pytest.mark.parametrize(
    ("room", "name", "instead"),
    [
        (fluid.clip, "ErrorClipByValue", "psrt bounds those of parameters"),
        (fluid.optimizer, "RecomputeOptimizer", "fluid.memory_optimize"),
        (fluid.optimizer, "Adamm", "Did you mean Adam"),
        (fluid.initializer, "Bilinear", "no transposed convolution"),
        (fluid, "Executer", "Did you mean Executor"),
    ],
)
def test_a_name_that_is_not_there_says_what_is(room: Any, name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=instead):
        getattr(room, name)


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_function_chooses_the_parameters_that_are_clipped(in_parts: bool) -> None:
    x = fluid.layers.data("x", [1])
    made = [fluid.layers.fc(x, 1, param_attr=name, bias_attr=False) for name in "ab"]
    loss = fluid.layers.mean(fluid.layers.sums(made))
    clip = fluid.clip.GradientClipByNorm(0.5, need_clip=lambda parameter: parameter.name == "b")
    adam = fluid.optimizer.SGD(1.0, grad_clip=clip)
    if in_parts:
        adam.apply_gradients(adam.backward(loss))
    else:
        adam.minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    scope = fluid.global_scope()
    before = {name: scope[name].item() for name in "ab"}

    exe.run(feed={"x": np.full((2, 1), 3.0, "f4")})

    moved = [before[name] - scope[name].item() for name in "ab"]
    assert moved == pytest.approx([3.0, 0.5])
    with pytest.raises(TypeError, match="need_clip is 'b', not a function"):
        fluid.clip.GradientClipByValue(1.0, need_clip="b")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("declare", "error"),
    [
        (lambda: rates.data(1, [2]), TypeError),
        (lambda: rates.data("x", 2), TypeError),
        (lambda: fluid.data("x", 2), TypeError),
        (lambda: rates.create_parameter(1), TypeError),
        (lambda: rates.create_parameter([1.0, 2.0]), TypeError),
        (lambda: rates.create_parameter([2], attr=np.ones(2)), TypeError),
        (lambda: rates.create_parameter([2], default_initializer=np.ones(2)), TypeError),
        (lambda: rates.create_global_var(1, 2.0, "float32"), TypeError),
        (lambda: rates.create_global_var([1.0], 2.0, "float32"), TypeError),
        (lambda: rates.create_global_var([1], 2.0, np.complex128), ValueError),
    ],
)
def test_arguments_of_a_wrong_type_are_refused_as_in_fluid(declare: Any, error: Any) -> None:
    with pytest.raises(error) as raised:
        declare()

    assert isinstance(raised.value, ProgramError)
    assert not fluid.default_main_program().graph.vars


def test_labels_of_classes_may_be_fed_as_floats() -> None:
    scores, label = rates.data("scores", [2]), rates.data("label", [1])
    whole = rates.data("whole", [1], dtype="int64")
    fetched = [
        compute(scores, of)
        for compute in (rates.cross_entropy, rates.accuracy, rates.softmax_with_cross_entropy)
        for of in (label, whole)
    ]
    fed = {"scores": np.array([[0.2, 0.8], [0.3, 0.7]], "f4"), "whole": np.array([[1], [0]])}
    fed["label"] = fed["whole"].astype("f4")

    found = fluid.Executor().run(feed=fed, fetch_list=fetched)

    for floats, numbers in zip(found[::2], found[1::2], strict=True):
        np.testing.assert_array_equal(floats, numbers)


def test_a_dtype_in_the_place_of_another_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="append_batch_size='int64'") as refusal:
        fluid.layers.data("x", [1], "int64")  # type: ignore[arg-type]

    assert isinstance(refusal.value, ProgramError)
    assert "dtype='int64'" in (refusal.value.hint or "")
