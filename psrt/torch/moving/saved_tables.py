"""Rows of tables as a saved model: `save_tables` writes one, sessions begin with one.

The directory has no program and no dense parameters: `psrt inspect` prints its rows, `psrt export
--table` converts them, and any job can begin with them (`warm_start`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from psrt.core.errors import ProgramError
from psrt.core.specs import Constant
from psrt.core.types import F32
from psrt.torch.declared import table_of
from psrt.torch.first_rows import pages_of, write_rows
from psrt.torch.optim import SGD
from psrt.torch.table_optimizer import tables_of


def save_tables(source: Any, directory: str | Path) -> None:
    """Write all rows of tables to `directory`, which is complete or absent.

    `source` is a model with tables of psrt.torch, whose trained rows are written, or has weights
    (n, width) for the ids 0 … n − 1: a TorchRec collection, or a mapping of names to tensors. Of
    several trainers one calls it, after the last step. Raises `ProgramError` for a source without
    weights, `ConfigError` if the directory cannot be written.
    """
    if isinstance(source, torch.nn.Module) and (own := tables_of(source)):
        declared = [table.declared for table in own]
        rows = {table.name: partial(table.session.rows, table.name) for table in own}
        write_rows(directory, declared, rows)
        return
    weights = _checked(weights_of(source), type(source).__name__)
    tables = [table_of(name, each.shape[1], SGD(), Constant(), 0) for name, each in weights.items()]
    write_rows(directory, tables, pages_of(weights))


def _checked(weights: dict[str, F32], kind: str) -> dict[str, F32]:
    if not weights:
        raise ProgramError(
            f"a {kind} has no weights of tables; nothing was written.",
            hint="Give a model with psrt.torch tables, a TorchRec collection that is not on the "
            'device "meta", or a dict of name to tensor.',
        )
    for name, given in weights.items():
        if given.ndim != 2:
            raise ProgramError(
                f"weights of {name} are of shape {given.shape}; nothing was written.",
                hint="Give a tensor (n, width), whose row i is that of id i.",
            )
    return weights


def weights_of(source: Any) -> dict[str, F32]:
    """Weights (n, width) by table of a mapping, or of a TorchRec collection that has them."""
    if not isinstance(source, Mapping):
        modules = getattr(source, "embedding_bags", None) or getattr(source, "embeddings", None)
        source = {name: module.weight for name, module in (modules or {}).items()}
    return {
        name: np.ascontiguousarray(weight.detach().to("cpu", torch.float32).numpy())
        for name, weight in source.items()
        if isinstance(weight, torch.Tensor) and not weight.is_meta
    }


__all__ = ["save_tables", "weights_of"]
