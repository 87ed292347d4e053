"""Tables beside a model on a GPU: the same steps as on the CPU, and no wait for the device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")
if not torch.cuda.is_available():
    pytest.skip("this host has no GPU", allow_module_level=True)

import psrt.torch as pt  # noqa: E402
from psrt.torch.staging import on_device, start_to_host  # noqa: E402
from tests.support.pserver import daemon  # noqa: E402

HEIGHT, WIDTH, BATCH = 40, 8, 16
EVERY_ID = np.arange(HEIGHT)


class Ranker(torch.nn.Module):  # type: ignore[name-defined]
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        config = pt.EmbeddingBagConfig
        rate = pt.optim.Adagrad(0.1)
        self.bags = pt.EmbeddingBagCollection(
            [config("users", WIDTH, optimizer=rate), config("items", WIDTH, optimizer=rate)]
        )
        self.word = pt.Embedding(WIDTH, "words", optimizer=pt.optim.SGD(0.1))
        self.dense = torch.nn.Linear(3 * WIDTH, 1)

    def forward(self, features, words):
        pooled = self.bags(features)
        columns = [pooled["users"], pooled["items"], self.word(words).mean(1)]
        return self.dense(torch.cat(columns, 1)).squeeze(1)


def batches(count=6):
    torch.manual_seed(2)
    draw = lambda n: torch.randint(0, HEIGHT, (BATCH, n))  # noqa: E731
    return [
        ({"users": draw(1), "items": draw(3)}, draw(2), torch.rand(BATCH).round())
        for _ in range(count)
    ]


def train(model, device, given, *, scaler=None, autocast=False):
    """Train `given` batches; a loss for each, on the device."""
    dense, tables = torch.optim.SGD(model.parameters(), 0.1), pt.TableOptimizer(model)
    losses = []
    for features, words, label in given:
        target = on_device(label, device)
        with torch.autocast(device.type, torch.float16, enabled=autocast):
            score = model(features, words)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(score.float(), target)
        if scaler is None:
            loss.backward()
            dense.step()
            tables.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(dense)
            scaler.step(tables)
            scaler.update()
        dense.zero_grad()
        tables.zero_grad()
        losses.append(loss.detach())
    return losses


def result(session, model):
    rows = session.pull(dict.fromkeys(["users", "items", "words"], EVERY_ID))
    return {**rows, "dense": model.dense.weight.detach().cpu().numpy()}


def trained_on(kind, **arguments):
    device = torch.device(kind)
    with pt.local(seed=3) as session:
        model = Ranker().to(device)
        train(model, device, batches(), **arguments)
        return result(session, model)


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The thread that waits for the device raises; events of copies may be awaited."""

    def refuse(*_: object) -> None:
        raise AssertionError("the training thread waits for the whole device")

    monkeypatch.setattr(torch.cuda, "synchronize", refuse)
    yield
    torch.cuda.set_sync_debug_mode("default")


def test_a_model_on_a_gpu_trains_to_what_it_trains_on_the_cpu() -> None:
    expected, found = trained_on("cpu"), trained_on("cuda")

    assert expected.keys() == found.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-5, err_msg=name)


def test_the_training_thread_does_not_wait_for_the_device(no_waits: None) -> None:
    device = torch.device("cuda")
    with pt.local(seed=3):
        model = Ranker().to(device)
        train(model, device, batches(2))  # libraries are loaded, with their waits
        torch.cuda.set_sync_debug_mode("error")
        losses = train(model, device, batches(4))
        torch.cuda.set_sync_debug_mode("default")

    assert all(loss.isfinite() for loss in losses)


def test_rows_that_were_read_ahead_change_nothing_and_make_nobody_wait(no_waits: None) -> None:
    device = torch.device("cuda")
    with pt.local(seed=3) as session:
        model = Ranker().to(device)
        given = batches()
        train(model, device, given[:2])
        read = pt.Prefetch(given[2:], model, ids=lambda batch: {**batch[0], "words": batch[1]})
        torch.cuda.set_sync_debug_mode("error")
        train(model, device, read)
        torch.cuda.set_sync_debug_mode("default")
        found = result(session, model)

    assert read.lookups_ahead > 0
    for name, values in trained_on("cpu").items():
        np.testing.assert_allclose(found[name], values, atol=1e-5, err_msg=name)


def test_copies_use_pinned_memory_and_come_back_whole() -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    values = torch.randn(1000, 16)

    there = on_device(values, device)
    copy = start_to_host(there * 2)

    assert there.device == device
    assert copy.values.is_pinned()
    np.testing.assert_array_equal(copy.numbers(), (values * 2).numpy())


def test_a_copy_of_half_precision_arrives_as_float32() -> None:
    values = torch.randn(100, 4).half()

    copy = start_to_host(values.cuda())

    np.testing.assert_array_equal(copy.numbers(), values.float().numpy())


def test_ids_on_the_gpu_are_read_and_rows_are_there() -> None:
    with pt.local():
        words = pt.Embedding(WIDTH, "words")
        found = words(torch.arange(6).cuda())

    assert found.is_cuda
    assert words.device.type == "cpu"


def test_half_precision_with_a_grad_scaler_trains_like_float32() -> None:
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)

    expected, found = trained_on("cpu"), trained_on("cuda", scaler=scaler, autocast=True)

    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=5e-3, err_msg=name)


def test_a_step_of_infinite_gradients_changes_no_table() -> None:
    device = torch.device("cuda")
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**60)
    with pt.local(seed=3) as session:
        model = Ranker().to(device)
        train(model, device, batches(1))
        before = result(session, model)
        given = [(f, w, label * float("inf")) for f, w, label in batches(1)]
        train(model, device, given, scaler=scaler)
        after = result(session, model)

    assert [name for name in before if not np.array_equal(before[name], after[name])] == []


def test_a_gpu_trainer_of_pservers_trains_like_a_local_one(tmp_path):
    device = torch.device("cuda")
    with daemon(tmp_path) as pserver:
        with pt.connect(pserver.endpoint, "sync", seed=3) as session:
            model = Ranker().to(device)
            train(model, device, batches())
            found = result(session, model)
        assert pserver.exit_code() == 0

    for name, values in trained_on("cpu").items():
        np.testing.assert_allclose(found[name], values, atol=1e-5, err_msg=name)
