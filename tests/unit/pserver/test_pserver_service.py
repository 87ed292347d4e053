"""The service behind real clients without sockets: rounds, retries, foreign processes, waits."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.core.errors import (
    ConfigError,
    DeadlineError,
    ErrorCode,
    JobError,
    PsrtError,
    TableError,
    UnavailableError,
    WireError,
)
from psrt.kernels.tables.initialize import fill_rows
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.serving import Peer
from psrt.rpc.wire import PULL_DENSE, PULL_ROWS, PUSH_DENSE, PUSH_ROWS
from psrt.rpc.wire.frames import Message
from tests.support.carriers import eventually
from tests.support.clock import ManualClock
from tests.support.inproc import Fault
from tests.support.pserver import CALL_TIMEOUT_S, InprocPserver, inproc_pserver, register

RULE: dict[str, Any] = {
    "initializer": specs.Uniform(-0.1, 0.1),
    "optimizer": specs.Sgd(),
    "learning_rate": specs.ConstantRate(0.5),
    "seed": 3,
}
DENSE = specs.DenseTableSpec("w", "w", (4,), 0, 4, **RULE)
SPARSE = specs.SparseTableSpec("emb", 2, **RULE)
IDS = np.array([5, -9, 2**62], np.int64)
NONE = np.zeros(4, np.float32)


def call(client: Client, method: Method, *parts: tuple[int, str], **fields: Any) -> Message:
    """One call; `tensors=` go with `parts`, `key=False` leaves the push key out."""
    tensors = fields.pop("tensors", ())
    has_key = fields.pop("key", method in (Method.PUSH, Method.EXCHANGE))
    timeout_s = fields.pop("timeout_s", CALL_TIMEOUT_S)
    header = pb.Header(**fields)
    for kind, table in parts:
        header.parts.add(kind=kind, table=table)
    if has_key:
        header.push_key.CopyFrom(client.next_push_key())
    return client.call(method, header=header, tensors=tensors, timeout_s=timeout_s)


def exchange(client: Client, gradient: float, **fields: Any) -> np.ndarray:
    """Push `gradient` to every element of `w` and pull it back."""
    tensors = [np.full(4, gradient, np.float32)]
    parts = (PUSH_DENSE, "w"), (PULL_DENSE, "w")
    return call(client, Method.EXCHANGE, *parts, tensors=tensors, **fields).tensors[0]


def push_rows(client: Client, ids: np.ndarray, gradients: np.ndarray, **fields: Any) -> Message:
    return call(client, Method.PUSH, (PUSH_ROWS, "emb"), tensors=[ids, gradients], **fields)


def pull(client: Client) -> np.ndarray:
    return call(client, Method.PULL, (PULL_DENSE, "w")).tensors[0]


def side_by_side(*jobs: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result(60.0) for future in [pool.submit(job) for job in jobs]]


def waiting_trainers(pserver: InprocPserver) -> list[int]:
    return list(pserver.service.status()["waiting"])


# --- rounds ----------------------------------------------------------------------------------


def test_a_round_applies_the_mean_and_every_trainer_pulls_its_result() -> None:
    with inproc_pserver(trainers=2) as pserver:
        one, two = pserver.join(0, DENSE), pserver.join(1, DENSE)
        before = pull(one).copy()

        results = side_by_side(lambda: exchange(one, 1.0), lambda: exchange(two, 3.0))

    for result in results:
        np.testing.assert_allclose(result, before - 0.5 * 2.0, atol=1e-7)


def test_a_row_of_one_trainer_is_divided_by_the_number_of_trainers() -> None:
    ids = [np.array([5, -9], np.int64), np.array([-9, 77], np.int64)]
    ones = np.ones((2, 2), np.float32)
    with inproc_pserver(trainers=2) as pserver:
        clients = [pserver.join(trainer, SPARSE) for trainer in range(2)]
        wanted = np.array([5, -9, 77], np.int64)

        replies = side_by_side(
            *(
                lambda i=i: call(
                    clients[i],
                    Method.EXCHANGE,
                    (PUSH_ROWS, "emb"),
                    (PULL_ROWS, "emb"),
                    tensors=[ids[i], ones, wanted],
                )
                for i in range(2)
            )
        )

    initial = np.empty((3, 2), np.float32)
    fill_rows(RULE["initializer"], 3, wanted, initial)
    expected = initial - np.float32(0.5) * np.array([[0.5], [1.0], [0.5]], np.float32)
    np.testing.assert_allclose(replies[0].tensors[0], expected, atol=1e-7)
    assert replies[0].tensors[0].tobytes() == replies[1].tensors[0].tobytes()


@pytest.mark.parametrize(("step", "taken"), [(1, 0.25), (0, 0.5)])
def test_an_exchange_without_gradients_arrives_and_is_averaged_in_if_it_was_a_step(
    step: int, taken: float
) -> None:
    with inproc_pserver(trainers=2) as pserver:
        one, two = pserver.join(0, DENSE), pserver.join(1)
        before = pull(one).copy()

        result, _ = side_by_side(
            lambda: exchange(one, 1.0, step=1), lambda: call(two, Method.EXCHANGE, step=step)
        )

    np.testing.assert_allclose(result, before - taken, atol=1e-7)


def three_rounds(order: tuple[int, ...]) -> bytes:
    """Three trainers arrive in `order` in each of three rounds; the bits of the rows afterwards."""
    rng = np.random.default_rng(0)
    pushes = rng.standard_normal((3, 3, 40, 2), np.float32)
    ids = np.stack([[rng.permutation(60)[:40] for _ in range(3)] for _ in range(3)])
    with inproc_pserver(trainers=3, stripes=1 + order[0]) as pserver:
        clients = [pserver.join(trainer, SPARSE) for trainer in range(3)]
        with ThreadPoolExecutor(3) as pool:
            for round in range(3):
                futures = []
                for place, trainer in enumerate(order):
                    tensors = [ids[round, trainer], pushes[round, trainer]]
                    arrive = pool.submit(
                        call,
                        clients[trainer],
                        Method.EXCHANGE,
                        (PUSH_ROWS, "emb"),
                        tensors=tensors,
                        round=round,
                    )
                    futures.append(arrive)
                    if place < 2:
                        arrived = sorted(order[: place + 1])
                        eventually(lambda a=arrived: waiting_trainers(pserver) == a, "arrival")
                for future in futures:
                    future.result(60.0)
        reply = call(clients[0], Method.PULL, (PULL_ROWS, "emb"), tensors=[np.arange(60)])
        return reply.tensors[0].tobytes()


def test_the_order_of_arrival_and_the_number_of_stripes_change_no_bit() -> None:
    assert three_rounds((0, 1, 2)) == three_rounds((2, 0, 1)) == three_rounds((1, 2, 0))


def test_a_learning_rate_schedule_counts_rounds() -> None:
    spec = specs.DenseTableSpec(
        **{**vars(DENSE), "learning_rate": specs.PiecewiseDecay((1,), (1.0, 0.25))}
    )
    with inproc_pserver() as pserver:
        client = pserver.join(0, spec)
        before = pull(client).copy()

        first = exchange(client, 1.0).copy()
        second = exchange(client, 1.0)

    np.testing.assert_allclose(first, before - 1.0, atol=1e-6)
    np.testing.assert_allclose(second, before - 1.25, atol=1e-6)


def test_a_completed_trainer_lets_the_waiting_round_close() -> None:
    with inproc_pserver(trainers=2) as pserver, ThreadPoolExecutor(1) as pool:
        one, two = pserver.join(0, DENSE), pserver.join(1, DENSE)
        before = pull(one).copy()
        waits = pool.submit(exchange, one, 1.0)
        eventually(lambda: waiting_trainers(pserver) == [0], "the first push")

        call(two, Method.COMPLETE)
        after = waits.result(60.0)

    np.testing.assert_allclose(after, before - 0.5, atol=1e-7)


# --- buckets --------------------------------------------------------------------------------


FURTHER = replace(DENSE, name="v", parameter="v", section=1)


def test_tables_of_two_sections_have_rounds_of_their_own() -> None:
    with inproc_pserver(trainers=2) as pserver, ThreadPoolExecutor(1) as pool:
        one, two = (pserver.join(trainer, DENSE, FURTHER) for trainer in (0, 1))
        waits = pool.submit(exchange, one, 1.0)
        eventually(lambda: waiting_trainers(pserver) == [0], "the first push")

        further = side_by_side(lambda: exchange_further(one), lambda: exchange_further(two))

        assert pserver.service.status()["rounds"] == [(0, 0), (1, 1)]
        exchange(two, 1.0)
        waits.result(60.0)
        assert pserver.service.status()["rounds"] == [(0, 1), (1, 1)]
    assert further[0].tobytes() == further[1].tobytes()


def test_a_call_about_tables_of_two_sections_is_refused_and_changes_none() -> None:
    with inproc_pserver() as pserver:
        client = pserver.join(0, DENSE, FURTHER)
        before = pull(client).copy()
        parts, tensors = ((PUSH_DENSE, "w"), (PUSH_DENSE, "v")), [np.ones(4, np.float32)] * 2

        with pytest.raises(WireError, match=r"tables of buckets \[0, 1\]"):
            call(client, Method.EXCHANGE, *parts, tensors=tensors)

        np.testing.assert_array_equal(pull(client), before)


def exchange_further(client: Client) -> np.ndarray:
    parts = (PUSH_DENSE, "v"), (PULL_DENSE, "v")
    tensors = [np.ones(4, np.float32)]
    return call(client, Method.EXCHANGE, *parts, tensors=tensors).tensors[0].copy()


# --- faults ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.RESET_AFTER, Fault.DUPLICATE, Fault.RESET_BEFORE])
def test_an_exchange_whose_message_suffers_is_applied_once(fault: Fault) -> None:
    with inproc_pserver() as pserver:
        client = pserver.join(0, DENSE)
        before = pull(client).copy()
        pserver.server.faults.script(fault, Method.EXCHANGE)

        exchange(client, 1.0)
        after = exchange(client, 1.0)

    np.testing.assert_allclose(after, before - 1.0, atol=1e-6)


@pytest.mark.parametrize("fault", [Fault.RESET_AFTER, Fault.DUPLICATE, Fault.RESET_BEFORE])
def test_a_push_whose_message_suffers_is_applied_once(fault: Fault) -> None:
    with inproc_pserver(mode=specs.Async()) as pserver:
        client = pserver.join(0, SPARSE)
        pserver.server.faults.script(fault, Method.PUSH)

        push_rows(client, IDS, np.ones((3, 2), np.float32), step=1)
        rows = call(client, Method.PULL, (PULL_ROWS, "emb"), tensors=[IDS])

    initial = np.empty((3, 2), np.float32)
    fill_rows(RULE["initializer"], 3, IDS, initial)
    np.testing.assert_allclose(rows.tensors[0], initial - 0.5, atol=1e-7)
    assert rows.header.parts[0].version == 1


def test_a_retry_of_one_trainer_attaches_to_the_round_that_waits_for_the_other() -> None:
    with inproc_pserver(trainers=2) as pserver:
        one, two = pserver.join(0, DENSE), pserver.join(1, DENSE)
        before = pull(one).copy()
        pserver.server.faults.script(Fault.DUPLICATE, Method.EXCHANGE)

        result, _ = side_by_side(lambda: exchange(one, 1.0), lambda: exchange(two, 1.0))
        counters = pserver.service.status()["counters"]

    np.testing.assert_allclose(result, before - 0.5, atol=1e-7)
    assert counters["pserver_pushes"] == 2
    assert counters["pserver_pushes_repeated"] == 1


def test_a_wait_that_is_over_names_the_missing_trainer() -> None:
    clock = ManualClock()
    with inproc_pserver(trainers=2, clock=clock) as pserver, ThreadPoolExecutor(1) as pool:
        client = pserver.join(0, DENSE)
        waits: Future[Any] = pool.submit(exchange, client, 1.0)
        eventually(lambda: waiting_trainers(pserver) == [0], "the push")

        clock.advance(20.0)
        pserver.service.expire()

        with pytest.raises(DeadlineError, match=r"waited 20.0 s for trainer 1 \(never seen\)"):
            waits.result(60.0)


def test_the_deadline_thread_ends_a_wait_by_itself() -> None:
    with inproc_pserver(trainers=2, wait_timeout_s=0.05) as pserver:
        client = pserver.join(0, DENSE)

        with pytest.raises(DeadlineError, match="trainer 1"):
            exchange(client, 1.0)


def test_a_caller_with_little_patience_gets_the_reason_before_it_gives_up() -> None:
    clock, patience_s = ManualClock(), 60.0
    service = inproc_pserver(trainers=2, clock=clock, wait_timeout_s=600.0)
    with service as pserver, ThreadPoolExecutor(1) as pool:
        client = pserver.join(0, DENSE)
        waits = pool.submit(exchange, client, 1.0, timeout_s=patience_s)
        eventually(lambda: waiting_trainers(pserver) == [0], "the push")

        clock.advance(0.96 * patience_s)
        pserver.service.expire()

        with pytest.raises(DeadlineError, match="still waits for trainer 1"):
            waits.result(60.0)


def test_under_abort_every_trainer_hears_who_was_lost() -> None:
    with inproc_pserver(trainers=2, mode=specs.Sync("abort"), wait_timeout_s=0.05) as pserver:
        one, two = pserver.join(0, DENSE), pserver.join(1, DENSE)

        with pytest.raises(JobError, match="for trainer 1"):
            exchange(one, 1.0)
        with pytest.raises(JobError, match="for trainer 1"):
            exchange(two, 1.0)


def test_under_shrink_the_rest_goes_on_with_its_own_mean() -> None:
    with inproc_pserver(trainers=2, mode=specs.Sync("shrink"), wait_timeout_s=0.05) as pserver:
        one, _ = pserver.join(0, DENSE), pserver.join(1, DENSE)
        before = pull(one).copy()

        after = exchange(one, 1.0)

    np.testing.assert_allclose(after, before - 0.5, atol=1e-7)


def test_stopping_hands_the_open_round_back() -> None:
    with inproc_pserver(trainers=2) as pserver, ThreadPoolExecutor(1) as pool:
        client = pserver.join(0, DENSE)
        waits = pool.submit(exchange, client, 1.0)
        eventually(lambda: waiting_trainers(pserver) == [0], "the push")

        pserver.service.stop()

        with pytest.raises(UnavailableError, match="shutting down") as refused:
            waits.result(60.0)
        assert refused.value.code is ErrorCode.STOPPING


def test_a_defect_while_applying_ends_the_job_instead_of_hanging_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*args: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("psrt.pserver.serving.effect_runner.close_round", broken)
    with inproc_pserver() as pserver:
        client = pserver.join(0, DENSE)

        with pytest.raises(PsrtError, match="round 0 could not be applied") as failed:
            exchange(client, 1.0)

    assert failed.value.code is ErrorCode.INTERNAL


def test_a_round_that_finds_no_memory_ends_the_job_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*args: object) -> None:
        raise MemoryError("8 bytes")

    monkeypatch.setattr("psrt.pserver.serving.effect_runner.close_round", full)
    with inproc_pserver() as pserver:
        client = pserver.join(0, DENSE)
        errors = [refused(client, Method.EXCHANGE, (PUSH_DENSE, "w"), tensors=[NONE])]
        errors += [refused(client, Method.EXCHANGE, (PUSH_DENSE, "w"), tensors=[NONE])]

    assert {error.code for error in errors} == {ErrorCode.TABLE_FULL}
    assert "round 0 could not be applied to 'w': there is no memory (8 bytes)." in str(errors[0])


def test_a_push_that_a_table_refuses_keeps_the_code_and_names_push_and_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*args: object) -> None:
        raise TableError("it is full.", code=ErrorCode.TABLE_FULL, hint="Make room.")

    monkeypatch.setattr("psrt.pserver.serving.effect_runner.apply_now", full)
    with inproc_pserver(mode=specs.Async()) as pserver:
        tensors = [IDS, np.ones((3, 2), np.float32)]
        client = pserver.join(0, SPARSE)
        error = refused(client, Method.PUSH, (PUSH_ROWS, "emb"), tensors=tensors)

    assert (error.code, error.hint) == (ErrorCode.TABLE_FULL, "Make room.")
    assert "the push of trainer 0 could not be applied to 'emb': it is full. A part" in str(error)


def test_a_reply_that_finds_no_memory_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise MemoryError("8 bytes")

    with inproc_pserver() as pserver:
        client = pserver.join(0, DENSE)
        monkeypatch.setattr("psrt.pserver.serving.step_calls.read", full)
        error = refused(client, Method.PULL, (PULL_DENSE, "w"))

    assert error.code is ErrorCode.TABLE_FULL
    assert "of trainer 0 was given up: no memory (MemoryError('8 bytes'))" in error.message


def test_a_push_with_too_many_steps_harms_no_other_trainer() -> None:
    with inproc_pserver(trainers=2, mode=specs.Async()) as pserver:
        one, two = pserver.join(0, SPARSE), pserver.join(1, SPARSE)
        gradients = np.ones((3, 2), np.float32)

        with pytest.raises(WireError, match=r"covers .* mini-batches"):
            push_rows(one, IDS, gradients, step=(1 << 64) - 1)

        assert push_rows(two, IDS, gradients, step=1).header.step == 1


# --- strangers -------------------------------------------------------------------------------


def refused(client: Client, method: Method, *parts: tuple[int, str], **fields: Any) -> PsrtError:
    with pytest.raises(PsrtError) as error:
        call(client, method, *parts, **fields)
    return error.value


@pytest.mark.parametrize(
    "method",
    [Method.REGISTER, Method.PULL, Method.EXCHANGE, Method.PUSH, Method.MEET, Method.COMPLETE],
)
def test_a_call_before_hello_says_what_to_do(method: Method) -> None:
    key = pb.PushKey(incarnation=9, sequence=1)
    call_of_stranger = Message(pb.Header(protocol=1, method=method, push_key=key))
    with inproc_pserver() as pserver, pytest.raises(WireError) as error:
        pserver.service.handle(call_of_stranger, Peer("inproc", "a stranger"))

    assert "before any trainer sent HELLO" in error.value.message
    assert "HELLO" in error.value.hint


def test_a_process_that_was_replaced_is_told_so() -> None:
    with inproc_pserver() as pserver:
        former = pserver.join(0, DENSE)
        pserver.join(0, DENSE, incarnation=2000)

        error = refused(former, Method.EXCHANGE)

    assert error.code is ErrorCode.TRAINER_LOST
    assert "another process has joined as trainer 0" in error.message


def test_an_unknown_table_names_the_tables_that_exist() -> None:
    with inproc_pserver() as pserver:
        client = pserver.join(0, DENSE, SPARSE)

        error = refused(client, Method.PULL, (PULL_DENSE, "fc_9.w_0"))

    assert error.code is ErrorCode.TABLE_UNKNOWN
    assert "'fc_9.w_0' is not registered at this pserver, which has emb, w" in error.message


GRADIENT = np.ones(4, np.float32)
ROWS = np.ones((3, 2), np.float32)


@pytest.mark.parametrize(
    ("part", "tensors", "code", "words"),
    [
        ((PUSH_DENSE, "w"), [GRADIENT[:3]], "TABLE_SHAPE", "shape (3,), but shape (4,) is needed"),
        ((PUSH_DENSE, "w"), [np.ones(4)], "TABLE_SHAPE", "float64, but dtype float32"),
        ((PUSH_DENSE, "w"), [], "WIRE_GARBAGE", "too few tensors"),
        ((PUSH_DENSE, "w"), [GRADIENT, GRADIENT], "WIRE_GARBAGE", "more tensors than"),
        ((PUSH_DENSE, "emb"), [GRADIENT], "TABLE_SHAPE", "'emb' is sparse"),
        ((PUSH_ROWS, "w"), [IDS, ROWS], "TABLE_SHAPE", "'w' is dense"),
        ((PUSH_ROWS, "emb"), [IDS, ROWS[:2]], "TABLE_SHAPE", "(2, 2), but shape (3, 2)"),
        ((PUSH_ROWS, "emb"), [IDS, ROWS.T.copy()], "TABLE_SHAPE", "(2, 3), but shape (3, 2)"),
        ((PUSH_ROWS, "emb"), [IDS.astype(np.int32), ROWS], "TABLE_SHAPE", "int32, but dtype int64"),
        ((PUSH_ROWS, "emb"), [IDS.reshape(1, 3), ROWS], "TABLE_SHAPE", "shape (n,) is needed"),
        ((9, "w"), [], "WIRE_GARBAGE", "unknown kind"),
    ],
)
def test_a_part_that_does_not_fit_is_refused_before_admission(
    part: tuple[int, str], tensors: list[np.ndarray], code: str, words: str
) -> None:
    with inproc_pserver(trainers=2) as pserver:
        client = pserver.join(0, DENSE, SPARSE)
        header = pb.Header(push_key=pb.PushKey(incarnation=1000, sequence=1))
        header.parts.add(kind=part[0], table=part[1])

        with pytest.raises(PsrtError) as error:
            client.call(Method.EXCHANGE, header=header, tensors=tensors, timeout_s=5.0)
        waiting = waiting_trainers(pserver)

    assert error.value.code.name == code
    assert words in error.value.message
    assert waiting == []


def test_ids_of_another_pserver_are_refused_before_admission() -> None:
    share = specs.SparseTableSpec("emb", 2, **RULE, first_shard=0, last_shard=1)
    with inproc_pserver(mode=specs.Async()) as pserver:
        client = pserver.join(0, share)

        with pytest.raises(TableError, match="holds shards 0 to 0"):
            push_rows(client, np.arange(100), np.ones((100, 2), np.float32))
        status = pserver.service.status()

    assert status["tables"][0]["rows"] == 0
    assert status["global_step"] == 0


def test_a_push_without_a_key_is_refused() -> None:
    with inproc_pserver() as pserver:
        client = pserver.join(0, DENSE)

        error = refused(client, Method.EXCHANGE, key=False)

    assert "without a push key" in error.message


def test_a_table_with_another_spec_is_refused_and_both_specs_are_named() -> None:
    wider = specs.SparseTableSpec("emb", 9, **RULE)
    with inproc_pserver() as pserver:
        client = pserver.join(0, DENSE, SPARSE)
        register(client, SPARSE)

        with pytest.raises(TableError, match=r"width: 2 != 9") as error:
            register(client, wider)

    assert error.value.code is ErrorCode.TABLE_CONFLICT


def test_two_specs_of_one_name_in_one_call_are_refused() -> None:
    wider = specs.SparseTableSpec("emb", 9, **RULE)
    with inproc_pserver() as pserver:
        client = pserver.join(0)

        with pytest.raises(TableError, match=r"'emb' is registered with .* width: 2 != 9"):
            register(client, SPARSE, DENSE, wider)
        assert pserver.service.status()["tables"] == []
        register(client, SPARSE, DENSE, SPARSE)

        names = [table["name"] for table in pserver.service.status()["tables"]]
    assert sorted(names) == ["emb", "w"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ('{"kind":"Sgd"}', "not a table spec"),
        ('{"kind":"Table"}', "unknown kind"),
        ('{"kind":[1]}', "unknown kind of type list"),
        ("[" * 100_000, "not JSON"),
        (specs.to_json(specs.SparseTableSpec("", 2, **RULE)), "name"),
        (specs.to_json(specs.SparseTableSpec("t", 0, **RULE)), "width"),
        (specs.to_json(specs.SparseTableSpec("t", 2, **RULE, last_shard=2000)), "virtual shards"),
        (specs.to_json(specs.SparseTableSpec("t", 2, **{**RULE, "seed": 2**70})), "seed"),
        (
            specs.to_json(specs.SparseTableSpec("t", 2, **{**RULE, "optimizer": "fast"})),
            "optimizer",
        ),
        (
            specs.to_json(
                specs.SparseTableSpec("t", 2, **{**RULE, "initializer": specs.Constant(10**400)})
            ),
            "not a finite number",
        ),
        (
            specs.to_json(specs.DenseTableSpec("t", "t", (4,), 2, 4, **RULE)),
            "are outside a parameter",
        ),
        (specs.to_json(specs.DenseTableSpec("t", "t", (4,), 0, 2**60, **RULE)), "elements"),
    ],
)
def test_a_spec_that_is_not_usable_is_refused(text: str, words: str) -> None:
    with inproc_pserver() as pserver:
        client = pserver.join(0)
        header = pb.Header(register=pb.Register(specs=[text]))

        with pytest.raises(PsrtError, match=words):
            client.call(Method.REGISTER, header=header, timeout_s=5.0)
        tables = pserver.service.status()["tables"]

    assert tables == []


def test_a_hello_of_another_mode_names_both() -> None:
    with inproc_pserver(trainers=2) as pserver:
        pserver.join(0)
        other = pserver.client(1, mode=specs.Async())

        with pytest.raises(WireError, match=r"mode is .*Async.* at the trainer"):
            other.connect(CALL_TIMEOUT_S)


def test_a_mode_with_a_setting_that_means_nothing_is_refused() -> None:
    with (
        inproc_pserver(mode=specs.Geo(0)) as pserver,
        pytest.raises(ConfigError, match="update_frequency = 0"),
    ):
        pserver.client(0).connect(CALL_TIMEOUT_S)


# --- reading ---------------------------------------------------------------------------------


def test_export_reads_all_rows_over_the_wire() -> None:
    ids = np.arange(500, dtype=np.int64) * 7919
    with inproc_pserver(mode=specs.Async()) as pserver:
        client = pserver.join(0, SPARSE)
        push_rows(client, ids, np.ones((500, 2), np.float32))

        seen: list[int] = []
        cursor = -1
        while cursor:
            export = pb.Export(table="emb", cursor=max(cursor, 0), max_rows=64)
            reply = call(client, Method.EXPORT, export=export)
            seen += reply.tensors[0].tolist()
            cursor = reply.header.export_reply.next_cursor

    assert sorted(seen) == ids.tolist()


def test_a_page_size_out_of_range_is_refused() -> None:
    with inproc_pserver() as pserver:
        client = pserver.join(0, SPARSE)

        error = refused(client, Method.EXPORT, export=pb.Export(table="emb"))

    assert "pages of 0 rows" in error.message


def test_status_tells_members_tables_and_staleness_as_json() -> None:
    with inproc_pserver(mode=specs.Async(), trainers=2) as pserver:
        client = pserver.join(0, DENSE, SPARSE)
        ones = np.ones((3, 2), np.float32)
        push_rows(client, IDS, ones, step=2)
        push_rows(client, IDS, ones, step=2)

        status = json.loads(call(client, Method.STATUS).header.status_json)

    assert status["mode"] == "Async"
    assert status["global_step"] == 4
    assert [record["state"] for record in status["trainers"]] == ["running", "unseen"]
    assert {table["name"]: table["version"] for table in status["tables"]} == {"w": 0, "emb": 2}
    assert status["counters"]["pserver_rows_applied"] == 6
    assert status["counters"]["pserver_staleness_0"] == 1
    assert status["counters"]["pserver_staleness_1"] == 1


def test_trainers_push_side_by_side_in_async_and_lose_nothing() -> None:
    spec = specs.SparseTableSpec("emb", 2, **{**RULE, "initializer": specs.Constant(0.0)})
    ids = np.arange(300, dtype=np.int64)
    with inproc_pserver(mode=specs.Async(), trainers=3) as pserver:
        clients = [pserver.join(trainer, spec) for trainer in range(3)]
        ones = np.ones((300, 2), np.float32)
        start = threading.Barrier(3)

        def train(client: Client) -> None:
            start.wait(10.0)
            for _ in range(20):
                push_rows(client, ids, ones, step=1)

        side_by_side(*(lambda c=c: train(c) for c in clients))
        rows = call(clients[0], Method.PULL, (PULL_ROWS, "emb"), tensors=[ids]).tensors[0]
        step = pserver.service.status()["global_step"]

    np.testing.assert_array_equal(rows, -30.0)
    assert step == 60
