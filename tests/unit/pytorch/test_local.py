"""Tables beside a torch model compute what torch's own embeddings compute, in ordinary loops."""

from __future__ import annotations

import os
import threading
from itertools import chain

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.errors import ConfigError, ProgramError  # noqa: E402
from psrt.torch import connecting  # noqa: E402

HEIGHT, WIDTH = 50, 8
EVERY_ID = np.arange(HEIGHT)
TOLERANCE = 1e-6


class RowWiseAdagrad(torch.optim.Optimizer):  # type: ignore[name-defined]
    """The published formula, by torch's operations on whole tables."""

    def __init__(self, params, lr, eps=1e-10):
        super().__init__(params, {"lr": lr, "eps": eps})

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                s = self.state[p].setdefault("s", torch.zeros(len(p), 1))
                s += p.grad.pow(2).mean(dim=1, keepdim=True)
                p.data.addcdiv_(p.grad, s.sqrt() + group["eps"], value=-group["lr"])


OPTIMIZERS = {
    "sgd": (pt.optim.SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "adagrad": (pt.optim.Adagrad(0.1), lambda p: torch.optim.Adagrad(p, 0.1)),
    "adam": (pt.optim.Adam(0.01), lambda p: torch.optim.Adam(p, 0.01)),
    "row_wise_adagrad": (pt.optim.RowWiseAdagrad(0.1), lambda p: RowWiseAdagrad(p, 0.1)),
}


@pytest.fixture
def session():
    torch.manual_seed(0)
    with pt.local(seed=3) as made:
        yield made


def rows(session, name="items"):
    return torch.from_numpy(session.pull({name: EVERY_ID})[name].copy())


def reference(session, mode="mean", **arguments):
    """Torch's own bag with the first rows of the table."""
    bag = torch.nn.EmbeddingBag(HEIGHT, WIDTH, mode=mode, **arguments)
    bag.weight.data = rows(session)
    return bag


def batches(count=20, size=16):
    return [torch.randint(0, HEIGHT, (size, 5)) for _ in range(count)]


def bag(mode="mean", **arguments):
    arguments.setdefault("optimizer", pt.optim.SGD(0.1))
    return pt.EmbeddingBag(WIDTH, "items", mode=mode, **arguments)


def loss_of(found):
    return (found * torch.linspace(-1, 1, WIDTH)).sum(1).sigmoid().mean() * 10


def close(one, other, tolerance=TOLERANCE):
    torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_after_20_steps_tables_are_those_of_torch(session, name):
    ours, theirs = OPTIMIZERS[name]
    ours = bag(optimizer=ours)
    plain, tables = reference(session), pt.TableOptimizer(ours)
    optimizer = theirs(plain.parameters())

    for ids in batches():
        for module, each in ((ours, tables), (plain, optimizer)):
            each.zero_grad()
            loss_of(module(ids)).backward()
            each.step()

    close(rows(session), plain.weight.detach())


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_pool_like_torch_with_offsets_weights_and_padding(session, mode):
    ours = bag(mode, padding_idx=7, include_last_offset=True)
    plain = torch.nn.EmbeddingBag(HEIGHT, WIDTH, mode=mode, padding_idx=7, include_last_offset=True)
    plain.weight.data = rows(session)
    ids, offsets = torch.randint(0, HEIGHT, (30,)), torch.tensor([0, 0, 4, 9, 30])
    weights = torch.rand(30) if mode == "sum" else None

    found, expected = ours(ids, offsets, weights), plain(ids, offsets, weights)

    close(found, expected)
    assert ours.table.look_up(ids, True).rows.is_leaf


def test_any_int64_is_an_id_and_a_table_is_no_parameter(session):
    table = pt.Embedding(WIDTH, "items")
    ids = torch.tensor([[-(2**63), 2**63 - 1], [0, -1]])

    found = table(ids)

    assert found.shape == (2, 2, WIDTH)
    assert list(table.parameters()) == []
    assert list(table.state_dict()) == ["_extra_state"]
    assert table.state_dict()["_extra_state"]["tables"] == ["items"]


def test_four_micro_batches_and_two_losses_are_one_update(session):
    ours = bag(optimizer=pt.optim.Adagrad(0.1))
    plain, tables = reference(session), pt.TableOptimizer(ours)
    optimizer = torch.optim.Adagrad(plain.parameters(), 0.1)

    for ids in batches(4):
        for module in (ours, plain):
            found = module(ids)
            loss_of(found).backward(retain_graph=True)
            found.pow(2).mean().backward()
    tables.step()
    optimizer.step()

    close(rows(session), plain.weight.detach())


def test_a_table_looked_up_twice_and_shared_gets_both_gradients(session):
    one, other = bag("sum"), bag("sum")
    plain, tables = reference(session, "sum"), pt.TableOptimizer(torch.nn.ModuleList([one, other]))
    optimizer = torch.optim.SGD(plain.parameters(), 0.1)
    a, b = batches(2)

    loss_of(one(a) + other(b) + one(a)).backward()
    loss_of(plain(a) + plain(b) + plain(a)).backward()
    tables.step()
    optimizer.step()

    assert one.table is other.table
    close(rows(session), plain.weight.detach())


def test_activation_checkpoints_train_as_without_them(session):
    from torch.utils.checkpoint import checkpoint

    ours = bag("sum")
    plain, tables = reference(session, "sum"), pt.TableOptimizer(ours)
    ids = batches(1)[0]

    loss_of(checkpoint(lambda x: ours(x).tanh(), ids, use_reentrant=False)).backward()
    loss_of(plain(ids).tanh()).backward()
    tables.step()

    close(rows(session), plain.weight.detach() - 0.1 * plain.weight.grad)


def test_an_empty_batch_has_a_gradient_and_changes_nothing(session):
    ours = bag("sum")
    tables, before = pt.TableOptimizer(ours), rows(session)

    found = ours(torch.empty(0, dtype=torch.int64), torch.zeros(3, dtype=torch.int64))
    found.sum().backward()
    tables.step()

    assert found.shape == (3, WIDTH)
    close(rows(session), before, 0)


def test_evaluation_leaves_no_rows_and_no_leaves(session):
    ours = bag()
    tables = pt.TableOptimizer(ours)

    with torch.no_grad():
        ours(batches(1)[0])
    ours.eval()(batches(1)[0])

    assert list(tables.leaves()) == []
    assert session.backend._tables.sparse("items").rows == 0


@pytest.mark.parametrize("finds_inf", [False, True])
def test_scaled_gradients_reach_tables_unscaled_or_not_at_all(session, finds_inf):
    ours = bag("sum")
    plain, tables = reference(session, "sum"), pt.TableOptimizer(ours)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    ids = batches(1)[0]

    scaler.scale(loss_of(ours(ids)) * (float("inf") if finds_inf else 1.0)).backward()
    scaler.step(tables)
    scaler.update()
    loss_of(plain(ids)).backward()

    moved = 0.0 if finds_inf else 0.1
    close(rows(session), plain.weight.detach() - moved * plain.weight.grad, 1e-6)
    assert scaler.get_scale() == (2.0**15 if finds_inf else 2.0**16)


@pytest.mark.parametrize(
    "made",
    [
        lambda each: torch.optim.lr_scheduler.StepLR(each, 2, 0.5),
        lambda each: torch.optim.lr_scheduler.CosineAnnealingLR(each, 5),
        lambda each: torch.optim.lr_scheduler.OneCycleLR(each, 0.3, 10, cycle_momentum=False),
    ],
)
def test_schedulers_take_effect_at_the_next_step(session, made):
    ours = bag()
    plain, tables = reference(session), pt.TableOptimizer(ours)
    optimizer = torch.optim.SGD(plain.parameters(), 0.1)
    schedulers, both = (made(tables), made(optimizer)), (ours, plain)

    for ids in batches(5):
        for module, each, scheduler in zip(both, (tables, optimizer), schedulers, strict=True):
            each.zero_grad()
            loss_of(module(ids)).backward()
            each.step()
            scheduler.step()

    close(rows(session), plain.weight.detach())


def test_norms_are_clipped_over_tables_and_dense_parameters(session):
    ours, dense = bag("sum"), torch.nn.Linear(WIDTH, 1)
    tables = pt.TableOptimizer(ours)
    dense(ours(batches(1)[0])).sum().backward()

    torch.nn.utils.clip_grad_norm_(list(chain(dense.parameters(), tables.leaves())), 0.5)

    every = [each.grad for each in chain(dense.parameters(), tables.leaves())]
    assert float(torch.stack([each.norm() for each in every]).norm()) == pytest.approx(0.5, 1e-4)


def test_a_forgotten_step_is_named():
    with pt.local(max_lookups=2) as session:
        ours = bag()
        for ids in batches(2):
            loss_of(ours(ids)).backward()

        with pytest.raises(ProgramError, match=r"items was looked up 2 times .* without step"):
            ours(batches(1)[0])
        session.close()


def test_a_forked_process_may_not_look_up(session):
    ours = bag()
    ours(batches(1)[0])
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            session.pull({"items": EVERY_ID})
        except ProgramError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)

    assert "forked" in os.read(read, 1000).decode()


def test_collections_look_up_all_features_by_one_pull(session, monkeypatch):
    configs = [
        pt.EmbeddingBagConfig("items", WIDTH, ["item", "history"], pooling="sum"),
        pt.EmbeddingBagConfig("users", 4, ["user"], pooling="mean"),
    ]
    model = pt.EmbeddingBagCollection(configs)
    pulls, pull = [], session.backend.pull
    monkeypatch.setattr(session.backend, "pull", lambda w: pulls.append(w) or pull(w))
    jagged = pt.Jagged(
        ["item", "history", "user"],
        torch.tensor([1, 2, 1, 3, 3, 9, 8]),
        torch.tensor([1, 1, 0, 3, 1, 1]),
    )

    found = model(jagged)

    assert len(pulls) == 1
    assert set(pulls[0]["items"].tolist()) == {1, 2, 3}
    table = rows(session)
    close(found["item"], table[[1, 2]])
    close(found["history"], torch.stack([torch.zeros(WIDTH), table[1] + 2 * table[3]]))
    assert found["user"].shape == (2, 4)


class Keyed:
    """A stand-in with the methods of a KeyedJaggedTensor."""

    def __init__(self, values, lengths):
        self._values, self._lengths = values, lengths

    def keys(self):
        return ["items"]

    def values(self):
        return self._values

    def lengths_or_none(self):
        return self._lengths

    def weights_or_none(self):
        return None

    def stride(self):
        return len(self._lengths)


@pytest.mark.parametrize(
    "given",
    [
        Keyed(torch.tensor([1, 2]), torch.tensor([1, 1])),
        {"items": torch.tensor([1, 2])},
        {"items": (torch.tensor([1, 2]), torch.tensor([0, 1, 2]))},
    ],
)
def test_features_come_in_many_forms(session, given):
    model = pt.EmbeddingBagCollection([pt.EmbeddingBagConfig("items", WIDTH)])
    close(model(given)["items"], rows(session)[[1, 2]])

    unpooled = pt.EmbeddingCollection([pt.EmbeddingConfig("items", WIDTH)])
    close(unpooled(given)["items"], rows(session)[[1, 2]])


def test_the_optimizer_saves_its_numbers_and_no_rows(session):
    tables = pt.TableOptimizer(bag())
    tables.param_groups[0]["lr"] = 0.25
    state = tables.state_dict()
    tables.param_groups[0]["lr"] = 1.0

    tables.load_state_dict(state)

    assert state == {"param_groups": [{"name": "items", "lr": 0.25}], "steps": 0}
    assert tables.param_groups[0]["lr"] == 0.25


def test_a_model_may_call_its_own_modules_tables(session):
    class Ranker(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = pt.EmbeddingBagCollection([pt.EmbeddingBagConfig("items", WIDTH)])
            self.table = torch.nn.Linear(WIDTH, 1)

    assert [group["name"] for group in pt.TableOptimizer(Ranker()).param_groups] == ["items"]


def test_a_session_begins_and_ends_without_a_block():
    session = pt.local().begin()
    pt.Embedding(4, "items")(torch.tensor([1]))
    session.complete()

    with pytest.raises(ConfigError, match="outside of a session"):
        pt.Embedding(4, "items")


def test_a_module_outside_of_a_session_is_refused():
    with pytest.raises(ConfigError, match="outside of a session"):
        pt.Embedding(4, "items")


def test_a_table_declared_twice_differently_is_refused(session):
    bag()
    with pytest.raises(ProgramError, match="declared twice, and differently"):
        pt.Embedding(4, "items")


@pytest.mark.parametrize("mode", ["collective", "sinc"])
def test_a_mode_without_pservers_is_refused(mode: str) -> None:
    with pytest.raises(ConfigError, match=f"psrt.torch has no mode '{mode}'") as caught:
        pt.connect("127.0.0.1:6170", mode)

    assert caught.value.hint == "Use one of sync, async, ssp, half_async, geo."


@pytest.mark.parametrize(
    "variables",
    [
        {"RANK": "1", "WORLD_SIZE": "3"},
        {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3"},
        {"PMI_RANK": "1", "PMI_SIZE": "3"},
        {"SLURM_PROCID": "1", "SLURM_NTASKS": "3"},
        {"PADDLE_TRAINER_ID": "1", "PADDLE_TRAINERS_NUM": "3"},
    ],
    ids=["torchrun", "open_mpi", "mpich", "slurm", "paddle"],
)
def test_every_launcher_gives_rank_and_size(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    made = []
    monkeypatch.setattr(connecting, "ConnectedTables", lambda *given: made.append(given))

    pt.connect("127.0.0.1:1")

    ((_, _, trainer_id, trainers, *_),) = made
    assert (trainer_id, trainers) == (1, 3)


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="scheduling policies are of Linux")
def test_the_scheduling_of_a_trainer_holds_for_the_calling_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PSRT_TRAINER_SCHEDULING", "batch")
    found = []

    def call() -> None:
        pt.connect("127.0.0.1:1")
        found.append(os.sched_getscheduler(0))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()

    assert found == [os.SCHED_BATCH]
