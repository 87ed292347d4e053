"""The ids that a model will look up in a batch, read off the batch before the model sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from psrt.core.errors import ProgramError
from psrt.torch.embedding_collections import EmbeddingCollection
from psrt.torch.jagged import Jagged
from psrt.torch.modules import Embedding, EmbeddingBag
from psrt.torch.rows_ahead import BatchLookups, lookups_of
from psrt.torch.table import Table, numbers_of_ids

Asked = list[tuple[Table, torch.Tensor]]


class BatchIds:
    """Finds ids of the tables of `model`, in a batch or in what `ids` makes of it."""

    def __init__(self, model: torch.nn.Module, ids: Callable[[Any], Any] | None) -> None:
        kinds = EmbeddingCollection, Embedding, EmbeddingBag
        self._modules = [each for each in model.modules() if isinstance(each, kinds)]
        if not self._modules:
            raise ProgramError(
                "the model has no tables of psrt.torch to look up ahead.",
                hint="Give Prefetch the model that has the Embedding, EmbeddingBag or collection.",
            )
        self._ids = ids

    def lookups(self, batch: Any) -> BatchLookups:
        """The lookups of a batch; raises `ProgramError` if it has no ids of any table, or
        ids that are no integers."""
        given = batch if self._ids is None else self._ids(batch)
        sources = list(_sources(given))
        asked = [pair for module in self._modules for pair in _asked(module, sources)]
        if not asked:
            raise ProgramError(
                f"a batch of type {type(batch).__name__} has no ids of a table of the model by its "
                "name, or by the feature of a collection; nothing was looked up ahead.",
                hint="Give Prefetch ids=lambda batch: {'name of the table': batch[0]}.",
            )
        distinct = {(table.name, id(ids)): (table.name, ids) for table, ids in asked}
        return lookups_of((name, numbers_of_ids(ids)) for name, ids in distinct.values())


def _sources(given: Any) -> Iterator[Any]:
    """Things that may have features by name: a batch, and the items of one that is a sequence."""
    yield given
    if isinstance(given, Mapping):
        yield from given.values()
    elif isinstance(given, Sequence) and not isinstance(given, str):
        yield from given


def _asked(module: torch.nn.Module, sources: Sequence[Any]) -> Asked:
    if isinstance(module, EmbeddingCollection):
        names = {name for config in module.configs for name in config.features}
        features = next((each for each in sources if names <= _names(each)), None)
        return [] if features is None else module.asked(features)
    table = module.table
    assert isinstance(table, Table)
    named = (each for each in sources if isinstance(each, Mapping) and table.name in each)
    return [(table, ids) for source in named for ids in _tensors(source[table.name])]


def _names(features: Any) -> set[str]:
    if isinstance(features, Jagged):
        return set(features.keys)
    if isinstance(features, Mapping):
        return set(features)
    keys = getattr(features, "keys", None)
    return set(keys()) if callable(keys) else set()


def _tensors(given: Any) -> list[torch.Tensor]:
    """The tensors of several lookups in a list, or of one alone, with offsets or without."""
    several = given if isinstance(given, list) else [given]
    ids = [each[0] if isinstance(each, tuple) else each for each in several]
    return [each for each in ids if isinstance(each, torch.Tensor)]


__all__ = ["BatchIds"]
