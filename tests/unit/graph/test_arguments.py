"""Arguments of a wrong kind are refused where they are given; numbers of numpy are numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt import (
    Executor,
    Param,
    Program,
    Scope,
    clip,
    initializer,
    layers,
    load_inference_model,
    optimizer,
    program,
    regularizer,
    save_inference_model,
)
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.specs import Adam, ConstantRate, Optimizer
from psrt.core.specs.formula_rules import check_formula
from psrt.core.specs.rates import schedule_of
from psrt.graph.program import Var


def x(*shape: int, name: str = "x", dtype: str = "float32") -> Var:
    return layers.data(name, shape or (4,), dtype)


def ids() -> Var:
    return x(3, name="ids", dtype="int64")


def label() -> Var:
    return x(1, name="label", dtype="int64")


def ragged() -> Var:
    return layers.data("ragged", ragged=True)


def wrong(value: Any) -> Any:
    """Hide the type of a value that mypy would refuse."""
    return value


CASES: dict[str, tuple[Callable[[], object], str]] = {
    "fc of a text": (lambda: layers.fc(x(), wrong("3")), "size is '3', not a whole number"),
    "fc of nothing": (lambda: layers.fc(x(), wrong(None)), "size is None, not a whole number"),
    "fc of a fraction": (lambda: layers.fc(x(), wrong(1.5)), "size is 1.5, not a whole number"),
    "fc with True for a bias": (
        lambda: layers.fc(x(), 3, bias=wrong(True)),
        r"argument bias is True, not a psrt.Param or a name",
    ),
    "fc with a number for a weight": (
        lambda: layers.fc(x(), 3, param=wrong(5)),
        "argument param is 5, not a psrt.Param or a name",
    ),
    "fc without a weight": (
        lambda: layers.fc(x(), 3, param=wrong(False)),
        "argument param is False, not a psrt.Param or a name",
    ),
    "data of one size": (
        lambda: layers.data("z", wrong(4)),
        r"layers.data \(z\).*argument shape is 4, not a list of whole numbers",
    ),
    "data of half a size": (lambda: x(wrong(3.5)), "argument shape is 3.5, not a whole number"),
    "data without a name": (lambda: layers.data(""), "argument name is ''"),
    "a parameter of one size": (
        lambda: layers.create_parameter(wrong(5)),
        "argument shape is 5, not a list of whole numbers",
    ),
    "a table of one size": (
        lambda: layers.embedding(ids(), wrong(10)),
        "argument size is 10, not a list of whole numbers",
    ),
    "a table of half a width": (
        lambda: layers.embedding(ids(), wrong((10, 2.5))),
        "argument size is 2.5, not a whole number",
    ),
    "an axis that is a text": (
        lambda: layers.elementwise_add(x(), x(name="y"), axis=wrong("a")),
        "argument axis is 'a', not a whole number",
    ),
    "a dim that is a fraction": (
        lambda: layers.reduce_sum(x(), dim=wrong(1.0)),
        "argument dim is 1.0, not a whole number",
    ),
    "a var as a number": (
        lambda: layers.scale(x(), wrong(x(name="y"))),
        "argument scale is the var y, not a number",
    ),
    "a var as a count": (
        lambda: layers.topk(x(), wrong(x(name="y"))),
        "argument k is the var y, not a whole number",
    ),
    "reshape to a number": (
        lambda: layers.reshape(x(), wrong(-1)),
        "argument shape is -1, not a list of whole numbers",
    ),
    "reshape to a float": (
        lambda: layers.reshape(x(), wrong((-1, 4.0))),
        "argument shape is 4.0, not a whole number",
    ),
    "squeeze of a number": (lambda: layers.squeeze(x(1), wrong(1)), "argument axes is 1, not a"),
    "unsqueeze of a number": (lambda: layers.unsqueeze(x(), wrong(1)), "argument axes is 1, not a"),
    "transpose of nothing": (lambda: layers.transpose(x(), wrong(None)), "perm is None, not a li"),
    "expand of a number": (lambda: layers.expand(x(), wrong(2)), "expand_times is 2, not a list"),
    "slice of numbers": (
        lambda: layers.slice(x(), wrong(1), wrong(0), wrong(2)),
        "argument axes is 1, not a list",
    ),
    "split into a fraction": (
        lambda: layers.split(x(), wrong(1.5)),
        "argument num_or_sections is 1.5, not a whole number",
    ),
    "a filter of a fraction": (
        lambda: layers.conv2d(x(3, 8, 8), 3, wrong(2.5)),
        "argument filter_size is 2.5, not a whole number",
    ),
    "dropout of a text": (
        lambda: layers.dropout(x(), wrong("a")),
        "argument dropout_prob is 'a', not a number",
    ),
    "a seed that is a text": (
        lambda: layers.dropout(x(), 0.5, seed=wrong("a")),
        "argument seed is 'a', not a whole number",
    ),
    "a seed beyond 64 bits": (lambda: layers.dropout(x(), 0.5, seed=2**70), "beyond 64 bits"),
    "clip without a bound": (lambda: layers.clip(x(), wrong(None), 1.0), "min is None, not a num"),
    "a tree of a fraction": (
        lambda: layers.hsigmoid(x(), label(), wrong(2.5)),
        "argument num_classes is 2.5, not a whole number",
    ),
    "padding to no length": (
        lambda: layers.sequence_pad(ragged(), 0.0, wrong("all")),
        "argument maxlen is 'all', not a whole number",
    ),
    "integers padded with a fraction": (
        lambda: layers.sequence_pad(layers.data("r", dtype="int64", ragged=True), 0.5, 2),
        "argument pad_value 0.5 does not fit argument x, ragged int64",
    ),
    "a loss without a number": (
        lambda: layers.smooth_l1(x(), x(name="y"), sigma=wrong(None)),
        "argument sigma is None, not a number",
    ),
    "a label that is none": (
        lambda: layers.cross_entropy(x(), label(), ignore_index=wrong(None)),
        "argument ignore_index is None, not a whole number",
    ),
    "a constant that is a text": (
        lambda: layers.fill_constant((2,), "float32", wrong("a")),
        "argument value is 'a', not a number",
    ),
    "auc of no bins": (
        lambda: layers.auc(x(1), x(1, name="y"), bins=0),
        "argument bins is 0, not 1 or more",
    ),
    "auc of a fraction of a bin": (
        lambda: layers.auc(x(1), x(1, name="y"), bins=wrong(1.5)),
        "argument bins is 1.5, not a whole number",
    ),
    "a momentum that overshoots": (
        lambda: layers.batch_norm(x(), momentum=2),
        "argument momentum is 2, not from 0 to 1",
    ),
    "a variance made negative": (
        lambda: layers.layer_norm(x(), epsilon=-1.0),
        "argument epsilon is -1.0, below 0",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_argument_of_another_kind_is_refused(case: str) -> None:
    call, complaint = CASES[case]

    with program() as p, pytest.raises(ProgramError, match=complaint):
        call()

    assert p.ops == []


PARAMS: dict[str, tuple[Param, str]] = {
    "a name that is none": (Param(wrong(3)), "its name is 3, not a text"),
    "an initializer that is a text": (Param(initializer=wrong("foo")), "'foo' is no initializer"),
    "a constant that is a text": (
        Param(initializer=initializer.Constant(wrong("a"))),
        "value is 'a', not a finite number of float32",
    ),
    "a constant beyond float32": (Param(initializer=initializer.Constant(1e300)), "value is 1e"),
    "bounds the wrong way round": (
        Param(initializer=initializer.Uniform(1, -1)),
        "first values lie between 1 and -1, which is nowhere",
    ),
    "a negative deviation": (Param(initializer=initializer.Normal(0, -1)), "std is -1, below 0"),
    "a negative fan": (Param(initializer=initializer.Xavier(fan_in=-5)), "fan_in .* is -5, not a"),
    "a rate that is a text": (Param(learning_rate=wrong("a")), "learning_rate is 'a', not a finit"),
    "a decay that is a number": (Param(regularizer=wrong(3)), "3 is no regularizer"),
    "a clip that is a number": (Param(clip=wrong(3)), "3 is no clip"),
    "an optimizer that is a text": (
        Param(optimizer=wrong("adam")),
        "optimizer is 'adam', not one of psrt.optimizer",
    ),
    "options that are a text": (Param(table=wrong("t")), "not a psrt.tables.TableOptions"),
}


@pytest.mark.parametrize("case", PARAMS)
def test_unusable_fields_of_a_parameter_are_refused(case: str) -> None:
    param, complaint = PARAMS[case]

    complaint = f"argument param is not usable, .*{complaint}"
    with program(), pytest.raises(ProgramError, match=complaint):
        layers.create_parameter((2, 2), param)


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ({"grad_clip": 5.0}, "clip 5.0 is not usable: 5.0 is no clip.*ByGlobalNorm"),
        ({"grad_clip": clip.ByGlobalNorm(wrong("a"))}, "norm is 'a', not a number"),
        ({"regularization": 0.1}, "regularizer 0.1 is not usable: 0.1 is no regularizer"),
        ({"regularization": regularizer.L2Decay(1e308)}, "coeff is 1e.308, not a finite number"),
    ],
)
def test_what_an_optimizer_cannot_do_to_gradients_is_refused(how: Any, complaint: str) -> None:
    with program(), pytest.raises(ConfigError, match=complaint):
        optimizer.Sgd(0.1, **how).minimize(layers.mean(layers.fc(x(), 1)))


def test_an_optimizer_whose_numbers_break_its_formula_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"optimizer Adam.*: beta1 is 1.5, not in \[0, 1\)"):
        check_formula("optimizer", Adam(beta1=1.5), Optimizer)
    with pytest.raises(ConfigError, match=r"epsilon is 10+, not a finite number of float32"):
        check_formula("optimizer", Adam(epsilon=10**400), Optimizer)


def numpy_model() -> tuple[Program, Var]:
    """A program whose numbers are numpy's wherever a user may have them from."""
    with program(seed=wrong(np.int64(3))) as p:
        given = layers.data("x", np.array([4]))
        left, _ = layers.split(layers.fc(given, np.int64(4), param=own_param()), np.int64(2))
        wide = layers.reshape(left, (np.int64(-1), np.int32(2)))
        total = layers.reduce_sum(wide, dim=np.int64(1), keep_dim=np.bool_(True))
        scaled = layers.clip(layers.scale(total, np.float32(2)), np.float64(-9), np.inf)
        drawn = layers.nce(
            *(given, label(), np.int64(3)), sampler="custom_dist", custom_dist=np.array([1, 2, 3])
        )
        loss = layers.mean(layers.elementwise_add(drawn, scaled))
        rate = optimizer.ExponentialDecay(np.float64(0.1), wrong(np.int64(10)), np.float32(0.5))
        declared = optimizer.Momentum(
            rate,
            np.float32(0.9),
            grad_clip=clip.ByNorm(np.float32(5)),
            regularization=regularizer.L2Decay(np.float32(0.5)),
        )
        declared.minimize(loss)
    return p, scaled


def own_param() -> Param:
    return Param("w", initializer.Constant(np.float32(0.5)), learning_rate=np.float32(2))


def test_numbers_of_numpy_train_and_are_saved(tmp_path: Path) -> None:
    p, scaled = numpy_model()
    scope, feed = Scope(), {"x": np.ones((2, 4), np.float32)}
    scope.init_parameters(p)

    Executor(p, scope).run(
        {**feed, "label": np.array([[0], [2]])},
        roles=("forward", "backward", "clip_and_decay", "optimize"),
    )
    save_inference_model(tmp_path, ["x"], [scaled], p, scope)

    assert Program.from_text(p.to_text()) == p
    assert load_inference_model(tmp_path).run(feed)[0].shape == (2, 1)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: optimizer.Adam(beta1=1.5),
        lambda: optimizer.Adam(beta2=1.0),
        lambda: optimizer.Adagrad(0.1, initial_accumulator=-1.0),
        lambda: optimizer.Sgd(1e300),
    ],
)
def test_an_optimizer_that_breaks_its_formula_is_refused_when_declared(
    declare: Callable[[], object],
) -> None:
    with pytest.raises(ConfigError):
        declare()


def test_a_rate_of_numpy_is_taken_by_an_optimizer() -> None:
    assert optimizer.Sgd(np.float32(0.5)).learning_rate == ConstantRate(0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", ["loss", None])
def test_what_is_no_var_has_no_gradient(loss: Any) -> None:
    with program(), pytest.raises(ProgramError, match="no var"):
        optimizer.Sgd(0.1).minimize(loss)


def test_a_learning_rate_of_numpy_is_a_constant_rate() -> None:
    assert schedule_of(np.float32(0.5)) == schedule_of(0.5) == optimizer.ConstantRate(0.5)


def test_a_program_of_another_seed_than_a_number_is_refused() -> None:
    with pytest.raises(ProgramError, match="the seed 'a', not a whole number"), program(wrong("a")):
        pass


def test_a_layer_that_asks_for_another_shape_is_told_both() -> None:
    with program():
        layers.fc(x(3), 2, param="w")
        wider = x(4, name="y")

        with pytest.raises(ProgramError) as refused:
            layers.fc(wider, 2, param="w")

    message = r"parameter w exists with shape (3, 2), and was declared with shape (4, 2)."
    assert message in str(refused.value)
