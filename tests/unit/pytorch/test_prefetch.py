"""Batches and rows that are read ahead change no result, and only so much as was allowed."""

from __future__ import annotations

import threading
from itertools import islice

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.errors import ConfigError, ProgramError, UnavailableError  # noqa: E402
from psrt.core.specs import Async, Constant  # noqa: E402
from tests.unit.pytorch.test_local import OPTIMIZERS  # noqa: E402

HEIGHT, WIDTH = 40, 4
EXACT, STALE = {"exact": True}, {"max_staleness": 1}


class TwoLookups(torch.nn.Module):  # type: ignore[name-defined]
    """One table that is looked up twice, and another one."""

    def __init__(self, optimizer):
        super().__init__()
        self.items = pt.EmbeddingBag(WIDTH, "items", optimizer=optimizer)
        self.users = pt.Embedding(WIDTH, "users", optimizer=optimizer)

    def forward(self, batch):
        return self.items(batch["a"]) * self.items(batch["b"]) + self.users(batch["users"])


def ids_of(batch):
    return {"items": [batch["a"], batch["b"]], "users": batch["users"]}


def batches(count=12):
    draw = torch.Generator().manual_seed(4)

    def ids(*shape):
        return torch.randint(0, HEIGHT, shape, generator=draw)

    return [{"a": ids(8, 3), "b": ids(8, 2), "users": ids(8)} for _ in range(count)]


def trained(optimizer, loop):
    """The tables after `loop(model, tables)`, and the session."""
    with pt.local(seed=3) as session:
        model = TwoLookups(optimizer)
        loop(model, pt.TableOptimizer(model))
        every = np.arange(HEIGHT)
        return session.pull({"items": every, "users": every}), session


def threads():
    return {each.name for each in threading.enumerate()} & {"prefetch", "rows ahead"}


class ReadToTheEnd:
    """A loader that is read to its end before the second batch is asked for, if depth allows."""

    def __init__(self):
        self.is_read = threading.Event()

    def __iter__(self):
        yield from batches()
        self.is_read.set()


def loop_over(prefetched, every=1, skipped=-1, depth=1):
    def loop(model, tables):
        loader = ReadToTheEnd()
        given = pt.Prefetch(loader, model, depth, ids=ids_of, exact=True) if prefetched else loader
        for number, batch in enumerate(given):
            assert depth == 1 or loader.is_read.wait(60)
            model(batch).sigmoid().mean().mul(10).backward()
            if number % every == every - 1:
                if number != skipped:
                    tables.step()
                tables.zero_grad()
            with torch.no_grad():
                model(batch)  # an evaluation between the steps

    return loop


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("how", [{}, {"every": 3}, {"skipped": 4}], ids=str)
@pytest.mark.parametrize("depth", [1, 12])
def test_exact_rows_train_to_the_same_bits(name, how, depth):
    optimizer = OPTIMIZERS[name][0]
    plain, _ = trained(optimizer, loop_over(False, **how))

    found, session = trained(optimizer, loop_over(True, depth=depth, **how))

    for table, rows in plain.items():
        np.testing.assert_array_equal(found[table], rows)
    assert depth == 1 or session.ahead.used > 0
    assert not threads()


def test_a_push_brings_the_rows_of_the_next_batch(monkeypatch):
    pulls = []
    with pt.local() as session:
        model, loader = TwoLookups(pt.optim.SGD(0.1)), ReadToTheEnd()
        tables, pull = pt.TableOptimizer(model), session.pull_now
        monkeypatch.setattr(session, "pull_now", lambda ids: pulls.append(ids) or pull(ids))
        prefetch = pt.Prefetch(loader, model, 12, ids=ids_of)
        for batch in prefetch:
            assert loader.is_read.wait(60)
            model(batch).sum().backward()
            tables.step()

    assert len(pulls) == 3  # of the first batch
    assert prefetch.lookups_ahead == 3 * 11


@pytest.mark.parametrize("bound", [1, 3])
def test_rows_lack_no_more_steps_than_allowed(bound):
    ids = [torch.tensor([1])] * 20
    with pt.local():
        table = pt.Embedding(1, "items", optimizer=pt.optim.SGD(1.0), init=Constant(0.0))
        tables = pt.TableOptimizer(table)
        prefetch = pt.Prefetch(ids, table, 4, max_staleness=bound, ids=lambda b: {"items": b})
        missing = []
        for steps, batch in enumerate(prefetch):
            found = table(batch)
            missing.append(steps + found.item())  # each step takes 1 from the row
            found.sum().backward()
            tables.step()

    assert all(0 <= each <= bound for each in missing)
    assert prefetch.lookups_ahead == 20


@pytest.mark.parametrize("how", [EXACT, STALE], ids=str)
def test_an_error_of_the_loader_arrives_in_its_place(how):
    def loader():
        yield from batches(3)
        raise OSError("the disk is gone")

    with pt.local():
        model = TwoLookups(pt.optim.SGD(0.1))
        given = iter(pt.Prefetch(loader(), model, ids=ids_of, **how))

        assert len(list(islice(given, 3))) == 3
        with pytest.raises(OSError, match="the disk is gone"):
            next(given)

    assert not threads()


def test_an_error_of_a_pull_arrives_at_the_consumer(monkeypatch):
    def lost(wanted):
        raise UnavailableError("the pserver is gone")

    with pt.local() as session:
        model = TwoLookups(pt.optim.SGD(0.1))
        monkeypatch.setattr(session, "pull_now", lost)

        with pytest.raises(UnavailableError, match="the pserver is gone"):
            next(iter(pt.Prefetch(batches(), model, ids=ids_of, max_staleness=1)))


@pytest.mark.parametrize("how", [EXACT, STALE], ids=str)
def test_a_loop_that_ends_early_ends_the_threads(how):
    with pt.local():
        model = TwoLookups(pt.optim.SGD(0.1))
        for _ in pt.Prefetch(batches(), model, ids=ids_of, **how):
            break

        assert not threads()
        assert len(list(pt.Prefetch(batches(), model, ids=ids_of, **how))) == 12


class Stateful:
    """A loader with a state, as torchdata's `StatefulDataLoader`."""

    def __init__(self):
        self.given = 0

    def __iter__(self):
        for batch in batches()[self.given :]:
            self.given += 1
            yield batch

    def state_dict(self):
        return {"given": self.given}

    def load_state_dict(self, state):
        self.given = state["given"]


@pytest.mark.parametrize("loader", [batches, Stateful])
@pytest.mark.parametrize("how", [EXACT, STALE], ids=str)
def test_the_position_is_that_of_the_last_batch_handed_out(loader, how):
    with pt.local():
        model = TwoLookups(pt.optim.SGD(0.1))
        first = pt.Prefetch(loader(), model, 5, ids=ids_of, **how)
        list(zip(range(4), first, strict=False))
        other = pt.Prefetch(loader(), model, 5, ids=ids_of, **how)

        other.load_state_dict(first.state_dict())
        rest = list(other)

    expected = batches()[len(batches()) - len(rest) :]
    assert len(rest) in (7, 8)
    for found, batch in zip(rest, expected, strict=True):
        assert torch.equal(found["a"], batch["a"])


def test_steps_inside_of_another_loop_leave_no_old_rows():
    def loop(model, tables, wrap):
        for batch in wrap(batches(4)):
            for inner in wrap(batches(2)):
                model(inner).sum().backward()
                tables.step()
            model(batch).sum().backward()
            tables.step()

    def prefetching(model, tables):
        loop(model, tables, lambda given: pt.Prefetch(given, model, ids=ids_of))

    plain, _ = trained(pt.optim.SGD(0.1), lambda *both: loop(*both, wrap=iter))
    found, _ = trained(pt.optim.SGD(0.1), prefetching)

    for table, rows in plain.items():
        np.testing.assert_array_equal(found[table], rows)


def test_collections_need_no_function_of_ids():
    with pt.local() as session:
        configs = [
            pt.EmbeddingBagConfig("items", WIDTH, ["item", "history"]),
            pt.EmbeddingBagConfig("users", WIDTH, ["user"]),
        ]
        model = pt.EmbeddingBagCollection(configs)
        tables = pt.TableOptimizer(model)
        given = [
            ({"item": each["users"], "history": each["a"], "user": each["users"]}, 1.0)
            for each in batches()
        ]
        for features, _ in pt.Prefetch(given, model, max_staleness=2):
            sum(each.sum() for each in model(features).values()).backward()
            tables.step()

        assert session.ahead.used == 2 * len(given)


def test_offsets_are_no_ids(monkeypatch):
    wanted = []
    with pt.local() as session:
        bag = pt.EmbeddingBag(WIDTH, "items")
        pull = session.pull_now
        monkeypatch.setattr(session, "pull_now", lambda ids: wanted.append(ids) or pull(ids))
        given = [{"items": (torch.tensor([7, 8, 9]), torch.tensor([0, 1]))}]

        for batch in pt.Prefetch(given, bag, max_staleness=1):
            bag(*batch["items"])

    assert [ids["items"].tolist() for ids in wanted] == [[7, 8, 9]]


def test_ids_that_are_not_looked_up_are_reported_and_change_nothing(caplog):
    plain, _ = trained(pt.optim.SGD(0.1), loop_over(False))

    def wrong(model, tables):
        for batch in pt.Prefetch(batches(), model, ids=lambda batch: {"items": batch["users"]}):
            model(batch).sigmoid().mean().mul(10).backward()
            tables.step()

    found, session = trained(pt.optim.SGD(0.1), wrong)

    np.testing.assert_array_equal(found["items"], plain["items"])
    assert session.ahead.used == 0
    assert "no lookup asked for the ids" in caplog.text


def test_a_batch_without_ids_is_refused_with_the_remedy():
    with pt.local():
        model = TwoLookups(pt.optim.SGD(0.1))

        with pytest.raises(ProgramError, match="has no ids of a table of the model") as caught:
            next(iter(pt.Prefetch([(torch.tensor([1]), 2)], model)))

    assert "ids=lambda batch" in caught.value.hint


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"exact": True, "max_staleness": 1}, "not both"),
        ({"depth": 0}, "depth = 0"),
        ({"max_staleness": 0}, "max_staleness = 0"),
    ],
)
def test_arguments_that_contradict_are_refused(arguments, error):
    with pt.local():
        model = TwoLookups(pt.optim.SGD(0.1))
        with pytest.raises(ConfigError, match=error):
            pt.Prefetch(batches(), model, **arguments)


def test_exact_rows_are_refused_where_others_change_them():
    with pt.connect("127.0.0.1:1", Async()):
        model = TwoLookups(pt.optim.SGD(0.1))
        with pytest.raises(ConfigError, match="no exact rows in mode Async"):
            pt.Prefetch(batches(), model, exact=True)
        assert pt.Prefetch(batches(), model)._staleness == 1
