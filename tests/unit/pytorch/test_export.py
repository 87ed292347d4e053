"""Exported models predict what the trained ones do, and saved rows begin other trainings."""

from __future__ import annotations

import io

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.errors import ConfigError, ProgramError  # noqa: E402
from psrt.core.specs import Constant  # noqa: E402
from tests.support.pserver import daemon  # noqa: E402

HEIGHT, WIDTH, FAR = 30, 4, 2**62


class Model(torch.nn.Module):  # type: ignore[name-defined]
    """Every kind of module, one table shared, and a padding id."""

    def __init__(self):
        super().__init__()
        init = {"optimizer": pt.optim.Adagrad(0.1), "init": Constant(0.0)}
        self.mean = pt.EmbeddingBag(WIDTH, "items", padding_idx=2, **init)
        self.sum = pt.EmbeddingBag(WIDTH, "items", "sum", True, padding_idx=2, **init)
        self.one = pt.Embedding(WIDTH, "users", **init)
        self.all = pt.EmbeddingBagCollection(
            [pt.EmbeddingBagConfig("words", WIDTH, ["title", "text"], **init)]
        )
        self.rows = pt.EmbeddingCollection([pt.EmbeddingConfig("tags", WIDTH, **init)])
        self.dense = torch.nn.Linear(WIDTH, 1)

    def forward(self, ids, offsets, features, tags):
        bags = self.mean(ids, offsets) + self.sum(ids, torch.cat([offsets, torch.tensor([9])]))
        found = self.all(features)
        other = self.one(ids[:3]) + found["title"] + found["text"] + self.rows(tags)["tags"][:3]
        return self.dense(bags + other).squeeze(1)


def batch(seed, height=HEIGHT):
    draw = torch.Generator().manual_seed(seed)

    def ids(*shape):
        return torch.randint(0, height, shape, generator=draw)

    text = pt.Jagged(["title", "text"], ids(7), torch.tensor([1, 0, 2, 1, 3, 0]))
    return ids(9), torch.tensor([0, 4, 4]), text, {"tags": ids(3, 2)}


def trained(model, steps=8):
    tables = pt.TableOptimizer(model)
    for seed in range(steps):
        (model(*batch(seed)).sigmoid().mean() * 10).backward()
        tables.step()
    return model


SIZES = dict.fromkeys(["items", "users", "words", "tags"], HEIGHT)


@pytest.mark.parametrize("sizes", [SIZES, None, {"words": HEIGHT}], ids=["all", "none", "one"])
def test_an_exported_model_predicts_the_same(sizes):
    with pt.local():
        model = trained(Model())
        plain = pt.export(model, sizes)
        with torch.no_grad():
            expected = [model(*batch(seed)) for seed in range(20, 26)]

    for seed, each in enumerate(expected, 20):
        torch.testing.assert_close(plain(*batch(seed)), each, atol=1e-6, rtol=1e-6)
    assert not plain.training


def test_tables_of_a_given_size_are_torchs_own_and_are_named_as_in_torchrec():
    with pt.local():
        plain = pt.export(trained(Model()), SIZES)

    assert type(plain.mean) is torch.nn.EmbeddingBag
    assert type(plain.one) is torch.nn.Embedding
    assert plain.state_dict()["all.embedding_bags.words.weight"].shape == (HEIGHT, WIDTH)
    file = io.BytesIO()
    torch.save(plain.state_dict(), file)
    file.seek(0)
    plain.load_state_dict(torch.load(file, weights_only=True))


def test_ids_that_were_never_trained_are_zeros_in_a_vocabulary():
    with pt.local():
        table = pt.Embedding(WIDTH, "items", optimizer=pt.optim.SGD(0.1))
        other, tables = pt.Embedding(WIDTH, "other"), pt.TableOptimizer(table)
        table(torch.tensor([FAR, -FAR])).sum().backward()
        tables.step()
        expected = table(torch.tensor([FAR, -FAR])).detach()
        plain, untrained = pt.export(table), pt.export(other)

    found = plain(torch.tensor([FAR, 5, -FAR]))
    torch.testing.assert_close(found[[0, 2]], expected)
    assert not found[1].any()
    assert not untrained(torch.tensor([[1], [2]])).any()


@pytest.mark.parametrize("other", [pt.optim.SGD(0.1), pt.optim.RowWiseAdagrad(0.1)])
def test_saved_tables_begin_another_training(tmp_path, other):
    place, every = str(tmp_path / "rows"), np.arange(HEIGHT)
    with pt.local() as session:
        trained(Model())
        expected = session.pull({"items": every})["items"]
        pt.save_tables(Model(), place)

    with pt.local(warm_start=place) as session:
        pt.EmbeddingBag(WIDTH, "items", padding_idx=2, optimizer=other, init=Constant(0.0))
        np.testing.assert_array_equal(session.pull({"items": every})["items"], expected)


def test_pservers_begin_with_saved_tables_and_hand_out_all_rows(tmp_path):
    place, every = str(tmp_path / "rows"), np.arange(HEIGHT)
    weights = torch.randn(HEIGHT, WIDTH)
    pt.save_tables({"items": weights}, place)

    with daemon(tmp_path) as server:
        with pt.connect(server.endpoint, warm_start=place, timeout_s=60.0) as session:
            table = pt.Embedding(WIDTH, "items")
            found = session.pull({"items": every})["items"]
            plain = pt.export(table)
        assert server.exit_code() == 0

    np.testing.assert_array_equal(found, weights.numpy())
    torch.testing.assert_close(plain(torch.from_numpy(every)), weights)


def test_a_source_without_weights_is_refused(tmp_path):
    with pytest.raises(ProgramError, match="has no weights of tables"):
        pt.save_tables(torch.nn.Linear(1, 1), tmp_path / "rows")


def test_a_warm_start_from_nothing_is_refused(tmp_path):
    with pt.local(warm_start=str(tmp_path)):
        table = pt.Embedding(WIDTH, "items")
        with pytest.raises(ConfigError, match="neither cuts nor a saved model"):
            table(torch.tensor([1]))
