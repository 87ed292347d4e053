"""Layer calls that are not legal: the message names layer, argument, both shapes and the line."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from psrt import Model, Param, initializer, layers, optimizer, program
from psrt.core.errors import ErrorCode, ProgramError
from psrt.graph.program import Var


def ids(name: str = "ids", ragged: bool = False) -> Var:
    return layers.data(name, dtype="int64", ragged=ragged)


def x(size: int = 3, name: str = "x") -> Var:
    return layers.data(name, (size,))


CASES: dict[str, tuple[Callable[[], object], str]] = {
    "arithmetic on shapes that do not broadcast": (
        lambda: layers.elementwise_add(x(3), x(4, "y")),
        r"layers.elementwise_add \(elementwise_add_0\).*argument y of shape \(-1, 4\)"
        r".*argument x of shape \(-1, 3\)",
    ),
    "fc on ids": (lambda: layers.fc(ids(), 2), "layers.fc.*argument input must hold floats"),
    "fc on ragged scalars": (
        lambda: layers.fc(layers.data("x", ragged=True), 2),
        r"argument input is x of type ragged float32 \(-1,\), which is not \(rows, size\)",
    ),
    "fc of no size": (lambda: layers.fc(x(), 0), "argument size is 0"),
    "an unknown activation": (
        lambda: layers.fc(x(), 2, act="gulu"),
        "argument act is 'gulu', no activation. Did you mean gelu",
    ),
    "one weight name for several inputs": (
        lambda: layers.fc([x(), x(4, "y")], 2, param="w"),
        "argument param names one weight.*layers.concat",
    ),
    "a shared parameter of another shape": (
        lambda: [layers.fc(x(size, f"x{size}"), 2, param="w") for size in (3, 4)],
        r"parameter w exists with shape \(3, 2\).*declared with shape \(4, 2\)",
    ),
    "concat of parts that differ": (
        lambda: layers.concat([x(), layers.reshape(x(4, "y"), (-1, 2, 2))]),
        r"argument input has float32 \(-1, 3\) and float32 \(-1, 2, 2\)",
    ),
    "concat along the batch": (lambda: layers.concat([x(), x(3, "y")], axis=0), "argument axis 0"),
    "reshape to another size": (
        lambda: layers.reshape(x(6), (-1, 4)),
        r"argument shape \(-1, 4\).*x of shape \(-1, 6\)",
    ),
    "embedding of floats": (
        lambda: layers.embedding(x(), (9, 2)),
        r"argument input must hold int64 ids, not float32 \(-1, 3\)",
    ),
    "embedding of no size": (lambda: layers.embedding(ids(), (9,)), r"argument size is \(9,\)"),
    "sparse embedding of trained ids": (
        lambda: layers.embedding(layers.cast(layers.fc(x(), 2), "int64"), (9, 2), is_sparse=True),
        "argument input is cast_0.out, which is computed from fc_0.b_0.*is_sparse=False",
    ),
    "pool of ordinary rows": (
        lambda: layers.sequence_pool(x()),
        r"argument input must be ragged rows of floats, not float32 \(-1, 3\)",
    ),
    "an unknown pool": (
        lambda: layers.slot_embeddings([ids()], (9, 2), "median"),
        "pool 'median' is not one of sum, average, sqrt, max, first, last",
    ),
    "a ragged var where only pooling helps": (
        lambda: layers.mean(layers.embedding(ids(ragged=True), (9, 2))),
        "argument x is ragged float32",
    ),
    "labels of another shape": (
        lambda: layers.sigmoid_cross_entropy_with_logits(x(1), x(2, "label")),
        r"argument label is float32 \(-1, 2\), argument x is float32 \(-1, 1\)",
    ),
    "class labels that are floats": (
        lambda: layers.softmax_with_cross_entropy(x(), layers.data("label")),
        r"argument label must be int64 \(-1, 1\) for logits float32 \(-1, 3\)",
    ),
    "auc of several columns": (
        lambda: layers.auc(x(3), layers.data("label")),
        r"argument input must have shape \(-1, 1\), not \(-1, 3\)",
    ),
    "sum over a dimension that is not there": (
        lambda: layers.reduce_sum(x(), dim=5),
        r"argument dim \(5,\) is not within \(-1, 3\)",
    ),
    "data of an unknown dimension": (
        lambda: layers.data("x", (-1, 3)),
        r"argument shape \(-1, 3\).*without the batch",
    ),
    "data of another dtype": (lambda: layers.data("x", dtype="float16"), "'float16'"),
    "two vars of one name": (lambda: [x(), x()], "named x already"),
    "something that is no var": (lambda: layers.relu(3), "must be a var, not 3"),  # type: ignore[arg-type]
    "a model with a prediction and no label": (
        lambda: Model(layers.mean(layers.fc(x(), 1)), prediction=x(1, "p")),
        "only one of prediction and label",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_illegal_call_is_refused(case: str) -> None:
    call, complaint = CASES[case]

    with program(), pytest.raises(ProgramError, match=complaint):
        call()


def test_message_names_the_line_of_the_user() -> None:
    with program(), pytest.raises(ProgramError) as refused:
        layers.elementwise_mul(x(3), x(4, "y"))

    line = refused.traceback[0].lineno + 1
    assert f"at test_layers_refusals.py:{line}: argument y" in str(refused.value)
    assert refused.value.code is ErrorCode.SHAPE_MISMATCH


def test_layer_outside_of_a_program_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"outside of a program.*with psrt.program"):
        layers.data("x")


def test_var_of_another_program_is_refused() -> None:
    with program():
        stranger = x()

    with program(), pytest.raises(ProgramError, match="x, a var of another program"):
        layers.relu(stranger)


def test_nested_programs_do_not_see_each_other() -> None:
    with program() as outer:
        x()
        with program() as inner:
            x(5)
        layers.relu(x(2, "y"))

    assert list(outer.vars) == ["x", "y", "relu_0.out"]
    assert list(inner.vars) == ["x"]


def test_threads_do_not_see_each_others_program() -> None:
    seen: list[str] = []

    def build() -> None:
        with pytest.raises(ProgramError) as refused:
            layers.data("x")
        seen.append(refused.value.message)

    with program():
        thread = threading.Thread(target=build)
        thread.start()
        thread.join(timeout=10)

    assert len(seen) == 1


def test_shared_parameter_keeps_the_initializer_it_was_made_with() -> None:
    with program() as p:
        layers.fc(x(), 2, param=Param("w", initializer.Constant(0.5)))
        layers.fc(x(3, "y"), 2, param="w")

    assert p.parameters["w"].initializer == initializer.Constant(0.5)


def test_model_minimizes_and_lists_its_feeds() -> None:
    with program() as p:
        out = layers.fc(x(), 1)
        loss = layers.mean(layers.square_error_cost(out, layers.data("label")))
        model = Model(loss, optimizer=optimizer.Sgd(0.1))

    assert model.program is p
    assert [var.name for var in model.feeds] == ["x", "label"]
    assert [op.role for op in p.ops].count("optimize") == 2
