"""Dense parameters of torch modules on real pservers, in every mode."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.errors import ConfigError, ProgramError  # noqa: E402
from psrt.core.specs import Async, Constant, Geo  # noqa: E402
from tests.support.live_pservers import LivePserver, live_pservers  # noqa: E402
from tests.support.torch_sessions import TIMEOUT_S, trained  # noqa: E402
from tests.unit.pytorch.test_local import OPTIMIZERS  # noqa: E402

WIDTH, STEPS, TRAINERS, SHARE = 3, 8, 2, 4
EVERY_ID = np.arange(10)


@pytest.fixture
def pservers() -> Iterator[list[LivePserver]]:
    with live_pservers(2) as started:
        yield started


def batches():
    """Inputs (steps, trainers, share, width) and targets (…, 1)."""
    made = torch.Generator().manual_seed(7)
    inputs = torch.randn(STEPS, TRAINERS, SHARE, WIDTH, generator=made)
    return inputs, inputs.sum(-1, keepdim=True).tanh()


def network(seed):
    return torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)
    ).apply(lambda each: filled(each, seed))


def filled(module, seed):
    """First values of a rank: those of rank 0 count."""
    made = torch.Generator().manual_seed(seed)
    for parameter in module.parameters(recurse=False):
        parameter.data = torch.randn(parameter.shape, generator=made)


def step(module, optimizer, inputs, targets):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(module(inputs), targets).backward()
    optimizer.step()


def values(module):
    return [parameter.detach().clone() for parameter in module.parameters()]


@pytest.mark.parametrize("name", ["adam", "adagrad"])
def test_two_trainers_in_sync_equal_one_process_with_the_big_batch(pservers, name) -> None:
    inputs, targets = batches()
    rule, made = OPTIMIZERS[name]

    def train(session, rank):
        module = network(seed=11 + rank)
        served = pt.DenseOnServer(module, rule)
        optimizer = pt.TableOptimizer(served)
        for number in range(STEPS):
            step(served, optimizer, inputs[number, rank], targets[number, rank])
        return values(module)

    found = trained(pservers, "sync", train)

    plain = network(seed=11)
    optimizer = made(plain.parameters())
    for number in range(STEPS):
        step(plain, optimizer, inputs[number].flatten(0, 1), targets[number].flatten(0, 1))
    for mine in found:
        torch.testing.assert_close(mine, values(plain), atol=1e-6, rtol=1e-6)


LEDGER_MODES = ["sync", "async", Async(thread_pool_size=2, send_queue_size=4), "ssp"]
LEDGER_MODES += ["half_async", Geo(update_frequency=2)]


@pytest.mark.parametrize("mode", LEDGER_MODES, ids=str)
def test_each_gradient_counts_once_and_tables_come_along(pservers, mode) -> None:
    """A ledger: each step of trainer r adds 1 to the weight of input r, and to a row."""
    done = threading.Barrier(TRAINERS, timeout=TIMEOUT_S)

    def train(session, rank):
        module = torch.nn.Linear(TRAINERS, 1, bias=False)
        module.weight.data.fill_(float(rank))
        served = pt.DenseOnServer(module, pt.optim.SGD(1.0))
        rows = pt.EmbeddingBag(2, "rows", "sum", optimizer=pt.optim.SGD(1.0), init=Constant(0.0))
        optimizer = pt.TableOptimizer(torch.nn.ModuleList([served, rows]), reduce="sum")
        one_hot = torch.eye(TRAINERS)[rank]
        for number in range(STEPS):
            (-served(one_hot).sum() - rows(torch.tensor([[number, 9]])).sum()).backward()
            optimizer.step()
            optimizer.zero_grad()
        session.complete()  # in geo it waits for the others
        done.wait()
        return module.weight.detach().clone()

    found = trained(pservers, mode, train)

    is_last = [torch.equal(each, torch.full((1, TRAINERS), float(STEPS))) for each in found]
    assert any(is_last), found
    assert all(is_last) or mode not in ("sync", Geo(update_frequency=2))


def test_one_mode_each_name_once_and_something_to_train() -> None:
    with pt.local() as session:
        pt.DenseOnServer(torch.nn.Linear(2, 2), mode="sync")
        with pytest.raises(ConfigError, match=r"mode 'async', and its session Sync\("):
            pt.DenseOnServer(torch.nn.Linear(2, 2), mode="async", name="other")
        with pytest.raises(ProgramError, match=r"dense\.weight was declared twice"):
            pt.DenseOnServer(torch.nn.Linear(2, 2))
        with pytest.raises(ProgramError, match="no parameters to train"):
            pt.DenseOnServer(torch.nn.Tanh(), name="nothing")
        session.close()


@pytest.mark.parametrize("name", sorted(OPTIMIZERS.keys() - {"row_wise_adagrad"}))
def test_in_this_process_it_computes_what_torch_computes_and_works_afterwards(name) -> None:
    inputs, targets = batches()
    rule, made = OPTIMIZERS[name]
    with pt.local():
        module = network(seed=1)
        served = pt.DenseOnServer(module, rule)
        optimizer, scaler = pt.TableOptimizer(served), torch.amp.GradScaler("cpu", init_scale=8.0)
        plain = network(seed=1)
        reference = made(plain.parameters())
        for number in range(STEPS):
            step(plain, reference, inputs[number, 0], targets[number, 0])
            loss = torch.nn.functional.mse_loss(served(inputs[number, 0]), targets[number, 0])
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    torch.testing.assert_close(values(module), values(plain), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(served(inputs[0, 0]), plain(inputs[0, 0]), atol=1e-5, rtol=1e-5)
