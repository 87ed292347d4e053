"""Ragged ids of examples become one `Jagged`; what is no id is named with its example."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402
from psrt.core.errors import DataError  # noqa: E402

EXAMPLES = [
    ({"item": 3, "history": [1, 2]}, [0.5, 1.0], 1.0),
    ({"item": 4, "history": []}, [1.5, 2.0], 0.0),
    ({"item": -5, "history": np.array([2**62])}, [2.5, 3.0], 1.0),
]


def test_lists_of_any_length_become_a_jagged():
    jagged, numbers, labels = pt.collate(EXAMPLES)

    assert jagged.keys == ["item", "history"]
    assert jagged.values.tolist() == [3, 4, -5, 1, 2, 2**62]
    assert jagged.lengths.tolist() == [1, 1, 1, 2, 0, 1]
    assert labels.tolist() == [1.0, 0.0, 1.0]
    assert torch.stack(numbers, 1).tolist() == [[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]]


def test_named_features_of_mappings_may_be_missing():
    examples = [{"item": 1, "label": 1}, {"history": torch.tensor([7, 8]), "label": 0}]

    jagged, rest = pt.collate(examples, ["item", "history"])

    assert jagged.lengths.tolist() == [1, 0, 0, 2]
    assert rest["label"].tolist() == [1, 0]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_workers_of_a_loader_collate_for_a_collection():
    loader = torch.utils.data.DataLoader(EXAMPLES * 4, 3, collate_fn=pt.collate, num_workers=1)
    with pt.local():
        model = pt.EmbeddingBagCollection([pt.EmbeddingBagConfig("ids", 4, ["item", "history"])])

        found = [model(jagged)["history"] for jagged, *_ in loader]

    assert [each.shape for each in found] == [(3, 4)] * 4
    assert not found[0][1].any()


def test_features_can_be_named_for_a_loader():
    loader = torch.utils.data.DataLoader(
        [{"item": 1, "y": 2.0}] * 2, 2, collate_fn=partial(pt.collate, features=["item"])
    )
    ((jagged, rest),) = loader
    assert jagged.values.tolist() == [1, 1]
    assert rest["y"].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("examples", "error"),
    [
        ([({"a": 1}, 0), ({"b": 1}, 0)], "example 1 of a batch has ids of b"),
        ([({"a": 1}, 0), ({"a": [0.5]}, 0)], "example 1 of a batch has ids of torch.float32"),
        ([({"a": [[1, 2]]}, 0)], "example 0 .* shape"),
        ([(5, 0)], "example 0 of a batch has ids of int"),
    ],
)
def test_what_is_no_list_of_ids_is_named(examples, error):
    with pytest.raises(DataError, match=error):
        pt.collate(examples)
