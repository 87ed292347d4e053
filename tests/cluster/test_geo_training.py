"""Geo with real services, communicators and executors, against local training in one process."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.config.load import load_job
from psrt.config.sections import TrainerConfig
from psrt.core import specs
from psrt.executor.strategies import ReduceStrategy
from psrt.graph.program import Program
from psrt.trainer.sessions import command
from psrt.trainer.training.local_parameters import LocalDenseParameters
from psrt.trainer.training.training_run import WITH_UPDATES
from tests.cluster.test_train_evaluate import run_trainers
from tests.support.cluster import Feed, Outcome, train
from tests.support.small_job import BATCH as JOB_BATCH
from tests.support.small_job import lines, write_files

ROWS, WIDTH, BATCH, STEPS = 40, 4, 12, 23
RULES = {
    "sgd": lambda: psrt.optimizer.Sgd(learning_rate=0.1),
    "momentum": lambda: psrt.optimizer.Momentum(learning_rate=0.05, momentum=0.9),
    "adam of all rows": lambda: psrt.optimizer.Adam(learning_rate=0.01, lazy_mode=False),
    "decayed": lambda: psrt.optimizer.Adagrad(
        learning_rate=specs.ExponentialDecay(0.1, 5, 0.9),
        regularization=psrt.regularizer.L2Decay(0.05),
    ),
}


def model(optimizer: str = "sgd", distributed: bool = False) -> tuple[Program, str]:
    with psrt.program(seed=3) as program:
        ids = layers.data("ids", shape=(3,), dtype="int64")
        dense = layers.data("dense", shape=(5,), dtype="float32")
        click = layers.data("click", shape=(1,), dtype="float32")
        rows = layers.embedding(ids, (ROWS, WIDTH), True, distributed)
        layer = layers.concat([layers.reshape(rows, (-1, 3 * WIDTH)), dense], axis=1)
        layer = layers.fc(layer, 16, act="tanh")
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(layers.fc(layer, 1), click))
        RULES[optimizer]().minimize(loss)
    return program, loss.name


def batches(trainer: int, steps: int = STEPS, first_id: int = 0, ids: int = ROWS) -> list[Feed]:
    rng = np.random.default_rng(11 + trainer)
    return [
        {
            "ids": first_id + rng.integers(0, ids, (BATCH, 3)),
            "dense": rng.standard_normal((BATCH, 5), dtype=np.float32),
            "click": rng.integers(0, 2, (BATCH, 1)).astype(np.float32),
        }
        for _ in range(steps)
    ]


def alone(optimizer: str, feeds: list[Feed]) -> Outcome:
    """The local executor, table in its scope."""
    program, loss = model(optimizer)
    scope = psrt.Scope()
    scope.init_parameters(program)
    executor = psrt.Executor(program, scope)
    losses = [
        float(executor.run(feed, [loss], roles=("forward", "backward", "optimize"))[0])
        for feed in feeds
    ]
    (table,) = [p.name for p in program.parameters.values() if p.sparse]
    dense = {name: scope[name] for name in program.parameters if name != table}
    return Outcome(dense, {table: dict(enumerate(scope[table]))}, [losses])


@pytest.mark.parametrize("optimizer", RULES)
@pytest.mark.parametrize("every", [1, 4, 100])
def test_one_trainer_gets_exactly_what_local_training_gives(optimizer: str, every: int) -> None:
    feeds = batches(0)
    truth = alone(optimizer, feeds)

    program, loss = model(optimizer)
    outcome = train(program, loss, [feeds], pservers=2, mode=specs.Geo(every))

    assert outcome.losses == truth.losses
    for name, values in outcome.dense.items():
        np.testing.assert_array_equal(values, truth.dense[name], name)
    (rows,), (expected,) = outcome.rows.values(), truth.rows.values()
    for row_id, row in rows.items():
        np.testing.assert_array_equal(row, expected[row_id])


@pytest.mark.parametrize("distributed", [False, True])
def test_two_trainers_learn_together_what_one_learns_from_all_batches(distributed: bool) -> None:
    program, loss = model(distributed=distributed)
    feeds = [batches(0, 60), batches(1, 60)]

    outcome = train(program, loss, feeds, pservers=2, mode=specs.Geo(5))

    first, last = (
        np.mean(np.array(outcome.losses)[:, part]) for part in (slice(10), slice(-10, None))
    )
    assert last < first
    (rows,) = outcome.rows.values()
    assert len(rows) == ROWS


def test_disjoint_work_adds_up_exactly_to_the_work_of_each() -> None:
    """Trainer t only trains rows of its own, by a loss that has no other parameters."""
    with psrt.program(seed=3) as program:
        ids = layers.data("ids", shape=(3,), dtype="int64")
        rows = layers.embedding(ids, (ROWS, WIDTH), is_sparse=True)
        loss = layers.mean(layers.square(rows))
        psrt.optimizer.Adagrad(learning_rate=0.1).minimize(loss)
    feeds = [
        [{"ids": feed["ids"]} for feed in batches(t, 9, first_id=10 * t, ids=10)] for t in (0, 1, 2)
    ]

    together = train(program, loss.name, feeds, pservers=2, mode=specs.Geo(2))

    (table,) = together.rows
    for trainer, feed in enumerate(feeds):
        own = train(program, loss.name, [feed], pservers=1, mode=specs.Geo(2)).rows[table]
        assert sorted(own) == list(range(10 * trainer, 10 * trainer + 10))
        for row_id, row in own.items():
            np.testing.assert_allclose(together.rows[table][row_id], row, atol=1e-6)


@pytest.mark.parametrize("every", [1, 7])
def test_trainers_with_different_numbers_of_batches_end_with_the_same_parameters(
    every: int,
) -> None:
    program, loss = model("momentum")

    outcome = train(
        program, loss, [batches(0, 3), batches(1, 31), batches(2, 1)], 2, specs.Geo(every)
    )

    assert [len(losses) for losses in outcome.losses] == [3, 31, 1]
    for replica in outcome.replicas:
        for name, values in outcome.dense.items():
            np.testing.assert_array_equal(replica[name], values, name)


def test_replicas_of_a_geo_trainer_train_as_those_of_a_trainer_alone(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(40 * JOB_BATCH, seed=1)], "geo")
    config, report = load_job(str(job), environ={}).config, tmp_path / "report.json"
    alone = TrainerConfig(local=True, cpu_num=2, report=str(report))
    assert command.train(alone, config, print) == 0

    (told,) = run_trainers(config, 1, cpu_num=2)

    expected = json.loads(report.read_text())
    for key in ("loss", "train_auc", "test_loss", "test_auc"):
        assert told[key] == pytest.approx(expected[key], abs=1e-6), key


def test_the_rate_decays_by_the_steps_of_all_trainers() -> None:
    program, _ = model("decayed")
    scope = psrt.Scope()
    scope.init_parameters(program)
    executor = psrt.Executor(program, scope)
    LocalDenseParameters(program, scope, executor).agreed(1000)  # 0.1 · 0.9 ^ 200 is nothing
    before = {name: scope[name].copy() for name in program.parameters}

    executor.run(batches(0, 1)[0], roles=WITH_UPDATES)

    for name, values in before.items():
        np.testing.assert_allclose(scope[name], values, atol=1e-8)


def test_copies_of_replicas_are_taken_anew_when_parameters_were_agreed_on() -> None:
    program, loss = model()
    scope = psrt.Scope()
    scope.init_parameters(program)
    all_reduce = psrt.BuildStrategy(reduce_strategy=ReduceStrategy.AllReduce)
    everything, feed = ("forward", "backward", "optimize"), batches(0, 1)[0]
    with psrt.ParallelExecutor(program, scope, 2, all_reduce) as executor:
        executor.run(feed, [loss], roles=everything)
        for name in program.parameters:
            scope[name][:] = 0
        LocalDenseParameters(program, scope, executor).agreed(0)

        (measured,) = executor.run(feed, [loss], roles=everything)

    np.testing.assert_allclose(measured, np.log(2.0), atol=1e-6)
