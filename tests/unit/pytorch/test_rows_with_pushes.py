"""In async, pushes bring the rows of batches to come, which lack no more own steps than allowed."""

from __future__ import annotations

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.specs import Constant  # noqa: E402
from psrt.rpc.methods import Method  # noqa: E402
from tests.support.carriers import eventually  # noqa: E402
from tests.support.live_pservers import live_pservers  # noqa: E402
from tests.support.torch_sessions import TIMEOUT_S, trained  # noqa: E402

BATCHES = 12


class ReadToTheEnd:
    """Batches of one id; `is_read` once the reader has all of them."""

    def __init__(self):
        self.is_read = threading.Event()

    def __iter__(self):
        yield from (torch.tensor([1]) for _ in range(BATCHES))
        self.is_read.set()


def lacking(bound, steps_of, waits=True, depth=BATCHES):
    """The steps that each lookup lacks, and the number of PULL calls for them.

    Batch n makes `steps_of(n)` steps, which take 1 from the row each. With `waits` each push is
    answered before the next one, and before the thread pulls.
    """
    with live_pservers(1) as pservers:
        service = pservers[0].service
        pull, pulls = service._methods[Method.PULL], []
        service._methods[Method.PULL] = lambda message: pulls.append(message) or pull(message)

        def train(session, rank):
            table = pt.Embedding(1, "items", optimizer=pt.optim.SGD(1.0), init=Constant(0.0))
            tables, loader = pt.TableOptimizer(table, "sum"), ReadToTheEnd()
            given = pt.Prefetch(
                loader, table, depth, max_staleness=bound, ids=lambda batch: {"items": batch}
            )
            steps, missing = 0, []
            for number, batch in enumerate(given):
                if waits:
                    assert loader.is_read.wait(TIMEOUT_S)
                    eventually(lambda: len(pulls) > bound, "the first pulls", TIMEOUT_S)
                found = table(batch)
                missing.append(steps + found.item())
                for again in range(steps_of(number)):
                    (table(batch) if again else found).sum().backward()
                    tables.step()
                    steps += 1
                    if waits:
                        answered(session)
            assert given.lookups_ahead >= BATCHES
            calls = len(pulls)
            session.flush()
            assert session.pull_now({"items": np.array([1])})["items"].item() == -steps
            return missing, calls

        return trained(pservers, "async", train, trainers=1)[0]


def answered(session):
    communicator = session.backend._opened.communicator
    eventually(lambda: communicator.backlog().steps == 0, "the answer of a push", TIMEOUT_S)


@pytest.mark.parametrize("bound", [1, 3])
def test_rows_come_with_pushes_and_lack_exactly_the_steps_allowed(bound) -> None:
    missing, pulls = lacking(bound, lambda number: 1)

    assert missing == [min(number, bound) for number in range(BATCHES)]
    assert pulls == bound + 1  # of the first batches


@pytest.mark.parametrize("depth", [1, BATCHES])
def test_pushes_that_are_late_leave_rows_to_the_thread(depth) -> None:
    bound = 1
    missing, _ = lacking(bound, lambda number: 1, waits=False, depth=depth)

    assert len(missing) == BATCHES
    assert max(missing) <= bound + 2  # one push may be under way, and one in the queue


@pytest.mark.parametrize("steps_of", [lambda n: 2, lambda n: 1 + (n == 5)], ids=["all", "one"])
def test_batches_with_several_pushes_lack_only_those_of_the_batch_before(steps_of) -> None:
    missing, _ = lacking(1, steps_of)

    assert all(0 <= each <= steps_of(n - 1) for n, each in enumerate(missing) if n)


@pytest.mark.parametrize("every", [2, 3])
def test_batches_that_are_accumulated_lack_one_step_at_most(every) -> None:
    missing, _ = lacking(1, lambda number: int(number % every == every - 1))

    assert all(0 <= each <= 1 for each in missing)
