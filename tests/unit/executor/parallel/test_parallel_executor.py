"""The parallel executor gives what one executor with the whole batch gives, however it is cut."""

from __future__ import annotations

import gc
import re
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import ConfigError, DataError, ProgramError
from psrt.executor.parallel.parallel import ParallelExecutor
from psrt.executor.parallel.shares import shares
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy, ReduceStrategy

ALL = ("forward", "backward", "optimize")


def classifier() -> tuple[psrt.Program, str]:
    """Sparse and dense tables, ragged slots, two dense layers."""
    with psrt.program(seed=3) as program:
        x = layers.data("x", shape=(5,))
        ids = layers.data("ids", dtype="int64", ragged=True)
        word = layers.data("word", shape=(2,), dtype="int64")
        label = layers.data("label", shape=(1,))
        pooled = layers.sequence_pool(layers.embedding(ids, (40, 3), is_sparse=True), "average")
        words = layers.flatten(layers.embedding(word, (11, 4)))
        hidden = layers.fc(layers.concat([x, pooled, words]), 7, act="relu")
        logit = layers.fc(hidden, 1)
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, label))
        psrt.optimizer.Adagrad(0.1).minimize(loss)
    return program, loss.name


def batches(count: int, examples: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(5)
    return [
        {
            "x": rng.standard_normal((examples, 5)).astype(np.float32),
            "ids": psrt.Ragged.of(
                [list(rng.integers(0, 40, rng.integers(0, 4))) for _ in range(examples)]
            ),
            "word": rng.integers(0, 11, (examples, 2)),
            "label": rng.integers(0, 2, (examples, 1)).astype(np.float32),
        }
        for _ in range(count)
    ]


def trained_alone(dtype: str, feeds) -> psrt.Scope:
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program, dtype)
    executor = psrt.Executor(program, scope, dtype=dtype)
    for feed in feeds:
        executor.run(feed, roles=ALL)
    return scope


def trained_by_replicas(
    dtype: str, feeds, replicas: int, build: BuildStrategy, how: ExecutionStrategy | None = None
) -> psrt.Scope:
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program, dtype)
    with ParallelExecutor(program, scope, replicas, build, how, dtype=dtype) as executor:
        for feed in feeds:
            executor.run(feed, roles=ALL)
    return scope


@pytest.mark.parametrize("strategy", list(ReduceStrategy))
@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("examples", [1, 2, 7, 12])
def test_replicas_train_as_one_executor_does(strategy, replicas, examples):
    feeds = batches(4, examples)

    scope = trained_by_replicas("float64", feeds, replicas, BuildStrategy(reduce_strategy=strategy))

    expected = trained_alone("float64", feeds)
    for name in expected:
        np.testing.assert_allclose(scope[name], expected[name], rtol=1e-6, atol=1e-12, err_msg=name)


# --- the same numbers, whoever was first ----------------------------------------------------------


@pytest.mark.parametrize("strategy", list(ReduceStrategy))
@pytest.mark.parametrize("flags", [{}, {"enable_backward_optimizer_op_deps": False}])
def test_runs_repeat_to_the_bit_with_any_number_of_threads(strategy, flags):
    feeds = batches(5, 11)
    build = {"reduce_strategy": strategy, **flags}

    scopes = [
        trained_by_replicas(
            "float32", feeds, 4, BuildStrategy(**build), ExecutionStrategy(num_threads=threads)
        )
        for threads in (1, 2, 4, 7)
    ]

    for scope in scopes[1:]:
        for name in scope:
            np.testing.assert_array_equal(scope[name], scopes[0][name], err_msg=name)


def test_all_reduce_and_reduce_give_the_same_bits():
    feeds = batches(5, 11)

    one, other = (
        trained_by_replicas("float32", feeds, 3, BuildStrategy(reduce_strategy=strategy))
        for strategy in ReduceStrategy
    )

    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


OPTIMIZERS = {
    "sgd": lambda: psrt.optimizer.Sgd(0.1),
    "momentum": lambda: psrt.optimizer.Momentum(0.1, momentum=0.9),
    "adam": lambda: psrt.optimizer.Adam(0.1),
    "lazy adam": lambda: psrt.optimizer.Adam(0.1, lazy_mode=True),
    "lars": lambda: psrt.optimizer.LarsMomentum(0.1, momentum=0.9),
    "lamb": lambda: psrt.optimizer.Lamb(0.1),
}


def trained_by_one_copy(optimizer: str, build: BuildStrategy) -> psrt.Scope:
    """A matrix and a table that are large enough to be updated in parts, or not if the optimizer
    takes norms of them."""
    with psrt.program(seed=3) as program:
        ids = layers.data("ids", shape=(40,), dtype="int64")
        rows = layers.flatten(layers.embedding(ids, (2000, 12), is_sparse=True))
        loss = layers.mean(layers.square(layers.fc(rows, 19)))
        OPTIMIZERS[optimizer]().minimize(loss)
    scope = psrt.Scope()
    scope.init_parameters(program)
    rng = np.random.default_rng(1)
    with ParallelExecutor(program, scope, 3, build) as executor:
        for _ in range(3):
            executor.run({"ids": rng.integers(0, 2000, (30, 40))}, roles=ALL)
    return scope


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_updates_in_parts_give_the_bits_of_whole_ones(optimizer, fused):
    """With a copy of the parameters for each replica nothing is cut but the sums."""
    one, each = (
        trained_by_one_copy(
            optimizer, BuildStrategy(reduce_strategy=strategy, fuse_all_optimizer_ops=fused)
        )
        for strategy in (ReduceStrategy.Reduce, ReduceStrategy.AllReduce)
    )

    for name in one:
        np.testing.assert_array_equal(one[name], each[name], err_msg=name)


def test_program_order_changes_no_bit():
    feeds = batches(3, 6)

    ordered = trained_by_replicas(
        "float32", feeds, 2, BuildStrategy(enable_sequential_execution=True)
    )

    free = trained_by_replicas("float32", feeds, 2, BuildStrategy())
    for name in free:
        np.testing.assert_array_equal(ordered[name], free[name], err_msg=name)


def test_adjusted_gradients_are_those_of_the_whole_batch():
    """Clipping by the norm of each replica's gradient would give another direction."""
    grad_clip = psrt.clip.ByGlobalNorm(0.01)
    with psrt.program(seed=3) as program:
        x, y = layers.data("x", (5,)), layers.data("label")
        loss = layers.mean(layers.square_error_cost(layers.fc(layers.fc(x, 4), 1), y))
        psrt.optimizer.Momentum(
            0.1, regularization=psrt.regularizer.L2Decay(0.1), grad_clip=grad_clip
        ).minimize(loss)
    feeds = [{name: feed[name] for name in ("x", "label")} for feed in batches(3, 7)]

    def trained(make):
        scope = psrt.Scope()
        scope.init_parameters(program, "float64")
        executor = make(scope)
        for feed in feeds:
            executor.run(feed, roles=ALL)
        return scope

    expected = trained(lambda scope: psrt.Executor(program, scope, dtype="float64"))
    for strategy in ReduceStrategy:
        build = BuildStrategy(reduce_strategy=strategy)
        scope = trained(lambda s: ParallelExecutor(program, s, 3, build, dtype="float64"))  # noqa: B023
        for name in expected:
            np.testing.assert_allclose(scope[name], expected[name], rtol=1e-9, err_msg=name)


# --- shares, fetches, gradients -------------------------------------------------------------------


def test_shares_are_as_even_as_can_be():
    cut = [(share.start, share.stop) for share in shares(7, 3)]

    assert cut == [(0, 3), (3, 5), (5, 7)]
    assert sum(not share.is_empty for share in shares(2, 4)) == 2
    assert sum(share.weight for share in shares(7, 3)) == pytest.approx(1)


def predictions() -> tuple[psrt.Program, list[str]]:
    with psrt.program() as program:
        x, label = layers.data("x", (5,)), layers.data("label")
        ids = layers.data("ids", dtype="int64", ragged=True)
        layers.data("word", shape=(2,), dtype="int64")
        logit = layers.fc(x, 1)
        score = layers.auc(logit, label, from_logits=True)
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, label))
        rows = layers.embedding(ids, (40, 2))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    return program, [logit.name, loss.name, score.name, rows.name]


def test_fetched_values_are_merged_to_those_of_the_batch():
    program, names = predictions()
    scopes = [psrt.Scope(), psrt.Scope()]
    for scope in scopes:
        scope.init_parameters(program)
    feed = batches(1, 7)[0]

    with ParallelExecutor(program, scopes[0], 3) as executor:
        logit, loss, score, rows = executor.run(feed, names)

    expected = psrt.Executor(program, scopes[1]).run(feed, names)
    np.testing.assert_allclose(logit, expected[0], rtol=1e-6)
    np.testing.assert_allclose(loss, expected[1], rtol=1e-6)
    np.testing.assert_allclose(score, expected[2], rtol=1e-12)
    np.testing.assert_array_equal(rows.values, expected[3].values)
    np.testing.assert_array_equal(rows.offsets, expected[3].offsets)


def test_sums_are_added_means_weighed_and_what_is_no_batchs_left_alone():
    with psrt.program() as program:
        x = layers.data("x", (5,))
        hidden = layers.fc(x, 3)
        w = layers.create_parameter((2, 2))
        fetched = [
            layers.reduce_sum(hidden),
            layers.reduce_max(hidden),
            layers.reduce_min(hidden, dim=0),
            layers.reduce_mean(hidden, dim=0),
            layers.reduce_sum(layers.square(w)),
        ]
    scope = psrt.Scope()
    scope.init_parameters(program)
    feed = {"x": batches(1, 7)[0]["x"]}
    forward = ("forward",)

    with ParallelExecutor(program, scope, 3) as executor:
        found = executor.run(feed, fetched, roles=forward)

    expected = psrt.Executor(program, scope).run(feed, fetched, roles=forward)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_examples_against_examples_cannot_be_merged():
    with psrt.program() as program:
        x = layers.data("x", (5,))
        scores = layers.matmul(x, x, transpose_y=True)
    feed = {"x": batches(1, 7)[0]["x"]}

    with ParallelExecutor(program, psrt.Scope(), 2) as executor:
        with pytest.raises(ProgramError, match="examples against examples"):
            executor.run(feed, [scores], roles=("forward",))
        (parts,) = executor.run(feed, [scores], roles=("forward",), return_merged=False)

    assert [part.shape for part in parts] == [(4, 4), (3, 3)]


def test_fetched_values_may_be_had_by_replica():
    program, names = predictions()
    scope = psrt.Scope()
    scope.init_parameters(program)

    with ParallelExecutor(program, scope, 3) as executor:
        (logits,) = executor.run(batches(1, 7)[0], names[:1], return_merged=False)

    assert [len(part) for part in logits] == [3, 2, 2]


def test_values_of_replicas_are_merged_where_they_are_named():
    program, (logits, *_) = predictions()
    scope = psrt.Scope()
    scope.init_parameters(program)

    with ParallelExecutor(program, scope, 3) as executor:
        named, parts = (
            executor.run(batches(1, 7)[0], [logits, logits], return_merged={logits}),
            executor.run(batches(1, 7)[0], [logits], return_merged={"another"}),
        )

    assert [len(value) for value in named] == [7, 7]
    assert [len(part) for part in parts[0]] == [3, 2, 2]


@pytest.mark.parametrize("examples", [2, 5])
def test_a_value_for_the_whole_batch_may_be_fed_for_each_replica(examples):
    with psrt.program() as program:
        x, pair = layers.data("x", shape=(2,)), layers.data("pair", shape=(2,), whole=True)
        seen = [layers.elementwise_mul(x, pair).name, layers.scale(pair, 1.0).name]
    feed = {"x": np.ones((examples, 2), np.float32)}
    shares = min(examples, 3)
    each = np.arange(shares * 2, dtype=np.float64)

    with ParallelExecutor(program, psrt.Scope(), 3) as executor:
        rows, pairs = executor.run(
            feed | {"pair": each}, seen, roles=("forward",), return_merged={seen[0]}
        )
        one, _ = executor.run(feed | {"pair": each[:2]}, seen, roles=("forward",))
        with pytest.raises(DataError, match=r"declared with shape \(2,\), but fed with shape"):
            executor.run(feed | {"pair": np.zeros(10)}, seen, roles=("forward",))

    np.testing.assert_array_equal(np.concatenate(pairs), each)
    np.testing.assert_array_equal(rows[0], each[:2])
    np.testing.assert_array_equal(rows[-1], each[-2:])
    np.testing.assert_array_equal(one, np.tile(each[:2], (examples, 1)))


def test_gradients_are_those_of_the_whole_batch():
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)
    feed = batches(1, 9)[0]

    with ParallelExecutor(program, scope, 2) as executor:
        executor.run(feed)
        found = executor.gradients()

    alone = psrt.Executor(program, scope)
    alone.run(feed)
    for name, gradient in alone.gradients().items():
        if isinstance(gradient, psrt.SelectedRows):
            np.testing.assert_array_equal(found[name].ids, gradient.ids)
            found[name], gradient = found[name].values, gradient.values
        np.testing.assert_allclose(found[name], gradient, rtol=1e-4, atol=1e-7, err_msg=name)


def test_gradients_handed_out_stay_during_the_next_run():
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)
    first, second = batches(2, 9)

    with ParallelExecutor(program, scope, 2) as executor:
        executor.run(first)
        handed = executor.gradients()["fc_0.w_0"]
        before = handed.copy()
        executor.run(second)

    np.testing.assert_array_equal(handed, before)


@pytest.mark.parametrize(
    ("strategy", "factor"), [("CoeffNumDevice", 1), ("One", 3), ("Customized", 30)]
)
def test_gradient_scale_strategy_says_what_the_gradient_begins_with(strategy, factor):
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)
    feed = batches(1, 9)[0]
    alone = psrt.Executor(program, scope)
    alone.run(feed)
    expected = alone.gradients()["fc_1.b_0"].copy()

    scale = BuildStrategy.GradientScaleStrategy[strategy]
    build = BuildStrategy(gradient_scale_strategy=scale)
    start = next(op for op in program.ops if op.type == "loss_gradient").outputs["out"][0]
    fed = {**feed, start: np.array(10.0)} if strategy == "Customized" else feed
    with ParallelExecutor(program, scope, 3, build) as executor:
        executor.run(fed)
        found = executor.gradients()["fc_1.b_0"]

    np.testing.assert_allclose(found, factor * expected, rtol=1e-5)


def test_a_test_executor_shares_the_parameters_of_the_one_that_trains():
    program, loss = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)
    feed = batches(1, 8)[0]
    with ParallelExecutor(program, scope, 2) as trainer:
        tester = ParallelExecutor(program.clone(for_test=True), share_vars_from=trainer)
        (before,) = tester.run(feed, [loss], roles=("forward",))
        for _ in range(5):
            trainer.run(feed, roles=ALL)
        (after,) = tester.run(feed, [loss], roles=("forward",))
        tester.close()

    assert after < before


# --- what goes wrong ------------------------------------------------------------------------------


def test_the_first_error_names_op_layer_and_line_and_no_parameter_has_changed():
    with psrt.program() as program:
        ids = layers.data("ids", (1,), "int64")
        x = layers.fc(layers.flatten(layers.embedding(ids, (5, 3))), 2)
        loss = layers.mean(x)
        psrt.optimizer.Sgd(0.1).minimize(loss)
    scope = psrt.Scope()
    scope.init_parameters(program)
    before = {name: scope[name].copy() for name in scope}

    with ParallelExecutor(program, scope, 2) as executor:
        with pytest.raises(ProgramError, match=r"op embedding of layer embedding_0 .*Id 7"):
            executor.run({"ids": np.array([[1], [2], [3], [7]])}, roles=ALL)
        for name in before:
            np.testing.assert_array_equal(scope[name], before[name])
        executor.run({"ids": np.array([[1], [2], [3], [4]])}, roles=ALL)

    assert not np.array_equal(scope["fc_0.w_0"], before["fc_0.w_0"])


@pytest.mark.parametrize(
    ("replicas", "build"), [(2, {}), (3, {"reduce_strategy": "Reduce"}), (1, {"async_mode": True})]
)
def test_a_batch_without_examples_is_a_step_as_it_is_of_one_executor(replicas, build):
    program, loss = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)
    feeds = [*batches(2, 6), *batches(1, 0), *batches(1, 5)]

    with ParallelExecutor(program, scope, replicas, BuildStrategy(**build)) as executor:
        done = executor.run_from(feeds, [loss], roles=ALL)

    assert (done.batches, done.examples) == (4, 17)
    expected = trained_alone("float32", feeds)
    for name in expected:
        np.testing.assert_allclose(scope[name], expected[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_cpu_num_says_how_many_replicas_there_are(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "3")
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)

    with ParallelExecutor(program, scope) as executor:
        (parts,) = executor.run(batches(1, 6)[0], ["fc_1.out"], return_merged=False)

    assert len(parts) == 3


def test_an_executor_needs_a_replica():
    with pytest.raises(ConfigError, match="replicas=0"):
        ParallelExecutor(classifier()[0], psrt.Scope(), 0)


def test_a_strategy_in_use_and_an_unknown_field_are_refused():
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)
    build, how = BuildStrategy(), ExecutionStrategy()
    ParallelExecutor(program, scope, 1, build, how).close()

    with pytest.raises(ConfigError, match="BuildStrategy is in use"):
        build.memory_optimize = True
    with pytest.raises(ConfigError, match=r"no field num_thread.*num_threads"):
        ExecutionStrategy().num_thread = 2


def test_a_closed_executor_says_so():
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)
    executor = ParallelExecutor(program, scope, 2)
    executor.close()

    with pytest.raises(ProgramError, match="was closed"):
        executor.run(batches(1, 4)[0])


def test_ctrl_c_in_an_op_is_not_an_error_of_the_program(monkeypatch):
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)

    def interrupted():
        raise KeyboardInterrupt

    with ParallelExecutor(program, scope, 2) as executor:
        steps = executor._replicas[1].compiled.steps["forward"]
        op, step = steps[3]
        steps[3] = (op, interrupted)
        with pytest.raises(KeyboardInterrupt):
            executor.run(batches(1, 4)[0])
        executor._planner._graphs.clear()
        steps[3] = (op, step)
        executor.run(batches(1, 4)[0])


# --- memory, drawing ------------------------------------------------------------------------------


def test_memory_is_given_back_now_and_then_and_results_stay():
    feeds = batches(4, 6)

    kept = trained_by_replicas("float32", feeds, 2, BuildStrategy())

    dropped = trained_by_replicas(
        "float32", feeds, 2, BuildStrategy(), ExecutionStrategy(num_iteration_per_drop_scope=1)
    )
    for name in kept:
        np.testing.assert_array_equal(dropped[name], kept[name], err_msg=name)


def peak_of(run: Callable[[], Any]) -> int:
    """Bytes that were in use at once of those that `run` allocated."""
    tracemalloc.start()
    run()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak_bytes


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_steady_step_allocates_nothing_large(replicas):
    """Ids of a batch are sorted out anew; nothing as large as an activation is.

    There are few ids, so that their arrays, of all replicas at once, stay well below the bound. A
    thread that happens to do something for the first time makes memory for it, so one of some
    steps counts.
    """
    rows, width = 512, 256
    with psrt.program() as program:
        ids, label = layers.data("ids", (4,), "int64"), layers.data("label")
        pooled = layers.slot_embeddings([ids], (1000, width), is_distributed=False)
        hidden = layers.fc(layers.fc(pooled, width, act="relu"), width, act="tanh")
        loss = layers.mean(layers.square_error_cost(layers.fc(hidden, 1), label))
        psrt.optimizer.Adagrad(0.1).minimize(loss)
    scope = psrt.Scope()
    scope.init_parameters(program)
    rng = np.random.default_rng(0)
    feed = {"ids": rng.integers(0, 1000, (rows, 4)), "label": np.ones((rows, 1), np.float32)}

    with ParallelExecutor(program, scope, replicas) as executor:
        for _ in range(3):
            executor.run(feed, roles=ALL)
        peaks_bytes = [peak_of(lambda: executor.run(feed, roles=ALL)) for _ in range(4)]

    assert min(peaks_bytes) < rows // replicas * width * 4


def test_one_run_may_train_several_times_on_its_batch():
    feed = batches(1, 6)

    often = trained_by_replicas(
        "float32", feed, 2, BuildStrategy(), ExecutionStrategy(num_iteration_per_run=3)
    )

    expected = trained_by_replicas("float32", feed * 3, 2, BuildStrategy())
    for name in expected:
        np.testing.assert_array_equal(often[name], expected[name], err_msg=name)


def test_the_graph_is_drawn_where_asked(tmp_path):
    path = tmp_path / "graph.dot"

    trained_by_replicas("float32", batches(1, 6), 2, BuildStrategy(debug_graphviz_path=str(path)))

    drawn = path.read_text()
    assert drawn.startswith("digraph")
    assert 'label="replica 1"' in drawn
    assert "sums of gradients, part 2 of 2" in drawn


def test_more_threads_than_replicas_sum_each_gradient_by_itself(tmp_path):
    path = tmp_path / "graph.dot"
    build = BuildStrategy(debug_graphviz_path=str(path))

    trained_by_replicas("float32", batches(1, 6), 2, build, ExecutionStrategy(num_threads=3))

    assert re.search("sums? of gradients? .*fc_0.w_0@GRAD", path.read_text())


# --- until the data end ---------------------------------------------------------------------------


def test_the_end_of_the_data_is_a_normal_event():
    program, loss = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)
    feeds = [*batches(3, 6), *batches(1, 2)]

    with ParallelExecutor(program, scope, 2) as executor:
        done = executor.run_from(iter(feeds), [loss], roles=ALL)

    assert (done.batches, done.examples) == (4, 20)
    assert float(done.fetched[0]) > 0


def test_replicas_that_do_not_wait_run_every_batch_once_and_learn():
    program, loss = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)
    feed = batches(1, 12)[0]
    (before,) = psrt.Executor(program, scope).run(feed, [loss])

    with ParallelExecutor(program, scope, 3, BuildStrategy(async_mode=True)) as executor:
        done = executor.run_from([feed] * 60, [loss], roles=ALL)

    (after,) = psrt.Executor(program, scope).run(feed, [loss])
    assert (done.batches, done.examples) == (60, 720)
    assert after < 0.9 * before


def test_one_replica_that_waits_for_nobody_is_one_executor():
    feeds = batches(5, 6)
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)

    with ParallelExecutor(program, scope, 1, BuildStrategy(async_mode=True)) as executor:
        executor.run_from(feeds, roles=ALL)

    expected = trained_alone("float32", feeds)
    for name in expected:
        np.testing.assert_array_equal(scope[name], expected[name], err_msg=name)


def test_a_run_before_does_not_weigh_what_replicas_do_alone():
    feed = batches(1, 6)[0]
    scopes = []
    for runs_before in (0, 1):
        program, _ = classifier()
        scopes.append(psrt.Scope())
        scopes[-1].init_parameters(program)
        build = BuildStrategy(async_mode=True)
        with ParallelExecutor(program, scopes[-1], 2, build) as executor:
            for _ in range(runs_before):
                executor.run(feed)
            executor.run_from([feed], roles=ALL)

    for name in scopes[0]:
        np.testing.assert_array_equal(scopes[0][name], scopes[1][name], err_msg=name)


def test_an_error_of_one_replica_stops_those_that_do_not_wait():
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)
    good = batches(1, 6)[0]
    bad = {**good, "word": np.full((6, 2), 99)}
    seen = []

    def source():
        for number in range(1000):
            seen.append(number)
            yield bad if number == 5 else good

    with (
        ParallelExecutor(program, scope, 2, BuildStrategy(async_mode=True)) as executor,
        pytest.raises(ProgramError, match=r"op embedding .*Id 99"),
    ):
        executor.run_from(source(), roles=ALL)

    assert len(seen) < 1000


def test_gradients_of_replicas_that_do_not_wait_are_pushed_one_by_one():
    program, _ = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)

    class Sink:
        pushed = 0

        def offer(self, name, gradient):
            raise AssertionError("replicas that do not wait offer nothing")

        def push(self, gradients):
            Sink.pushed += 1

    build = BuildStrategy(async_mode=True)
    with ParallelExecutor(program, scope, 2, build, sink=Sink()) as executor:
        executor.run_from(batches(4, 6) * 5)

    assert Sink.pushed == 20


@pytest.mark.parametrize("strategy", list(ReduceStrategy))
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_step_that_fails_in_backward_counts_and_updates_nothing(strategy, threads):
    with psrt.program(seed=2) as program:
        x = layers.data("x", shape=(100,))
        loss = layers.mean(layers.fc(layers.fc(x, 100, act="relu"), 1))
        psrt.optimizer.Adam(0.1).minimize(loss)
    scope = psrt.Scope()
    scope.init_parameters(program)
    before = {name: scope[name].copy() for name in scope}
    build, how = BuildStrategy(reduce_strategy=strategy), ExecutionStrategy(num_threads=threads)

    with ParallelExecutor(program, scope, 2, build, how) as executor:
        backward = executor._replicas[1].compiled.steps["backward"]
        op, step = backward[-1]

        def fail() -> None:
            raise ValueError("staged")

        backward[-1] = (op, fail)
        feed = {"x": np.ones((8, 100), np.float32)}
        with pytest.raises(ProgramError, match="staged"):
            executor.run(feed, roles=ALL)
        counted = [
            update.pace.steps
            for replica in executor._replicas
            for update in replica.compiled.updates.values()
        ]
        for name, value in before.items():
            np.testing.assert_array_equal(scope[name], value, err_msg=name)
        assert set(counted) == {0}

        backward[-1] = (op, step)
        executor._planner._graphs.clear()
        executor.run(feed, roles=ALL)
        updates = executor._replicas[0].compiled.updates.values()
        assert {update.pace.steps for update in updates} == {1}


@pytest.mark.parametrize("has_run", [False, True])
def test_the_threads_of_an_executor_that_was_dropped_end(has_run):
    program, loss = classifier()
    scope = psrt.Scope()
    scope.init_parameters(program)
    before = set(threading.enumerate())
    executor = ParallelExecutor(program, scope, 3)
    if has_run:
        executor.run(batches(1, 9)[0], [loss], roles=ALL)
    started = set(threading.enumerate()) - before

    del executor
    gc.collect()

    assert len(started) == 2
    for thread in started:
        thread.join(10.0)
        assert not thread.is_alive()
