"""The executor's contract beside the numbers: bindings, buffers, batches, refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from psrt import Executor, Model, Program, Ragged, Scope, SelectedRows, layers, optimizer, program
from psrt.core.errors import DataError, ErrorCode, ProgramError
from psrt.core.types import F32, I64, Array
from psrt.executor import Gradient, RowBatch, distinct_ids, lookups_by_table
from psrt.executor.compute import COMPUTE
from psrt.graph.ops import OPS

TABLE = np.arange(60, dtype=np.float32).reshape(20, 3)


def ctr(is_distributed: bool = True, padding: int | None = None) -> tuple[Program, Model]:
    with program() as p:
        lists = layers.data("lists", dtype="int64", ragged=True)
        ids = layers.data("ids", (1,), "int64")
        pooled = layers.slot_embeddings(
            [lists, ids], (20, 3), is_distributed=is_distributed, padding_idx=padding, param="t"
        )
        out = layers.fc(layers.concat([pooled, layers.data("dense", (2,))]), 1)
        click = layers.data("click")
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(out, click))
        model = Model(loss, out, click, optimizer.Sgd(0.1), "logit")
    return p, model


def batch(size: int, seed: int = 0) -> dict[str, Array | Ragged]:
    rng = np.random.default_rng(seed)
    return {
        "lists": Ragged.of([list(map(int, rng.integers(0, 20, i % 3))) for i in range(size)]),
        "ids": rng.integers(0, 20, (size, 1)),
        "dense": rng.normal(size=(size, 2)).astype(np.float32),
        "click": rng.integers(0, 2, (size, 1)).astype(np.float32),
    }


def scope_of(p: Program) -> Scope:
    scope = Scope()
    scope.init_parameters(p)
    return scope


class TableSource:
    """A pserver that holds `TABLE` and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[I64] = []

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        assert list(wanted) == ["t"]
        self.asked.append(wanted["t"])
        return {"t": TABLE[wanted["t"]]}


def test_rows_bound_rows_pulled_and_a_whole_table_give_the_same() -> None:
    feed = batch(5)
    p, model = ctr()
    local, local_model = ctr(is_distributed=False)
    local_scope = scope_of(local)
    local_scope["t"] = TABLE
    (names,) = lookups_by_table(p).values()
    ids, index = distinct_ids(feed, names)

    bound = Executor(p, scope_of(p))
    (first,) = bound.run(feed, [model.loss], rows={"t": RowBatch(ids, TABLE[ids], index)})
    pulled = Executor(p, scope_of(p), source=TableSource())
    (second,) = pulled.run(feed, [model.loss])
    whole = Executor(local, local_scope)
    (third,) = whole.run(feed, [local_model.loss])

    assert first == second == third
    gradients = [executor.gradients()["t"] for executor in (bound, pulled, whole)]
    for gradient in gradients:
        assert isinstance(gradient, SelectedRows)
        np.testing.assert_array_equal(gradient.ids, ids)
        np.testing.assert_array_equal(gradient.values, gradients[0].values)
    assert [g.height for g in gradients] == [0, 0, 20]


def test_a_source_is_asked_once_for_each_distinct_id() -> None:
    p, _ = ctr()
    source, feed = TableSource(), batch(6)

    Executor(p, scope_of(p), source).run(feed)

    fed = np.concatenate([feed["lists"].values, feed["ids"].reshape(-1)])  # type: ignore[union-attr]
    assert len(source.asked) == 1
    assert sorted(source.asked[0]) == sorted(set(fed))


def test_padding_id_of_a_bound_table_gets_no_gradient() -> None:
    p, _ = ctr(padding=7)
    feed = batch(4) | {"ids": np.array([[7], [7], [3], [7]])}
    executor = Executor(p, scope_of(p), TableSource())

    executor.run(feed)

    gradient = executor.gradients()["t"]
    assert isinstance(gradient, SelectedRows)
    assert not gradient.values[gradient.ids == 7].any()
    assert gradient.values[gradient.ids == 3].any()


def test_batches_of_any_size_follow_each_other() -> None:
    p, model = ctr(is_distributed=False)
    kept = Executor(p, scope_of(p))

    for size in (5, 2, 9, 1, 5):
        (found,) = kept.run(batch(size, seed=size), [model.prediction])  # type: ignore[list-item]
        fresh = Executor(p, scope_of(p))
        (expected,) = fresh.run(batch(size, seed=size), [model.prediction])  # type: ignore[list-item]

        np.testing.assert_array_equal(found, expected)
        for name, gradient in fresh.gradients().items():
            np.testing.assert_array_equal(values(kept.gradients()[name]), values(gradient))


def values(gradient: Gradient) -> Array:
    return gradient.values if isinstance(gradient, SelectedRows) else gradient


def test_gradients_stay_as_they_are_during_the_next_backward() -> None:
    p, _ = ctr(is_distributed=False)
    executor = Executor(p, scope_of(p))
    executor.run(batch(5, seed=1))
    first = executor.gradients()
    copies = {name: values(gradient).copy() for name, gradient in first.items()}

    executor.run(batch(5, seed=2))

    for name, gradient in first.items():
        np.testing.assert_array_equal(values(gradient), copies[name])
        assert not np.shares_memory(values(gradient), values(executor.gradients()[name]))


def test_memory_is_reused_from_step_to_step() -> None:
    p, _ = ctr(is_distributed=False)
    executor = Executor(p, scope_of(p))
    executor.run(batch(5))
    first = executor.gradients()["fc_0.w_0"]

    executor.run(batch(5))
    executor.run(batch(5))

    assert np.shares_memory(values(first), values(executor.gradients()["fc_0.w_0"]))


def test_fetched_arrays_are_the_callers_own() -> None:
    p, model = ctr(is_distributed=False)
    executor = Executor(p, scope_of(p))
    (first,) = executor.run(batch(5, seed=1), [model.prediction])  # type: ignore[list-item]
    kept = first.copy()  # type: ignore[union-attr]

    executor.run(batch(5, seed=2), [model.prediction])  # type: ignore[list-item]

    np.testing.assert_array_equal(first, kept)


def test_sink_is_handed_the_gradients_of_each_backward() -> None:
    class Sink:
        def __init__(self) -> None:
            self.names: list[set[str]] = []

        def offer(self, name: str, gradient: Gradient) -> None:
            pass

        def push(self, gradients: Mapping[str, Gradient]) -> None:
            self.names.append(set(gradients))

    p, _ = ctr(is_distributed=False)
    sink = Sink()
    executor = Executor(p, scope_of(p), sink=sink)

    executor.run(batch(3))
    executor.run(batch(3), roles=("forward",))

    assert sink.names == [{"t", "fc_0.w_0", "fc_0.b_0"}]


def test_parameters_put_into_the_scope_count_from_the_next_run() -> None:
    p, model = ctr(is_distributed=False)
    scope = scope_of(p)
    executor = Executor(p, scope)
    (before,) = executor.run(batch(3), [model.loss])

    scope["fc_0.w_0"] = np.zeros_like(scope["fc_0.w_0"])

    (after,) = executor.run(batch(3), [model.loss])
    assert before != after
    assert float(after) == pytest.approx(np.log(2))  # type: ignore[arg-type]


BAD_FEEDS = {
    "missing": ({"dense": None}, "does not feed dense, declared as float32"),
    "unknown": ({"click_": np.zeros((4, 1))}, "feeds click_, which.*Did you mean click"),
    "wrong shape": (
        {"dense": np.zeros((4, 3), np.float32)},
        r"dense is declared with shape \(-1, 2\), but fed with shape \(4, 3\)",
    ),
    "wrong dtype": ({"ids": np.zeros((4, 1))}, "ids holds int64, but is fed with float64"),
    "not ragged": ({"lists": np.zeros((4,), np.int64)}, "lists is a ragged var.*got ndarray"),
    "other size": ({"click": np.zeros((3, 1))}, "feeds 4 examples as lists, but 3 as click"),
}


@pytest.mark.parametrize("case", BAD_FEEDS)
def test_feed_that_does_not_fit_is_refused_by_name(case: str) -> None:
    changes, complaint = BAD_FEEDS[case]
    p, _ = ctr(is_distributed=False)
    feed = {k: v for k, v in (batch(4) | changes).items() if v is not None}

    with pytest.raises(DataError, match=complaint):
        Executor(p, scope_of(p)).run(feed)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_failing_op_names_itself_its_layer_and_the_users_line(is_sparse: bool) -> None:
    with program() as p:
        rows = layers.embedding(layers.data("ids", (1,), "int64"), (5, 2), is_sparse)
        layers.mean(rows)

    with pytest.raises(ProgramError) as failed:
        Executor(p, scope_of(p)).run({"ids": np.array([[9]])}, roles=("forward",))

    assert "op embedding of layer embedding_0 (test_executor_run.py:" in failed.value.message
    assert "Id 9 is not a row of table embedding_0.w_0, which has rows 0 to 4" in str(failed.value)
    assert "make it distributed" in failed.value.hint


def test_shapes_that_only_a_run_can_know_are_told_when_they_fail() -> None:
    with program() as p:
        x, y = layers.data("x", (2,)), layers.data("y", (4,))
        halves = layers.reshape(y, (-1, 2))
        layers.elementwise_add(x, halves)

    feed = {"x": np.zeros((3, 2), np.float32), "y": np.zeros((3, 4), np.float32)}
    with pytest.raises(
        ProgramError, match=r"elementwise_add_0.*x \(3, 2\), reshape_0.out \(6, 2\)"
    ):
        Executor(p, Scope()).run(feed, roles=("forward",))


def test_label_out_of_range_keeps_its_error_code() -> None:
    with program() as p:
        label = layers.data("k", (1,), "int64")
        layers.softmax_with_cross_entropy(layers.data("x", (3,)), label)

    with pytest.raises(DataError, match="Label 3 is not one of the classes 0 to 2") as failed:
        Executor(p, Scope()).run(
            {"x": np.zeros((1, 3), np.float32), "k": np.array([[3]])}, roles=("forward",)
        )

    assert failed.value.code is ErrorCode.DATA_MALFORMED


def test_distributed_table_without_rows_says_what_is_missing() -> None:
    p, _ = ctr()

    with pytest.raises(ProgramError, match=r"rows of the distributed table t.*give the executor a"):
        Executor(p, scope_of(p)).run(batch(2))


def test_row_batch_that_forgot_a_var_is_refused() -> None:
    p, _ = ctr()
    feed = batch(3)
    ids, index = distinct_ids(feed, ["lists"])

    with pytest.raises(ProgramError, match="bound for table t have no index for ids"):
        Executor(p, scope_of(p)).run(feed, rows={"t": RowBatch(ids, TABLE[ids], index)})


def test_fetch_of_an_unknown_or_uncomputed_var_is_refused() -> None:
    p, _ = ctr(is_distributed=False)
    executor = Executor(p, scope_of(p))

    with pytest.raises(ProgramError, match=r"no var mean_0.outt to fetch. Did you mean mean_0.out"):
        executor.run(batch(2), ["mean_0.outt"])
    with pytest.raises(ProgramError, match=r"mean_0.out@GRAD was not computed: it is a backward"):
        executor.run(batch(2), ["mean_0.out@GRAD"], roles=("forward",))


def test_parameters_that_are_not_there_are_named() -> None:
    p, _ = ctr(is_distributed=False)

    with pytest.raises(ProgramError, match=r"no array for .*init_parameters"):
        Executor(p, Scope()).run(batch(2))


def test_op_without_a_computation_is_found_when_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    p, _ = ctr(is_distributed=False)
    monkeypatch.delitem(COMPUTE, "concat")

    with pytest.raises(ProgramError, match="can compute op concat of layer concat_0"):
        Executor(p, scope_of(p))


def test_every_op_type_has_a_computation() -> None:
    assert OPS.keys() - COMPUTE.keys() == {"update", "updates"}


@pytest.mark.parametrize("offsets", [[], [1, 3], [0, 2], [0, 4], [0, 2, 1, 3], [0, -1, 3]])
def test_offsets_that_do_not_fit_the_elements_are_refused(offsets: list[int]) -> None:
    with program() as p:
        ids = layers.data("ids", dtype="int64", ragged=True)
        layers.sequence_pool(layers.embedding(ids, (9, 2)))
    scope = Scope()
    scope.init_parameters(p)
    fed = Ragged(np.array([1, 2, 3]), np.array(offsets, np.int64))

    with pytest.raises(DataError, match="offsets of ids do not rise from 0 to 3"):
        Executor(p, scope).run({"ids": fed}, roles=("forward",))


def test_offsets_that_two_vars_share_are_checked_for_each_of_them() -> None:
    with program() as p:
        both = [layers.data(name, dtype="int64", ragged=True) for name in ("few", "many")]
        layers.sequence_pool(layers.embedding(both[0], (9, 2)))
        layers.sequence_pool(layers.embedding(both[1], (9, 2)))
    scope = Scope()
    scope.init_parameters(p)
    offsets = np.array([0, 1, 2])
    fed = {"few": Ragged(np.array([1, 2]), offsets), "many": Ragged(np.array([1, 2, 3]), offsets)}

    with pytest.raises(DataError, match="offsets of many do not rise from 0 to 3"):
        Executor(p, scope).run(fed, roles=("forward",))


def pair(a: Any, b: Any) -> list[Any]:
    return [layers.embedding(ids, (9, 2)) for ids in (a, b)]


@pytest.mark.parametrize(
    "meet",
    [
        lambda a, b, values: layers.weighted_embedding(a, values, (9, 2)),
        lambda a, b, values: layers.cos_sim(*pair(a, b)),
        lambda a, b, values: layers.concat(pair(a, b)),
        lambda a, b, values: layers.sums(pair(a, b)),
        lambda a, b, values: layers.fc(pair(a, b), 1),
    ],
    ids=["weighted_embedding", "cos_sim", "concat", "sums", "fc"],
)
def test_lists_of_different_lengths_are_refused_where_they_meet(meet: Any) -> None:
    with program() as p:
        a, b = (layers.data(name, dtype="int64", ragged=True) for name in "ab")
        values = layers.data("values", ragged=True)
        meet(a, b, values)
    scope = Scope()
    scope.init_parameters(p)
    one, other = Ragged.of([[1], [2, 3]]), Ragged.of([[1, 2], [3]])
    executor = Executor(p, scope)
    floats = Ragged.of([[1.0, 2.0], [3.0]], "float32")

    with pytest.raises(DataError, match=r"The lists of .* differ in length"):
        executor.run({"a": one, "b": other, "values": floats}, roles=("forward",))
    same = Ragged.of([[1.0], [2.0, 3.0]], "float32")
    executor.run({"a": one, "b": one, "values": same}, roles=("forward",))


def test_an_unknown_fetch_is_refused_before_anything_is_trained() -> None:
    p, _ = ctr(is_distributed=False)
    scope = Scope()
    scope.init_parameters(p)
    before = scope["fc_0.w_0"].copy()
    feed = {
        "lists": Ragged.of([[1], [2]]),
        "ids": np.array([[1], [2]]),
        "dense": np.ones((2, 2), np.float32),
        "click": np.ones((2, 1), np.float32),
    }

    with pytest.raises(ProgramError, match="no var loss"):
        Executor(p, scope).run(feed, ["loss"], roles=("forward", "backward", "optimize"))

    np.testing.assert_array_equal(scope["fc_0.w_0"], before)
