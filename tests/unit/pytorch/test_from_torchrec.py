"""Collections of TorchRec, as far as their attributes go, become those of psrt.torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.errors import ConfigError, ProgramError  # noqa: E402
from psrt.core.specs import Uniform  # noqa: E402

HEIGHT, WIDTH = 16, 4


class PoolingType(Enum):
    """The enumeration of TorchRec."""

    SUM = "SUM"
    MEAN = "MEAN"


@dataclass
class RecConfig:
    """The fields of TorchRec's `EmbeddingConfig`."""

    num_embeddings: int
    embedding_dim: int
    name: str
    feature_names: list[str] = field(default_factory=list)
    weight_init_max: float | None = None
    weight_init_min: float | None = None


@dataclass
class RecBagConfig(RecConfig):
    """The fields of TorchRec's `EmbeddingBagConfig`."""

    pooling: PoolingType = PoolingType.SUM


class RecBags(torch.nn.Module):  # type: ignore[name-defined]
    """The attributes of TorchRec's `EmbeddingBagCollection`."""

    def __init__(self, configs, device="cpu"):
        super().__init__()
        self._configs = configs
        self.embedding_bags = torch.nn.ModuleDict(
            {
                each.name: torch.nn.EmbeddingBag(
                    each.num_embeddings,
                    each.embedding_dim,
                    mode=each.pooling.value.lower(),
                    include_last_offset=True,
                    device=device,
                )
                for each in configs
            }
        )

    def embedding_bag_configs(self):
        return self._configs


BAGS = [
    RecBagConfig(HEIGHT, WIDTH, "products", ["item", "history"]),
    RecBagConfig(HEIGHT, WIDTH, "users", ["user"], pooling=PoolingType.MEAN),
]


def features():
    ids = torch.randint(0, HEIGHT, (9,))
    return pt.Jagged(["item", "history", "user"], ids, torch.tensor([1, 1, 3, 0, 2, 2]))


def test_weights_tables_and_pooling_are_taken_over():
    rec = RecBags(BAGS)
    with pt.local():
        model = pt.from_torchrec(rec, pt.optim.RowWiseAdagrad(0.1))
        given = features()

        found = model(given)

    for config in BAGS:
        for name in config.feature_names:
            each = given.features()[name]
            expected = rec.embedding_bags[config.name](each.values, each.offsets)
            torch.testing.assert_close(found[name], expected, atol=1e-6, rtol=1e-6)
    assert isinstance(model, pt.EmbeddingBagCollection)


def test_rows_that_were_taken_over_train_like_the_others():
    rec = RecBags(BAGS[:1])
    with pt.local() as session:
        model = pt.from_torchrec(rec, pt.optim.Adagrad(0.1))
        tables = pt.TableOptimizer(model)
        plain = torch.optim.Adagrad(rec.parameters(), 0.1)
        for _ in range(5):
            ids = torch.randint(0, HEIGHT, (6, 2))
            model({"item": ids, "history": ids})["item"].pow(2).sum().backward()
            offsets = torch.arange(0, 13, 2)
            rec.embedding_bags["products"](ids.reshape(-1), offsets).pow(2).sum().backward()
            for each in (tables, plain):
                each.step()
                each.zero_grad()
        found = session.pull({"products": np.arange(HEIGHT)})["products"]

    expected = rec.embedding_bags["products"].weight.detach().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("given", [RecBags(BAGS, "meta"), BAGS], ids=["meta", "configs"])
def test_without_weights_rows_begin_as_torchrecs(given):
    with pt.local() as session:
        model = pt.from_torchrec(given)
        rows = session.pull({"products": np.arange(HEIGHT)})["products"]

    bound = HEIGHT**-0.5
    assert model.configs[0].init == Uniform(-bound, bound)
    assert 0 < np.abs(rows).max() <= bound


def test_collections_that_do_not_pool_stay_so():
    configs = [RecConfig(HEIGHT, WIDTH, "products", [], 0.5, -0.25)]
    with pt.local():
        model = pt.from_torchrec(configs)

        assert model({"products": torch.tensor([[1, 2]])})["products"].shape == (2, WIDTH)
    assert not isinstance(model, pt.EmbeddingBagCollection)
    assert model.configs[0].init == Uniform(-0.25, 0.5)


def test_weights_for_pservers_name_the_way_by_a_directory():
    with pt.connect("127.0.0.1:1"), pytest.raises(ConfigError, match="pservers") as caught:
        pt.from_torchrec(RecBags(BAGS))

    assert "pt.save_tables" in caught.value.hint
    with pt.connect("127.0.0.1:1"):
        assert len(pt.from_torchrec(RecBags(BAGS), weights=False).tables) == 2
    with pt.connect("127.0.0.1:1", warm_start="rows"):
        assert len(pt.from_torchrec(RecBags(BAGS)).tables) == 2


def test_weights_after_the_first_lookup_are_refused():
    with pt.local():
        pt.Embedding(4, "other")(torch.tensor([1]))
        with pytest.raises(ProgramError, match="after the first lookup"):
            pt.from_torchrec(RecBags(BAGS))


def test_what_has_no_configurations_is_refused():
    with pt.local(), pytest.raises(ConfigError, match="a Linear has no configurations of tables"):
        pt.from_torchrec(torch.nn.Linear(1, 1))
