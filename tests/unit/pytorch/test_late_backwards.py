"""Gradients reach the step that follows their backward, whenever its lookup was."""

from __future__ import annotations

from random import Random

import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402

IDS, OTHERS = torch.tensor([[1, 2]]), torch.tensor([[3, 4]])


@pytest.fixture
def bag():
    with pt.local():
        yield pt.EmbeddingBag(4, "items", mode="sum", optimizer=pt.optim.SGD(lr=1.0))


def sums(bag):
    with torch.no_grad():
        return {name: bag(ids).sum().item() for name, ids in (("ids", IDS), ("others", OTHERS))}


def test_zero_grad_may_come_between_forward_and_backward(bag):
    tables, before = pt.TableOptimizer(bag), sums(bag)

    for _ in range(3):
        loss = bag(IDS).sum()
        tables.zero_grad()
        loss.backward()
        assert [leaf.grad.shape for leaf in tables.leaves()] == [(2, 4)]
        tables.step()

    assert sums(bag)["ids"] == pytest.approx(before["ids"] - 3 * 8)


def test_a_step_may_come_between_forward_and_backward(bag):
    tables, before = pt.TableOptimizer(bag), sums(bag)
    one, other = bag(IDS).sum(), bag(OTHERS).sum()

    for loss in (one, other):
        loss.backward()
        tables.step()
        tables.zero_grad()

    assert sums(bag) == pytest.approx({name: value - 8 for name, value in before.items()})


def test_a_second_backward_of_a_graph_is_a_second_update(bag):
    tables, before = pt.TableOptimizer(bag), sums(bag)
    loss = bag(IDS).square().sum()

    for _ in range(2):
        loss.backward(retain_graph=True)
        first = next(tables.leaves()).grad.sum().item()
        tables.step()
        tables.zero_grad()

    assert sums(bag)["ids"] == pytest.approx(before["ids"] - 2 * first, abs=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_any_order_of_forwards_backwards_and_steps_computes_what_torch_computes(seed):
    random, graphs = Random(seed), []
    torch.manual_seed(seed)
    mode, given = random.choice(["sum", "mean", "max"]), [pt.optim.SGD(0.1), pt.optim.Adagrad(0.1)]
    kind = random.randrange(2)
    with pt.local(seed=seed) as session:
        ours = pt.EmbeddingBag(4, "items", mode=mode, optimizer=given[kind])
        theirs = torch.nn.EmbeddingBag(20, 4, mode=mode)
        theirs.weight.data = torch.from_numpy(session.pull({"items": range(20)})["items"].copy())
        made = (torch.optim.SGD, torch.optim.Adagrad)[kind](theirs.parameters(), 0.1)
        optimizers = pt.TableOptimizer(ours), made
        for _ in range(60):
            act = random.choice(["forward", "forward", "backward", "backward", "step", "drop"])
            if act == "forward" and len(graphs) < 3:
                ids, weights = torch.randint(0, 20, (3, 2)), torch.randn(3, 4)
                graphs.append([(each(ids) * weights).sum() for each in (ours, theirs)])
            elif act == "backward" and graphs:
                for loss in graphs.pop(random.randrange(len(graphs))):
                    loss.backward()
            elif act in ("step", "drop"):
                for each in optimizers:
                    if act == "step":
                        each.step()
                    each.zero_grad()
        found = torch.from_numpy(session.pull({"items": range(20)})["items"])

    assert torch.allclose(found, theirs.weight, atol=1e-5)


def test_rows_of_an_ended_step_serve_no_lookup(bag):
    tables = pt.TableOptimizer(bag)
    late = bag(IDS).sum()
    bag(OTHERS).sum().backward()
    tables.step()
    late.backward()

    before = sums(bag)["ids"]
    tables.step()

    assert bag(IDS).sum().item() == pytest.approx(before - 8)


def test_a_tensor_of_ids_may_be_filled_anew_within_a_step(bag):
    ids = torch.tensor([[1, 2]])
    before, buffer = sums(bag), ids.numpy()
    tables = pt.TableOptimizer(bag)

    for numbers in ([1, 2], [3, 4]):
        buffer[:] = numbers
        bag(ids).sum().backward()
    tables.step()

    assert sums(bag) == pytest.approx({name: value - 8 for name, value in before.items()})


def test_inference_mode_looks_up_and_its_tensors_train(bag):
    with torch.inference_mode():
        ids = torch.tensor([[1, 2]])
        assert bag(ids).shape == (1, 4)
    before = sums(bag)["ids"]

    bag(ids).sum().backward()
    pt.TableOptimizer(bag).step()

    assert sums(bag)["ids"] == pytest.approx(before - 8)


def test_a_scaled_step_without_any_lookup_is_a_step(bag):
    model = torch.nn.Sequential(bag, torch.nn.Linear(4, 1))
    tables, scaler = pt.TableOptimizer(model), torch.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(model(IDS).sum()).backward()
    scaler.step(tables)
    scaler.update()
    scaler.scale(model[1](torch.zeros(1, 4)).sum()).backward()

    scaler.step(tables)

    assert tables.steps == 2
