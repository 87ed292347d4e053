"""Tables of PyTorch trainers in every mode, on real pservers: pushes count once, none stalls."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.errors import ErrorCode, JobError, ProgramError, PsrtError  # noqa: E402
from psrt.core.specs import Async, Constant, Ssp, Sync  # noqa: E402
from psrt.rpc.methods import Method  # noqa: E402
from tests.support.live_pservers import LivePserver, live_pservers  # noqa: E402
from tests.support.torch_sessions import TIMEOUT_S, trained  # noqa: E402

WIDTH, STEPS, TRAINERS = 4, 6, 2
EVERY_ID = np.arange(20)
MODES = ["sync", "async", "ssp", "half_async"]


@pytest.fixture
def pservers() -> Iterator[list[LivePserver]]:
    with live_pservers(2) as started:
        yield started


def bag():
    zeros = Constant(0.0)
    return pt.EmbeddingBag(WIDTH, "items", mode="sum", optimizer=pt.optim.SGD(1.0), init=zeros)


def step(module, tables, ids, scale=1.0):
    """One step that adds -scale to the rows of `ids`."""
    (module(torch.tensor([ids])).sum() * scale).backward()
    tables.step()
    tables.zero_grad()


def rows(session):
    return session.pull({"items": EVERY_ID})["items"].copy()


@pytest.mark.parametrize(("mode", "reduce"), [("sync", "mean"), *((mode, "sum") for mode in MODES)])
def test_each_push_of_uneven_trainers_counts_once(pservers, mode, reduce) -> None:
    """A ledger: trainer r takes STEPS + 3r steps, and adds 1 to the row of each; the steps that
    one takes alone are as long."""
    completed = threading.Event()

    def train(session, rank):
        items = bag()
        tables = pt.TableOptimizer(items, reduce)
        for number in range(STEPS + 3 * rank):
            step(items, tables, [number, number + 10], -1.0)
        if rank == 0:
            session.complete()
            completed.set()
            return None
        assert completed.wait(TIMEOUT_S)
        session.backend.flush()
        return rows(session)

    _, last = trained(pservers, mode, train)

    expected = np.zeros(len(EVERY_ID), np.float32)
    for rank in range(TRAINERS):
        for number in range(STEPS + 3 * rank):
            expected[[number, number + 10]] += 1
    if reduce == "mean":
        expected = np.minimum(expected, 1)
    np.testing.assert_array_equal(last, np.repeat(expected[:, None], WIDTH, 1))


@pytest.mark.parametrize("mode", [Ssp(max_steps_ahead=0), "sync", "async", "half_async"])
def test_skipped_steps_stall_nobody(pservers, mode) -> None:
    """Trainer 1 skips every step, by zero_grad or an infinite loss, trainer 2 has empty batches
    and evaluates; without psrt's empty steps trainer 0 would wait for them."""

    def train(session, rank):
        items = bag()
        tables = pt.TableOptimizer(items)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
        for number in range(4):
            if rank == 2:
                with torch.no_grad():
                    items(torch.tensor([[number]]))
                none = torch.empty(0, dtype=torch.int64)
                items(none, torch.tensor([0])).sum().backward()
                tables.step()
                continue
            loss = items(torch.tensor([[number]])).sum() * (float("inf") if rank else 1.0)
            scaler.scale(loss).backward()
            if rank and number % 2:
                tables.zero_grad()
                continue
            scaler.step(tables)
            scaler.update()
        session.backend.flush()
        return rows(session)

    changed, *_ = trained(pservers, mode, train, trainers=3)

    share = 1 / 2 if mode == "sync" else 1 / 3  # in the mean of a round a skipped step has no share
    np.testing.assert_allclose(changed[:4], np.full((4, WIDTH), -share), rtol=1e-6)


def test_pushes_that_wait_keep_the_rate_of_their_optimizer(pservers) -> None:
    """The step of one optimizer waits in the queue while another one steps its own table."""

    def train(session, rank):
        one, other = (pt.Embedding(WIDTH, n, optimizer=pt.optim.SGD(1.0)) for n in ("one", "other"))
        before = session.pull({"one": [1], "other": [1]})
        for module, rate in ((one, 0.5), (other, 0.25)):
            tables = pt.TableOptimizer(module)
            tables.param_groups[0]["lr"] = rate
            module(torch.tensor([1])).sum().backward()
            tables.step()
        session.flush()
        after = session.pull({"one": [1], "other": [1]})
        return {name: float((after[name] - before[name])[0, 0]) for name in after}

    waits = Async(send_queue_size=8, max_merge_var_num=8, send_wait_times=1000)
    (changes,) = trained(pservers, waits, train, trainers=1)

    assert changes == pytest.approx({"one": -0.5, "other": -0.25})


def test_a_forked_worker_may_not_look_up_and_training_goes_on(pservers) -> None:
    class Looks(torch.utils.data.Dataset):  # type: ignore[name-defined]
        def __init__(self, module) -> None:
            self.module = module

        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> str:
            try:
                self.module(torch.tensor([[index]]))
            except ProgramError as error:
                return str(error)
            return "looked up"

    def train(session, rank):
        items = bag()
        tables = pt.TableOptimizer(items)
        step(items, tables, [1])
        found = list(torch.utils.data.DataLoader(Looks(items), num_workers=1))
        step(items, tables, [1])
        session.backend.flush()
        return found, rows(session)[1, 0]

    ((found, last),) = trained(pservers[:1], "async", train, trainers=1)

    assert "was forked from it; nothing was sent" in found[0][0]
    assert last == -2.0


def test_in_async_rows_lack_no_more_own_steps_than_the_mode_allows(pservers) -> None:
    mode = Async(send_queue_size=2, thread_pool_size=1)
    bound = mode.send_queue_size + mode.thread_pool_size
    progress = threading.Condition()
    steps, applied, lacking = 0, 0, []
    push = pservers[0].service._methods[Method.PUSH]

    def late(message):
        """Hold a push until the trainer is as far ahead of it as it may be."""
        nonlocal applied
        with progress:
            may_go = progress.wait_for(lambda: steps >= min(applied + bound, STEPS), TIMEOUT_S)
        assert may_go, "the trainer was held back earlier than the mode allows"
        reply = push(message)
        with progress:
            applied += message.header.step
            lacking.append(steps - applied)
        return reply

    pservers[0].service._methods[Method.PUSH] = late

    def train(session, rank):
        nonlocal steps
        items = bag()
        tables = pt.TableOptimizer(items)
        for number in range(STEPS):
            step(items, tables, [number])
            with progress:
                steps += 1
                lacking.append(steps - applied)
                progress.notify_all()

    trained(pservers[:1], mode, train, trainers=1)

    assert applied == STEPS
    assert max(lacking) <= bound


@pytest.mark.parametrize("mode", ["async", Sync(on_trainer_loss="wait")], ids=str)
def test_a_rank_that_is_started_again_alone_would_repeat_batches_and_is_refused(
    pservers, mode
) -> None:
    endpoints = [each.endpoint for each in pservers]
    given = {"trainer_id": 0, "trainers": 1, "timeout_s": TIMEOUT_S}

    def killed():
        with pt.connect(endpoints, mode, **given) as session:
            items, batches = bag(), pt.Resumable([[1], [2]])
            step(items, pt.TableOptimizer(items), next(iter(batches)))
            session.flush()
            session.close()  # without a report, as a killed process

    killed()
    with pytest.raises(JobError, match="rank 0 takes the place of a process that has trained"):
        killed()
    with pt.connect(endpoints, mode, **given) as session:  # any data, as from a queue
        items = bag()
        step(items, pt.TableOptimizer(items), [1])
        session.flush()
        assert rows(session)[1, 0] == -2.0


def test_an_error_of_an_earlier_push_is_raised_by_the_next_step(pservers) -> None:
    failed = threading.Event()

    def refuse(message):
        failed.set()
        raise JobError("trainer 1 left", code=ErrorCode.TRAINER_LOST)

    def train(session, rank):
        items = bag()
        tables = pt.TableOptimizer(items)
        batches = [items(torch.tensor([[number]])).sum() for number in range(3)]
        pservers[0].service._methods[Method.PUSH] = refuse
        batches[0].backward()
        tables.step()
        failed.wait(TIMEOUT_S)
        for _ in range(100):  # the sender may be about to report it
            step(items, tables, [1])
        raise AssertionError("no error came")

    with pytest.raises(PsrtError, match="trainer 1 left") as caught:
        trained(pservers[:1], "async", train, trainers=1)
    assert caught.value.code is ErrorCode.TRAINER_LOST
