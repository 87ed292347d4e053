"""`from_torchrec`: collections of psrt.torch from those of TorchRec, which is not imported."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from psrt.core.errors import ConfigError
from psrt.core.specs import DEFAULT_OPTIONS, Initializer, TableOptions, Uniform
from psrt.torch.embedding_collections import (
    EmbeddingBagCollection,
    EmbeddingBagConfig,
    EmbeddingCollection,
    EmbeddingConfig,
)
from psrt.torch.moving.saved_tables import weights_of
from psrt.torch.optim import ServerOptimizer
from psrt.torch.session import current

_CONFIGS = "embedding_bag_configs", "embedding_configs"
_NEEDED = "name", "embedding_dim", "num_embeddings"


def from_torchrec(
    collection: Any,
    optimizer: ServerOptimizer | None = None,
    *,
    init: Initializer | None = None,
    tables: Mapping[str, TableOptions] | None = None,
    weights: bool = True,
) -> EmbeddingCollection:
    """Return the collection of psrt.torch with the tables and features of TorchRec's.

    `collection` has `embedding_bag_configs()` or `embedding_configs()`, or is a sequence of such
    configs, with `name`, `embedding_dim`, `num_embeddings`, `feature_names` and, of bags,
    `pooling`. Rows begin with its weights if it has any, unless `weights` is off, else with `init`,
    by default TorchRec's uniform ± √(1 / num_embeddings). Raises `ConfigError` for what has no
    configs, and for weights in a session with pservers, which take them by `warm_start`.
    """
    configs = _configs_of(collection)
    given = [_converted(each, optimizer, init, (tables or {})) for each in configs]
    is_bag = all(isinstance(each, EmbeddingBagConfig) for each in given)
    made = EmbeddingBagCollection(given) if is_bag else EmbeddingCollection(given)  # type: ignore[arg-type]
    found = weights_of(collection) if weights and not isinstance(collection, Sequence) else {}
    if found:
        current().begin_with(found)
    return made


def _configs_of(collection: Any) -> Sequence[Any]:
    for name in _CONFIGS:
        found = getattr(collection, name, None)
        if found is not None:
            return list(found() if callable(found) else found)
    if isinstance(collection, Sequence) and all(_is_config(each) for each in collection):
        return collection
    raise ConfigError(
        f"a {type(collection).__name__} has no configurations of tables.",
        hint="Give an EmbeddingBagCollection or EmbeddingCollection of TorchRec, before it is "
        "sharded, or a list of its configs.",
    )


def _is_config(given: Any) -> bool:
    return all(hasattr(given, name) for name in _NEEDED)


def _converted(
    config: Any,
    optimizer: ServerOptimizer | None,
    init: Initializer | None,
    tables: Mapping[str, TableOptions],
) -> EmbeddingConfig:
    pooling = getattr(config, "pooling", None)
    name, features = config.name, tuple(config.feature_names or ())
    first = init or _first_values(config)
    options = tables.get(name, DEFAULT_OPTIONS)
    known = (name, config.embedding_dim, features, optimizer, first, None, options)
    if pooling is None:
        return EmbeddingConfig(*known)
    return EmbeddingBagConfig(*known, pooling=str(getattr(pooling, "value", pooling)).lower())


def _first_values(config: Any) -> Uniform:
    """The initial values that TorchRec gives by default, or by `weight_init_min` and `_max`."""
    bound = math.sqrt(1.0 / config.num_embeddings)
    low, high = (getattr(config, f"weight_init_{end}", None) for end in ("min", "max"))
    return Uniform(-bound if low is None else low, bound if high is None else high)


__all__ = ["from_torchrec"]
