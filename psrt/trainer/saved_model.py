"""Reads a model directory and answers row pulls from it, as a pserver would, without any pserver.

Every file is checked against its checksum before use. A row that was never trained is not in the
files; it takes the value its table's initializer gives that id, exactly as during training.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from psrt.core import specs
from psrt.core.types import F32, I64, Array
from psrt.kernels import initialize
from psrt.trainer.model_dir import Manifest, digest, read_manifest, unreadable


class SavedModel:
    """Dense parameters by name, and rows by id. Immutable once loaded."""

    def __init__(
        self, manifest: Manifest, dense: Mapping[str, F32], tables: Mapping[str, SavedTable]
    ) -> None:
        self.manifest = manifest
        self.dense = dict(dense)
        self._tables = dict(tables)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape per dense parameter; (width,) per sparse table."""
        shapes: dict[str, tuple[int, ...]] = {name: a.shape for name, a in self.dense.items()}
        return shapes | {name: (table.spec.width,) for name, table in self._tables.items()}

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Rows (n, width) of the wanted ids, per table."""
        return {name: self._tables[name].read(ids) for name, ids in wanted.items()}


class SavedTable:
    """The rows of one table, sorted by id."""

    def __init__(self, spec: specs.SparseTableSpec, ids: I64, rows: F32) -> None:
        self.spec = spec
        order = np.argsort(ids, kind="stable")
        self._ids, self._rows = ids[order], rows[order]

    def read(self, ids: I64) -> F32:
        out = np.empty((len(ids), self.spec.width), np.float32)
        initialize.fill_rows(self.spec.initializer, self.spec.seed, ids, out)
        at = np.searchsorted(self._ids, ids)
        found = at < len(self._ids)
        found[found] = self._ids[at[found]] == ids[found]
        out[found] = self._rows[at[found]]
        if self.spec.padding_id is not None:
            out[ids == self.spec.padding_id] = 0.0
        return out


def load(directory: Path) -> SavedModel:
    """Read and verify a model directory; raises `DataError` MODEL_UNREADABLE naming the file."""
    manifest = read_manifest(directory)
    reader = _Reader(directory, manifest)
    dense = {name: reader.array(file, np.float32) for name, file in manifest.dense.items()}
    tables = {
        spec.name: reader.table(spec)
        for spec in manifest.tables
        if isinstance(spec, specs.SparseTableSpec)
    }
    return SavedModel(manifest, dense, tables)


class _Reader:
    def __init__(self, directory: Path, manifest: Manifest) -> None:
        self._directory = directory
        self._manifest = manifest

    def array(self, name: str, dtype: type[np.generic]) -> Array:
        """One verified array of the directory."""
        path = self._directory / name
        try:
            found = digest(path)
        except OSError as error:
            raise unreadable(path, f"cannot be opened ({error.strerror})") from error
        if found != self._manifest.sha256.get(name):
            raise unreadable(path, "does not have the checksum of the manifest")
        try:
            values: Array = np.load(path, allow_pickle=False)
        except ValueError as error:
            raise unreadable(path, f"is not an array file ({error})") from error
        if values.dtype != dtype:
            raise unreadable(path, f"holds {values.dtype}, expected {np.dtype(dtype)}")
        return values

    def table(self, spec: specs.SparseTableSpec) -> SavedTable:
        pages = self._manifest.sparse.get(spec.name, [])
        ids = [self.array(page.ids, np.int64) for page in pages]
        rows = [self.array(page.rows, np.float32) for page in pages]
        for page, page_ids, page_rows in zip(pages, ids, rows, strict=True):
            if page_rows.shape != (len(page_ids), spec.width):
                path = self._directory / page.rows
                raise unreadable(
                    path, f"is {page_rows.shape}, expected {(len(page_ids), spec.width)}"
                )
        empty_ids, empty_rows = np.empty(0, np.int64), np.empty((0, spec.width), np.float32)
        return SavedTable(
            spec, np.concatenate([empty_ids, *ids]), np.concatenate([empty_rows, *rows])
        )
