"""ConnectedExecutor on real pservers: steps in every mode, early ends, errors, what is left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import DataError, ProgramError, PsrtError, UnavailableError
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync
from psrt.graph.program import Program
from psrt.partition.transpiler import DistributeTranspiler, TrainerProgram
from psrt.partition.transpiler_config import DistributeTranspilerConfig
from psrt.pserver.serving.service import PserverService
from psrt.trainer.training.connected import ConnectedExecutor
from tests.support.carriers import eventually
from tests.support.cluster import Feed, in_threads
from tests.support.live_pservers import LivePserver, free_port, live_pservers

LOSS = "mean_0.out"
RATE = 0.02  # at which late gradients do no harm
ROWS, WIDTH, BIG_BATCH, STEPS = 30, 4, 16, 12
MODES = [Sync(), HalfAsync(), Async(), Async(dc_asgd=0.04), Ssp(1), Geo(3)]


def model(optimizer: Any = None, is_distributed: bool = True) -> tuple[Program, str]:
    """A regression from a sparse table, a distributed one and dense numbers."""
    with psrt.program(seed=3) as program:
        near = layers.data("near", shape=(2,), dtype="int64")
        far = layers.data("far", shape=(1,), dtype="int64")
        x = layers.data("x", shape=(3,))
        y = layers.data("y")
        start = psrt.initializer.Uniform(-0.1, 0.1)
        tables = [
            layers.embedding(near, (ROWS, WIDTH), True, param=psrt.Param("near_rows", start)),
            layers.embedding(
                far, (ROWS, WIDTH), True, is_distributed, param=psrt.Param("far_rows", start)
            ),
        ]
        flat = [layers.flatten(rows) for rows in tables]
        hidden = layers.fc(layers.concat([*flat, x], axis=1), 8, act="tanh", param="w")
        frozen = layers.fc(hidden, 4, param=psrt.Param("frozen", trainable=False), bias=False)
        loss = layers.mean(layers.square_error_cost(layers.fc([hidden, frozen], 1), y))
        (optimizer or psrt.optimizer.Sgd(RATE)).minimize(loss)
    return program, loss.name


def big_batches(steps: int = STEPS) -> list[Feed]:
    rng = np.random.default_rng(11)
    batches = []
    for _ in range(steps):
        near, x = rng.integers(0, ROWS, (BIG_BATCH, 2)), rng.standard_normal((BIG_BATCH, 3))
        far = rng.integers(0, ROWS, (BIG_BATCH, 1))
        y = x[:, :1] + np.where(near[:, :1] % 2, 1.0, -1.0)
        batch = {"near": near, "far": far, "x": x.astype("f"), "y": y.astype("f")}
        batches.append(batch)
    return batches


def share(batches: Sequence[Feed], trainer: int, trainers: int = 2) -> list[Feed]:
    size = BIG_BATCH // trainers
    part = slice(trainer * size, (trainer + 1) * size)
    return [{name: values[part] for name, values in batch.items()} for batch in batches]


def parts(
    pservers: Sequence[LivePserver],
    program: Program,
    mode: CommunicationMode | None = None,
    trainers: int = 2,
) -> list[TrainerProgram]:
    """The program of each trainer, from the transpiler."""
    found = []
    for trainer in range(trainers):
        config = DistributeTranspilerConfig(min_block_size=8)
        transpiler = DistributeTranspiler(config)
        endpoints = [pserver.endpoint for pserver in pservers]
        transpiler.transpile(program, trainer, endpoints, trainers, mode or Sync())
        found.append(transpiler.get_trainer_program())
    return found


def connected(part: TrainerProgram, **how: Any) -> ConnectedExecutor:
    return ConnectedExecutor(part, call_timeout_s=30.0, connect_timeout_s=30.0, **how)


def one_process(optimizer: Any = None) -> psrt.Scope:
    """The truth: the big batch in one process, which holds both tables whole."""
    program, _ = model(optimizer, is_distributed=False)
    scope = psrt.Scope()
    scope.init_parameters(program)
    executor = psrt.Executor(program, scope)
    for batch in big_batches():
        executor.run(batch, roles=("forward", "backward", "optimize"))
    return scope


def trained_by_two(
    mode: CommunicationMode,
    body: Callable[[ConnectedExecutor, int], None],
    pservers: int = 2,
    **how: Any,
) -> list[ConnectedExecutor]:
    """Two trainers at once, each running `body` and then stopping."""
    program, _ = model()
    with live_pservers(pservers) as live:
        executors = [connected(part, **how) for part in parts(live, program, mode)]

        def trainer(number: int) -> None:
            with executors[number] as executor:
                body(executor, number)

        in_threads([lambda: trainer(0), lambda: trainer(1)])
    return executors


def run_share(executor: ConnectedExecutor, trainer: int) -> None:
    for feed in share(big_batches(), trainer):
        executor.run(feed)


def assert_equal(found: psrt.Scope, truth: psrt.Scope, within: float = 1e-5) -> None:
    """All dense parameters."""
    names = [name for name in truth if not name.endswith("_rows")]
    assert len(names) > 3
    for name in names:
        assert np.abs(found[name] - truth[name]).max() <= within, name


# --- training -------------------------------------------------------------------------------------


@pytest.mark.parametrize("pservers", [1, 2])
@pytest.mark.parametrize("replicas", [1, 2])
def test_sync_by_two_trainers_equals_one_process_with_the_big_batch(
    pservers: int, replicas: int
) -> None:
    executors = trained_by_two(Sync(), run_share, pservers, replicas=replicas)

    truth = one_process()
    for executor in executors:
        assert_equal(executor.scope, truth)


def test_run_from_trains_as_single_runs_do() -> None:
    def all_at_once(executor: ConnectedExecutor, trainer: int) -> None:
        done = executor.run_from(share(big_batches(), trainer))
        assert (done.batches, done.examples) == (STEPS, STEPS * BIG_BATCH // 2)

    one_by_one, at_once = (trained_by_two(Sync(), run) for run in (run_share, all_at_once))

    for name in one_by_one[0].scope:
        assert one_by_one[0].scope[name].tobytes() == at_once[0].scope[name].tobytes(), name


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
@pytest.mark.parametrize("replicas", [1, pytest.param(2, marks=pytest.mark.long)])
def test_every_mode_learns(mode: CommunicationMode, replicas: int) -> None:
    losses: dict[int, list[float]] = {}

    def train(executor: ConnectedExecutor, trainer: int) -> None:
        batches = share(big_batches(), trainer) * 12
        seen = losses.setdefault(trainer, [])
        executor.run_from(batches, [LOSS], lambda found: seen.append(float(found[0])))

    trained_by_two(mode, train, replicas=replicas)

    for seen in losses.values():
        assert np.mean(seen[-STEPS:]) < 0.5 * np.mean(seen[:STEPS])


@pytest.mark.parametrize("mode", [Sync(), Geo(3)], ids=lambda mode: type(mode).__name__)
def test_after_the_end_trainers_agree_on_every_bit(mode: CommunicationMode) -> None:
    one, other = trained_by_two(mode, run_share)

    for name in one.scope:
        assert one.scope[name].tobytes() == other.scope[name].tobytes(), name


def test_rows_that_training_touched_are_read_from_every_pserver() -> None:
    rows: dict[str, dict[int, np.ndarray]] = {}

    def train(executor: ConnectedExecutor, trainer: int) -> None:
        run_share(executor, trainer)
        executor.barrier("trained")
        if trainer == 0:
            for table in ("near_rows", "far_rows"):
                pages = executor.rows(table)
                rows[table] = {
                    int(i): row for ids, page in pages for i, row in zip(ids, page, strict=True)
                }

    trained_by_two(Sync(), train)

    truth = one_process()
    for table, found in rows.items():
        looked_up = {
            int(i) for batch in big_batches() for i in batch[table.removesuffix("_rows")].flat
        }
        assert found.keys() == looked_up
        for number, row in found.items():
            np.testing.assert_allclose(row, truth[table][number], atol=1e-5)


# --- fetches and feeds ----------------------------------------------------------------------------


@contextmanager
def alone(**how: Any) -> Iterator[ConnectedExecutor]:
    """One trainer of one pserver; closed in the end."""
    with live_pservers(1) as pservers:
        (part,) = parts(pservers, model()[0], trainers=1)
        executor = connected(part, **how)
        try:
            yield executor
        finally:
            executor.close()


def test_fetched_parameters_are_those_after_the_step() -> None:
    feed = big_batches(1)[0]
    with alone() as executor:
        executor.start()
        before = executor.scope["w"].copy()

        loss, after = executor.run(feed, [LOSS, "w"])

        assert np.isfinite(loss)
        assert (after != before).any()
        np.testing.assert_array_equal(after, executor.scope["w"])


def test_values_of_replicas_may_be_fetched_apart() -> None:
    feed = big_batches(1)[0]
    with alone(replicas=2) as executor:
        (apart,) = executor.run(feed, [LOSS], return_merged=False)
    with alone() as executor:
        (one,) = executor.run(feed, [LOSS], return_merged=False)

    assert len(apart) == 2
    assert len(one) == 1
    assert np.mean(apart) == pytest.approx(float(one[0]), rel=1e-5)


def test_a_frozen_parameter_keeps_the_value_the_scope_has() -> None:
    program, _ = model()
    scope = psrt.Scope()
    scope["frozen"] = np.full((8, 4), 0.5, np.float32)
    with live_pservers(1) as pservers:
        (part,) = parts(pservers, program, trainers=1)
        with connected(part, scope=scope) as executor:
            executor.run(big_batches(1)[0])

    assert (scope["frozen"] == 0.5).all()


def test_a_batch_that_does_not_fit_is_refused_and_the_next_one_trains() -> None:
    feed = big_batches(1)[0]
    incomplete = {name: values for name, values in feed.items() if name != "near"}
    with alone() as executor:
        with pytest.raises(DataError, match="does not feed near"):
            executor.run(incomplete)

        (loss,) = executor.run(feed, [LOSS])

    assert np.isfinite(loss)


def test_another_program_reads_rows_from_the_pservers() -> None:
    program, loss = model()
    feed = big_batches(1)[0]
    with alone() as executor:
        executor.run(feed)
        test = psrt.Executor(program.clone(for_test=True), executor.scope, executor.source)

        (tested,) = test.run(feed, [loss], roles=("forward",))

        (trained,) = executor.run(feed, [loss])
        assert float(np.asarray(tested)) == pytest.approx(float(trained), rel=1e-5)


# --- the other trainers ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_a_trainer_with_less_data_does_not_hold_up_the_other(mode: CommunicationMode) -> None:
    steps: list[int] = []

    def train(executor: ConnectedExecutor, trainer: int) -> None:
        batches = share(big_batches(), trainer)
        steps.append(executor.run_from(batches[: 3 if trainer else STEPS]).batches)

    trained_by_two(mode, train)

    assert sorted(steps) == [3, STEPS]


def test_a_trainer_without_data_completes_by_stopping() -> None:
    def train(executor: ConnectedExecutor, trainer: int) -> None:
        if trainer == 0:
            run_share(executor, trainer)

    executors = trained_by_two(Sync(), train)

    assert_equal(executors[1].scope, executors[0].scope, within=np.inf)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_who_waits_for_the_others_has_what_all_of_them_learned(mode: CommunicationMode) -> None:
    def train(executor: ConnectedExecutor, trainer: int) -> None:
        if trainer:
            executor.run_from(share(big_batches(), trainer))
        else:
            executor.run(share(big_batches(), trainer)[0])
            executor.wait_for_others()

    first, second = trained_by_two(mode, train)

    assert_equal(first.scope, second.scope, within=1e-6)


def test_a_barrier_opens_when_all_trainers_have_come() -> None:
    """Trainer 1 comes only once trainer 0 has been seen waiting."""
    come: list[int] = []
    with live_pservers(1) as pservers:
        executors = [connected(part) for part in parts(pservers, model()[0])]
        service = pservers[0].service

        def trainer(number: int) -> None:
            with executors[number] as executor:
                executor.start()
                if number:
                    eventually(lambda: is_waiting(service, 0), "trainer 0 at the barrier")
                    assert come == []
                executor.barrier("half-way")
                come.append(number)

        in_threads([lambda: trainer(0), lambda: trainer(1)])

    assert sorted(come) == [0, 1]


def is_waiting(service: PserverService, trainer: int) -> bool:
    return any(trainer in clock["waiting"] for clock in service.status()["clocks"])


# --- the start and the end ------------------------------------------------------------------------


def test_a_trainer_waits_for_a_pserver_that_is_not_up_yet_and_says_which() -> None:
    port, said, waiting = free_port(), list[str](), threading.Event()

    def say(line: str) -> None:
        said.append(line)
        waiting.set()

    (part,) = part_at(port)
    executor = connected(part, say=say)
    with executor, ThreadPoolExecutor(1) as pool:
        started = pool.submit(executor.start)
        assert waiting.wait(30.0)
        with live_pservers(1, port):
            started.result(30.0)
            executor.run(big_batches(1)[0])
            executor.stop()

    assert f"waiting for pserver 127.0.0.1:{port}" in said[0]


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_batch_without_examples_changes_nothing_and_holds_up_nobody(replicas: int) -> None:
    def body(executor: ConnectedExecutor, trainer: int) -> None:
        run_share(executor, trainer)
        executor.run({name: values[:0] for name, values in big_batches(1)[0].items()})

    executors = trained_by_two(Sync(), body, replicas=replicas)

    for executor in executors:
        assert_equal(executor.scope, one_process())


def test_in_geo_a_trainer_with_another_rate_is_refused() -> None:
    with live_pservers(1) as live:
        programs = [model(psrt.optimizer.Sgd(rate))[0] for rate in (0.05, 5.0)]
        ours, others = (parts(live, program, Geo(2))[k] for k, program in enumerate(programs))
        executor, refused = connected(ours), connected(others)
        executor.start()
        with pytest.raises(PsrtError, match="optimizers that trainers run in geo differ"):
            refused.start()
        executor.close()


def test_without_wait_port_a_missing_pserver_is_an_error_at_once() -> None:
    port = free_port()
    (part,) = part_at(port, wait_port=False)

    with pytest.raises(UnavailableError, match=f"127.0.0.1:{port}"):
        connected(part).start()


def part_at(port: int, **fields: Any) -> list[TrainerProgram]:
    transpiler = DistributeTranspiler(DistributeTranspilerConfig(**fields))
    transpiler.transpile(model()[0], 0, [f"127.0.0.1:{port}"], 1)
    return [transpiler.get_trainer_program()]


def test_after_stop_every_use_says_that_the_trainer_has_completed() -> None:
    with alone() as executor:
        executor.run(big_batches(1)[0])
        executor.stop()
        executor.stop()

        for use in (lambda: executor.run(big_batches(1)[0]), executor.pull, executor.start):
            with pytest.raises(ProgramError, match="this trainer was stopped"):
                use()


def test_after_an_error_in_a_step_every_use_tells_it_again() -> None:
    with alone() as executor:
        with pytest.raises(ProgramError, match="no var nonsense"):
            executor.run(big_batches(1)[0], ["nonsense"])

        for use in (lambda: executor.run(big_batches(1)[0]), executor.stop):
            with pytest.raises(PsrtError, match=r"closed after an earlier error: .*nonsense"):
                use()


def test_an_error_of_the_users_reader_ends_the_training_as_itself() -> None:
    def reader() -> Iterator[Feed]:
        yield big_batches(1)[0]
        raise OSError("the disk is gone")

    with alone() as executor:
        with pytest.raises(OSError, match="the disk is gone"):
            executor.run_from(reader())

        with pytest.raises(PsrtError, match="earlier error: OSError: the disk is gone"):
            executor.run(big_batches(1)[0])


def test_a_block_that_fails_does_not_complete_the_trainer() -> None:
    def fail(fetched: list[Any]) -> None:
        raise ZeroDivisionError("the user's own")

    with live_pservers(1) as pservers:
        (part,) = parts(pservers, model()[0], trainers=1)
        with pytest.raises(ZeroDivisionError), connected(part) as executor:
            executor.run_from(big_batches(1), on_step=fail)

        (member,) = pservers[0].service.status()["trainers"]
        assert member["state"] == "running"


def test_trainers_of_different_programs_are_refused() -> None:
    with live_pservers(1) as pservers:
        (first, _), (_, second) = (
            parts(pservers, model(optimizer)[0]) for optimizer in (None, psrt.optimizer.Adam())
        )
        with connected(first) as early:
            early.start()
            with pytest.raises(PsrtError, match="learning_rate of"):
                connected(second).start()
            early.close()


def calls_of(pserver: LivePserver) -> float:
    return pserver.service.meters.counters.snapshot()["pserver_calls"]


@contextmanager
def one_trainer(
    program: Program, mode: CommunicationMode
) -> Iterator[tuple[LivePserver, ConnectedExecutor]]:
    with live_pservers(1) as (pserver,):
        part = parts([pserver], program, mode, trainers=1)[0]
        with connected(part) as executor:
            yield pserver, executor


@pytest.mark.parametrize("mode", [Sync(), HalfAsync()], ids=["sync", "half_async"])
def test_a_run_of_a_sparse_program_costs_one_round_trip(mode: CommunicationMode) -> None:
    program, loss = model()
    batches = big_batches(6)
    with one_trainer(program, mode) as (pserver, executor):
        executor.run(batches[0], [loss])
        before = calls_of(pserver)
        for batch in batches[1:]:
            executor.run(batch, [loss])

        assert calls_of(pserver) - before == len(batches) - 1


def test_reading_the_scope_between_runs_shows_the_update_of_the_last_one() -> None:
    program, loss = model()
    fetched, read = list[np.ndarray](), list[np.ndarray]()
    with one_trainer(program, Sync()) as (_, executor):
        for batch in big_batches(4):
            fetched.append(executor.run(batch, [loss, "w"])[1])
    with one_trainer(program, Sync()) as (_, executor):
        for batch in big_batches(4):
            executor.run(batch, [loss])
            read.append(executor.scope["w"].copy())

    np.testing.assert_array_equal(fetched, read)
