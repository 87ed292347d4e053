"""Collections: all features of a model at once, with the configurations of TorchRec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from psrt.core.errors import ProgramError
from psrt.core.specs import DEFAULT_OPTIONS, Initializer, TableOptions
from psrt.torch.jagged import Feature, features_of
from psrt.torch.modules import AS_TORCH, TableModule, check_pooling, declared_table
from psrt.torch.optim import ServerOptimizer
from psrt.torch.pooling import gathered_rows, pooled_rows
from psrt.torch.table import Lookup, Table, look_up_all


@dataclass(frozen=True)
class EmbeddingConfig:
    """A table of rows of `embedding_dim`, looked up by `feature_names` (default: its own name)."""

    name: str
    embedding_dim: int
    feature_names: Sequence[str] = ()
    optimizer: ServerOptimizer | None = None
    init: Initializer = AS_TORCH
    padding_idx: int | None = None
    table: TableOptions = field(default=DEFAULT_OPTIONS)

    @property
    def features(self) -> Sequence[str]:
        return self.feature_names or (self.name,)


@dataclass(frozen=True)
class EmbeddingBagConfig(EmbeddingConfig):
    """`EmbeddingConfig` with `pooling` of a bag: sum, mean or max."""

    pooling: str = "sum"


class EmbeddingCollection(TableModule):
    """Features → dict of feature to rows (ids of the feature, dim), not pooled."""

    def __init__(self, tables: Sequence[EmbeddingConfig]) -> None:
        super().__init__()
        self.configs = tuple(tables)
        _check_tables(self.configs)
        _check_features(self.configs)
        self.tables: tuple[Table, ...] = tuple(_table_of(config) for config in self.configs)

    def its_tables(self) -> tuple[Table, ...]:
        return self.tables

    def forward(self, features: Any) -> dict[str, torch.Tensor]:
        """Look up all features by one pull; raises `ProgramError` if one is missing."""
        parts = self._parts(features)
        asked = self._joined(parts)
        lookups = look_up_all(asked, self.training, self.rows_at(asked[0][1]))
        return {
            name: self._rows(config, feature, positions, found)
            for config, part, found in zip(self.configs, parts, lookups, strict=True)
            for name, feature, positions in _of_features(config, part, found)
        }

    def asked(self, features: Any) -> list[tuple[Table, torch.Tensor]]:
        """The ids that `forward` looks up in each table."""
        return self._joined(self._parts(features))

    def _parts(self, features: Any) -> list[list[Feature]]:
        """The features of each table."""
        given = features_of(features)
        return [[_of(given, name) for name in config.features] for config in self.configs]

    def _joined(self, parts: list[list[Feature]]) -> list[tuple[Table, torch.Tensor]]:
        return [(table, _joined(part)) for table, part in zip(self.tables, parts, strict=True)]

    def _rows(
        self, config: Any, feature: Feature, positions: torch.Tensor, found: Lookup
    ) -> torch.Tensor:
        return gathered_rows(found.rows, positions).to(self.dtype)


class EmbeddingBagCollection(EmbeddingCollection):
    """Features → dict of feature to pooled rows (batch, dim)."""

    def __init__(self, tables: Sequence[EmbeddingBagConfig]) -> None:
        for config in (configs := tuple(tables)):
            check_pooling(config.name, getattr(config, "pooling", None))
        super().__init__(configs)

    def _rows(
        self, config: Any, feature: Feature, positions: torch.Tensor, found: Lookup
    ) -> torch.Tensor:
        how = config.pooling, feature.weights, True, found.padding
        return pooled_rows(found.rows, positions, feature.offsets, *how).to(self.dtype)


def _joined(features: Sequence[Feature]) -> torch.Tensor:
    """All ids that are looked up in one table; the very tensor of a single feature."""
    return features[0].values if len(features) == 1 else torch.cat([f.values for f in features])


def _of_features(
    config: EmbeddingConfig, features: Sequence[Feature], found: Lookup
) -> Iterator[tuple[str, Feature, torch.Tensor]]:
    """Each feature of a table with the positions of its ids in the rows found."""
    parts = found.positions.split([feature.values.numel() for feature in features])
    return zip(config.features, features, parts, strict=True)


def _table_of(config: EmbeddingConfig) -> Table:
    numbers = config.padding_idx, config.optimizer, config.init, config.table
    return declared_table(config.name, config.embedding_dim, *numbers)


def _check_tables(configs: Sequence[EmbeddingConfig]) -> None:
    tables = [config.name for config in configs]
    if not tables:
        raise ProgramError("a collection was made of no tables.", hint="Give it one or more.")
    if len(set(tables)) < len(tables):
        raise ProgramError(
            f"a collection has two tables of one name: {', '.join(tables)}.",
            hint="Give one table all features that share it: feature_names=[...].",
        )


def _check_features(configs: Sequence[EmbeddingConfig]) -> None:
    names = [name for config in configs for name in config.features]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ProgramError(
            f"feature {twice[0]} is looked up in two tables of one collection.",
            hint="Give one of them another feature name, and both the same ids.",
        )


def _of(given: dict[str, Feature], name: str) -> Feature:
    if name not in given:
        raise ProgramError(
            f"the batch has no feature {name}; it has {', '.join(given)}.",
            hint="Name it as in feature_names of the table.",
        )
    return given[name]
