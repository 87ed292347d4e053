"""Saved models, read without psrt."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def model_of(directory: Path) -> dict[str, np.ndarray]:
    """Dense parameters by file, and the rows of each table by id."""
    found = {p.name: np.load(p) for p in (directory / "dense").glob("*.npy")}
    for ids_file in sorted((directory / "sparse").glob("*.ids.npy")):
        rows = np.load(str(ids_file).replace(".ids.", ".rows."))
        found |= {f"row {id_}": row for id_, row in zip(np.load(ids_file), rows, strict=True)}
    return found
