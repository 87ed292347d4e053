"""Programs for prediction: clones without training, and the part that computes some vars."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import ProgramError
from psrt.graph.program import Op, Program
from psrt.graph.prune import prune
from psrt.graph.verify import verify


def trained() -> tuple[Program, psrt.Model]:
    """A click model with a label, a loss, a metric and a prediction."""
    with psrt.program() as program:
        click = layers.data("click", shape=(1,))
        x = layers.data("x", shape=(3,))
        ids = layers.data("ids", shape=(2,), dtype="int64")
        rows = layers.flatten(layers.embedding(ids, size=(10, 4)))
        logit = layers.fc(layers.concat([rows, x]), 1)
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
        prediction = layers.sigmoid(logit)
        metrics = {"auc": layers.auc(prediction, click)}
        model = psrt.Model(loss, prediction, click, psrt.optimizer.Sgd(0.1), metrics=metrics)
    return program, model


def run(program: Program, fetch: str, feed: dict[str, np.ndarray]) -> np.ndarray:
    scope = psrt.Scope()
    scope.init_parameters(program)
    (fetched,) = psrt.Executor(program, scope).run(feed, [fetch], roles=("forward",))
    return np.asarray(fetched)


# --- clone ----------------------------------------------------------------------------------------


def test_a_clone_is_equal_and_shares_nothing_that_can_change() -> None:
    program, _ = trained()

    copy = program.clone()

    assert copy == program
    copy.vars.clear()
    copy.ops.clear()
    copy.parameters.clear()
    assert program == trained()[0]


def test_a_clone_for_testing_has_forward_ops_alone_and_no_gradient_vars() -> None:
    program, _ = trained()

    test = program.clone(for_test=True)

    verify(test)
    assert {op.role for op in test.ops} == {"forward"}
    assert not [var for var in test.vars.values() if var.gradient_of]
    assert test.trained() == []
    assert program.trained() != []


def test_a_clone_for_testing_tells_its_ops_that_it_is_one() -> None:
    program, _ = trained()
    op = program.ops[0]
    program.ops[0] = dataclasses.replace(op, attrs=op.attrs | {"is_test": False})

    test = program.clone(for_test=True)

    assert test.ops[0].attrs["is_test"] is True
    assert program.ops[0].attrs["is_test"] is False
    assert all("is_test" not in op.attrs for op in test.ops[1:])


# --- prune ----------------------------------------------------------------------------------------


def test_what_the_fetches_do_not_need_is_gone() -> None:
    program, model = trained()
    assert model.prediction is not None

    pruned = prune(program, [model.prediction.name])

    verify(pruned)
    assert [var.name for var in pruned.data_vars()] == ["x", "ids"]
    assert [op.type for op in pruned.ops] == ["embedding", "reshape", "concat", "fc", "sigmoid"]
    assert set(pruned.parameters) == set(program.parameters)


def test_a_pruned_program_computes_what_the_whole_one_does() -> None:
    program, model = trained()
    assert model.prediction is not None
    fetch = model.prediction.name
    random = np.random.default_rng(1)
    feed = {
        "x": random.normal(size=(5, 3)).astype(np.float32),
        "ids": random.integers(0, 10, (5, 2)),
    }
    click = {"click": np.ones((5, 1), np.float32)}

    whole = run(program, fetch, feed | click)
    part = run(prune(program, [fetch]), fetch, feed)

    np.testing.assert_array_equal(part, whole)


def test_unread_parameters_are_gone() -> None:
    program, _ = trained()

    pruned = prune(program, ["x"])

    assert (list(pruned.vars), pruned.ops, pruned.parameters) == (["x"], [], {})


def test_a_feed_that_nothing_needs_stays() -> None:
    program, model = trained()
    assert model.prediction is not None

    pruned = prune(program, [model.prediction.name], ["click", "x", "ids"])

    assert [var.name for var in pruned.data_vars()] == ["click", "x", "ids"]


def test_an_op_that_changes_a_state_in_place_keeps_it() -> None:
    program, model = trained()

    pruned = prune(program.clone(for_test=True), [model.metrics["auc"].name])

    verify(pruned)
    assert len([var for var in pruned.vars.values() if var.kind == "state"]) == 2


def test_an_unknown_fetch_is_named_with_its_nearest_neighbour() -> None:
    program, _ = trained()

    with pytest.raises(ProgramError, match=r"no var sigmoid_0\.uot to fetch") as caught:
        prune(program, ["sigmoid_0.uot"])

    assert "sigmoid_0.out" in caught.value.hint


def test_a_feed_that_is_computed_is_refused() -> None:
    program, model = trained()

    with pytest.raises(ProgramError, match="cannot be a feed: it is a temp var") as caught:
        prune(program, [model.loss.name], [model.loss.name])

    assert "click, x, ids" in caught.value.hint


def test_a_missing_feed_is_named_with_the_op_that_reads_it() -> None:
    program, model = trained()

    with pytest.raises(ProgramError, match=r"the data var ids, read by op embedding .* is missing"):
        prune(program, [model.loss.name], ["click", "x"])


def test_the_program_given_is_left_as_it_is() -> None:
    program, model = trained()
    before = program.to_text()

    prune(program, [model.loss.name])

    assert program.to_text() == before


def test_ops_keep_the_order_in_which_they_were_written() -> None:
    program, model = trained()
    where = {id(op): at for at, op in enumerate(program.ops)}

    pruned: list[Op] = prune(program, [model.loss.name]).ops

    assert [where[id(op)] for op in pruned] == sorted(where[id(op)] for op in pruned)
