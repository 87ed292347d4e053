"""Whole models with tables are cast, copied, averaged and refused to be pickled."""

from __future__ import annotations

import copy
import pickle

import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.errors import ProgramError  # noqa: E402

IDS = torch.tensor([[1, 2], [3, 3]])


@pytest.fixture
def model():
    with pt.local():
        items = pt.EmbeddingBag(4, "items", optimizer=pt.optim.SGD(lr=1.0))
        yield torch.nn.Sequential(items, pt.DenseOnServer(torch.nn.Linear(4, 1)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_cast_model_trains_and_is_exported_with_its_dtype(model, dtype):
    tables = pt.TableOptimizer(model.to(dtype))

    model(IDS).sum().backward()
    tables.step()

    assert model(IDS).dtype == pt.export(model)(IDS).dtype == dtype
    assert torch.allclose(pt.export(model)(IDS), model(IDS), atol=1e-2)


def test_a_printed_model_names_its_tables(model):
    assert "EmbeddingBag(items: 4)" in repr(model)


def test_a_collection_is_cast_and_takes_weights_of_its_dtype():
    with pt.local():
        bags = pt.EmbeddingBagCollection([pt.EmbeddingBagConfig("items", 4)]).double()
        weights = torch.ones(3, dtype=torch.float64)
        given = {"items": (torch.arange(3), torch.tensor([0, 1, 3]), weights)}

        assert bags(given)["items"].dtype == torch.float64


def test_a_deep_copy_shares_tables_and_has_dense_parameters_of_its_own(model):
    tables, twin = pt.TableOptimizer(model), copy.deepcopy(model)
    before = twin[1].weight.clone()

    model(IDS).sum().backward()
    tables.step()

    assert torch.equal(twin[0](IDS), model[0](IDS))
    assert torch.equal(twin[1].weight, before)
    assert not torch.equal(model[1].module.weight, before)


def test_averages_of_a_model_are_kept_by_torch(model):
    averaged = torch.optim.swa_utils.AveragedModel(model)

    averaged.update_parameters(model)

    assert torch.allclose(averaged(IDS), model(IDS))


def test_a_pickle_of_a_model_is_refused_with_what_to_save_instead(model):
    with pytest.raises(ProgramError, match=r"its rows are not in it.*state_dict.*export"):
        pickle.dumps(model)
