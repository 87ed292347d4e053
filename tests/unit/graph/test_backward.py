"""Backward: the gradients it appends, the sums of their parts, and its refusals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from psrt import Executor, Param, Program, Scope, layers, optimizer, program
from psrt.core import specs
from psrt.core.errors import ProgramError
from psrt.graph.backward import append_backward, append_gradients, loss_gradients
from psrt.graph.gradients import RULES, gradient_type
from psrt.graph.ops import OPS
from psrt.graph.program import Op, Var, gradient_name
from psrt.graph.verify import verify


def backward_ops(p: Program) -> list[Op]:
    return [op for op in p.ops if op.role == "backward"]


def linear(x: Var, **options: object) -> Var:
    return layers.mean(layers.fc(x, 1, **options))  # type: ignore[arg-type]


def test_data_gets_no_gradient() -> None:
    with program() as p:
        loss = linear(layers.data("x", (3,)))

        gradients = append_backward(p, loss)

    assert gradients == {"fc_0.w_0": "fc_0.w_0@GRAD", "fc_0.b_0": "fc_0.b_0@GRAD"}
    assert "x@GRAD" not in p.vars
    (fc_grad,) = [op for op in p.ops if op.type == "fc_grad"]
    assert fc_grad.outputs["x@GRAD"] == ("",)


def test_only_ops_between_parameters_and_loss_are_differentiated() -> None:
    with program() as p:
        x = layers.data("x", (3,))
        layers.fc(layers.relu(x), 2, act="tanh")
        loss = linear(layers.sigmoid(x))

        gradients = append_backward(p, loss)

    assert set(gradients) == {"fc_1.w_0", "fc_1.b_0"}
    assert [op.type for op in backward_ops(p)] == ["loss_gradient", "mean_grad", "fc_grad"]


def test_a_parameter_that_is_not_trainable_gets_no_gradient() -> None:
    with program() as p:
        loss = linear(layers.data("x", (3,)), param=Param(trainable=False))

        gradients = append_backward(p, loss)

    assert set(gradients) == {"fc_0.b_0"}


def test_gradients_of_a_var_read_twice_are_added_once_both_are_there() -> None:
    with program() as p:
        x = layers.fc(layers.data("x", (3,)), 2)
        loss = layers.mean(layers.elementwise_add(layers.tanh(x), layers.sigmoid(x)))

        append_backward(p, loss)

    kinds = [op.type for op in backward_ops(p)]
    (total,) = [op for op in backward_ops(p) if op.type == "sum"]
    assert total.inputs["x"] == ("fc_0.out@GRAD@0", "fc_0.out@GRAD@1")
    assert total.outputs["out"] == ("fc_0.out@GRAD",)
    assert kinds[-2:] == ["sum", "fc_grad"]


def test_lookups_of_one_table_add_in_place_instead_of_being_summed() -> None:
    with program() as p:
        parts = [
            layers.embedding(layers.data(name, (1,), "int64"), (9, 2), True, param="t")
            for name in ("a", "b", "c")
        ]
        loss = layers.mean(layers.concat(parts))

        append_backward(p, loss)

    lookups = [op for op in backward_ops(p) if op.type == "embedding_grad"]
    assert [op.inputs.get("before") for op in lookups] == [None, ("t@GRAD@0",), ("t@GRAD@1",)]
    assert lookups[-1].outputs["table@GRAD"] == ("t@GRAD",)
    assert all(op.type != "sum" for op in p.ops)


def test_a_loss_that_is_no_scalar_is_refused() -> None:
    with program() as p:
        out = layers.fc(layers.data("x", (3,)), 1)

        with pytest.raises(ProgramError, match=r"shape \(-1, 1\).*layers.mean"):
            append_backward(p, out)


def test_a_loss_without_parameters_is_refused() -> None:
    with program() as p:
        loss = layers.mean(layers.data("x", (3,)))

        with pytest.raises(ProgramError, match="does not depend on any trainable parameter"):
            append_backward(p, loss)


def test_minimize_appends_one_update_a_parameter_and_writes_its_record() -> None:
    rate = specs.ExponentialDecay(0.1, 100, 0.5)
    with program() as p:
        loss = linear(layers.data("x", (3,)))

        optimizer.Adam(rate, beta1=0.8).minimize(loss)

    updates = [op for op in p.ops if op.role == "optimize"]
    assert [op.inputs["parameter"] for op in updates] == [("fc_0.w_0",), ("fc_0.b_0",)]
    assert {q.optimizer for q in p.trained()} == {specs.Adam(beta1=0.8)}
    assert {q.learning_rate for q in p.trained()} == {rate}


def test_losses_that_share_no_parameter_are_trained_one_after_the_other() -> None:
    with program() as p:
        x = layers.data("x", (3,))
        first, second = linear(x), linear(layers.tanh(x))

        trained = [
            set(declared.minimize(loss))
            for declared, loss in ((optimizer.Sgd(0.1), first), (optimizer.Adam(0.2), second))
        ]

    verify(p)
    assert trained == [{"fc_0.w_0", "fc_0.b_0"}, {"fc_1.w_0", "fc_1.b_0"}]
    assert loss_gradients(p) == [f"{first.name}@GRAD", f"{second.name}@GRAD"]
    assert p.parameters["fc_0.w_0"].optimizer == specs.Sgd()
    assert p.parameters["fc_1.w_0"].optimizer == specs.Adam()


def test_losses_that_share_a_parameter_are_refused() -> None:
    with program() as p:
        x = layers.data("x", (3,))
        first, second = linear(x, param="w"), linear(layers.tanh(x), param="w")
        optimizer.Sgd(0.1).minimize(first)
        before = p.clone()

        with pytest.raises(ProgramError, match=r"on parameter w, which has its gradient from ano"):
            optimizer.Sgd(0.1).minimize(second)

    assert p == before


def test_a_loss_is_differentiated_once_for_each_parameter() -> None:
    with program() as p:
        loss = linear(layers.data("x", (3,)))
        optimizer.Sgd(0.1).minimize(loss)
        before = p.clone()

        with pytest.raises(ProgramError, match=r"has its gradient already.*Call minimize once"):
            optimizer.Sgd(0.1).minimize(loss)

    assert p == before


PARAMETERS = ("table", "w", "b", "v", "c")


def gradients_of(turns: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """Gradients of PARAMETERS in a network that reads vars twice, made turn after turn."""
    with program() as p:
        ids, x = layers.data("ids", (2,), "int64"), layers.data("x", (3,))
        word = layers.flatten(layers.embedding(ids, (7, 2), param="table", is_sparse=True))
        again = layers.flatten(layers.embedding(ids, (7, 2), param="table", is_sparse=True))
        hidden = layers.fc(layers.concat([word, x, again]), 4, act="tanh", param="w", bias="b")
        out = layers.fc(hidden + layers.sigmoid(hidden), 1, param="v", bias="c")
        loss = layers.mean(out * out)
        for names in turns:
            assert set(append_gradients(p, loss, names)) == set(names)
    verify(p)
    assert loss_gradients(p) == [gradient_name(loss.name)]
    scope = Scope()
    scope.init_parameters(p)
    random = np.random.default_rng(4)
    feed = {"ids": random.integers(0, 7, (5, 2)), "x": random.standard_normal((5, 3), "f4")}
    return Executor(p, scope).run(feed, [gradient_name(name) for name in PARAMETERS])


SOME = [some for count in (1, 2, 3, 4) for some in combinations(PARAMETERS, count)]


@pytest.mark.parametrize("first", SOME, ids="+".join)
def test_gradients_that_are_made_in_two_turns_are_those_of_one(first: Sequence[str]) -> None:
    rest = [name for name in PARAMETERS if name not in first]

    for made, expected in zip(gradients_of([first, rest]), gradients_of([PARAMETERS]), strict=True):
        np.testing.assert_array_equal(made, expected)


PARTS = {"slot_rows": {"lists", "rows"}}
"""Outputs of fused ops whose gradients can be fetched like those of the ops before."""


@pytest.mark.parametrize("type", sorted(RULES))
def test_rule_reads_and_produces_slots_that_its_op_type_has(type: str) -> None:
    rule, forward, backward = RULES[type], OPS[type], OPS[gradient_type(type)]

    inputs = {slot.name for slot in forward.inputs}
    outputs = {slot.name for slot in forward.outputs}

    assert set(rule.of_slots) - PARTS.get(type, set()) <= inputs
    assert set(rule.read_slots) <= inputs | outputs
    assert set(rule.through_slots) <= outputs
    assert {slot.name for slot in backward.outputs} == {f"{slot}@GRAD" for slot in rule.of_slots}
