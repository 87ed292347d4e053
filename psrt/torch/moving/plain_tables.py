"""Tables of an exported model: modules of torch with rows as parameters, and no session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from psrt.torch.jagged import features_of


class RowPositions(torch.nn.Module):
    """The positions of ids in the sorted `ids` (n,); n for an id that is none of them."""

    ids: torch.Tensor

    def __init__(self, ids: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("ids", ids)

    def forward(self, asked: torch.Tensor) -> torch.Tensor:
        """Return positions of the shape of `asked`."""
        size = len(self.ids)
        if not size:
            return torch.zeros_like(asked)
        at = torch.searchsorted(self.ids, asked.long())
        is_known = self.ids[at.clamp(max=size - 1)] == asked
        return torch.where(is_known, at, size)


class PlainTable(torch.nn.Module):
    """A `torch.nn.Embedding` or `EmbeddingBag`, with the `vocabulary` of its rows if it has one."""

    def __init__(self, table: torch.nn.Module, vocabulary: RowPositions | None) -> None:
        super().__init__()
        self.table, self.vocabulary = table, vocabulary

    def without_vocabulary(self) -> torch.nn.Module:
        """The table itself if it needs no vocabulary."""
        return self.table if self.vocabulary is None else self

    def forward(self, input: torch.Tensor, *others: Any, **arguments: Any) -> torch.Tensor:
        """Look up `input`, with the further arguments of the table."""
        positions = input if self.vocabulary is None else self.vocabulary(input)
        found: torch.Tensor = self.table(positions, *others, **arguments)
        return found


class PlainCollection(torch.nn.Module):
    """A collection of psrt.torch as one of torch: the same features, the same result.

    Names of parameters begin as in TorchRec: `embedding_bags.TABLE`, or `embeddings.TABLE`.
    """

    def __init__(
        self, tables: Mapping[str, PlainTable], features: Mapping[str, list[str]], is_bag: bool
    ) -> None:
        super().__init__()
        self.features, self.is_bag = dict(features), is_bag
        plain = {
            name: each.table if each.vocabulary is None else each for name, each in tables.items()
        }
        setattr(self, "embedding_bags" if is_bag else "embeddings", torch.nn.ModuleDict(plain))

    def forward(self, features: Any) -> dict[str, torch.Tensor]:
        """Look up all features; they come as for the collection that was exported."""
        given = features_of(features)
        tables = self.embedding_bags if self.is_bag else self.embeddings
        found = {}
        for name, own in self.features.items():
            for feature in own:
                each = given[feature]
                bags = (each.offsets, each.weights) if self.is_bag else ()
                found[feature] = tables.get_submodule(name)(each.values.long(), *bags)
        return found


__all__ = ["PlainCollection", "PlainTable", "RowPositions"]
