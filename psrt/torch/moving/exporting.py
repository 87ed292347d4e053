"""`export`: a model with psrt.torch tables as one of plain torch, which needs no pservers.

Every module with a table becomes one with the rows as a parameter; the others are copied.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from psrt.core.errors import ProgramError
from psrt.core.types import F32, I64
from psrt.torch.embedding_collections import EmbeddingBagCollection, EmbeddingCollection
from psrt.torch.first_rows import PAGE_ROWS
from psrt.torch.modules import Embedding, EmbeddingBag
from psrt.torch.moving.plain_tables import PlainCollection, PlainTable, RowPositions
from psrt.torch.table import Table
from psrt.torch.table_optimizer import tables_of


def export(
    model: torch.nn.Module, num_embeddings: Mapping[str, int] | None = None
) -> torch.nn.Module:
    """Return a copy of `model` in evaluation mode whose tables are `torch.nn.EmbeddingBag`s.

    A table in `num_embeddings` gets the rows of the ids 0 … n − 1, as `model` reads them; other ids
    raise `IndexError`. Any other table gets the rows that were trained, and finds them by a sorted
    list of ids; the rest reads as zeros. `Embedding` and `EmbeddingBag` of a table in
    `num_embeddings` become torch's own classes. Pushes of other trainers may be missing: call it
    after the last step. Raises `ProgramError` for a size of a table that `model` lacks.
    """
    sizes = num_embeddings or {}
    _check_known(sizes, [table.name for table in tables_of(model)])
    rows_of = functools.cache(lambda table: _rows_of(table, sizes.get(table.name)))

    def plain(table: Table, pooling: str, **arguments: Any) -> PlainTable:
        return _plain_table(table, rows_of(table), pooling, arguments)

    memo: dict[int, Any] = {
        id(module): _replacement(module, plain).to(module.dtype)
        for module in model.modules()
        if isinstance(module, EmbeddingCollection | Embedding | EmbeddingBag)
    }
    return copy.deepcopy(model, memo).eval()


def _check_known(sizes: Mapping[str, int], known: list[str]) -> None:
    if unknown := sorted(sizes.keys() - set(known)):
        raise ProgramError(
            f"num_embeddings names {', '.join(unknown)}, and the model has "
            f"{', '.join(known) or 'no table'}; nothing was exported.",
            hint="Name tables as they were declared.",
        )


def _replacement(module: Any, plain: Callable[..., PlainTable]) -> torch.nn.Module:
    if isinstance(module, EmbeddingCollection):
        is_bag = isinstance(module, EmbeddingBagCollection)
        tables = {
            table.name: plain(table, getattr(config, "pooling", ""), include_last_offset=True)
            for table, config in zip(module.tables, module.configs, strict=True)
        }
        features = {config.name: list(config.features) for config in module.configs}
        return PlainCollection(tables, features, is_bag)
    if isinstance(module, Embedding):
        return plain(module.table, "").without_vocabulary()
    last = module.include_last_offset
    return plain(module.table, module.mode, include_last_offset=last).without_vocabulary()


def _plain_table(
    table: Table, rows: tuple[F32, I64 | None], pooling: str, arguments: dict[str, Any]
) -> PlainTable:
    weights, ids = rows
    vocabulary = None if ids is None else RowPositions(torch.from_numpy(ids))
    padding = table.declared.padding_id
    if padding is not None and ids is not None:
        padding = int(np.searchsorted(ids, padding))
    given = torch.from_numpy(weights)
    numbers: dict[str, Any] = {"freeze": False, "padding_idx": padding}
    if not pooling:
        return PlainTable(torch.nn.Embedding.from_pretrained(given, **numbers), vocabulary)
    numbers |= {"mode": pooling, **arguments}
    return PlainTable(torch.nn.EmbeddingBag.from_pretrained(given, **numbers), vocabulary)


def _rows_of(table: Table, size: int | None) -> tuple[F32, I64 | None]:
    """The rows of the ids 0 … size − 1; or all that exist, zeros at the end, and their ids."""
    if size is not None:
        pieces = [np.arange(n, min(n + PAGE_ROWS, size)) for n in range(0, size, PAGE_ROWS)]
        pulled = [table.session.pull({table.name: ids})[table.name] for ids in pieces]
        return np.concatenate([np.empty((0, table.width), np.float32), *pulled]), None
    pages = list(table.session.rows(table.name))
    padding = table.declared.padding_id
    if padding is not None:
        pages.append((np.array([padding]), np.zeros((1, table.width), np.float32)))
    found, first = np.unique(np.concatenate([ids for ids, _ in pages]), return_index=True)
    zeros = np.zeros((1, table.width), np.float32)
    return np.concatenate([np.concatenate([rows for _, rows in pages])[first], zeros]), found


__all__ = ["export"]
