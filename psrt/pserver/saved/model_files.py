"""Parameters of a saved model, read through any directory; see docs/reference/model-format.md.

A file is compared with its checksum before its first use. Only the members of the manifest that
hold parameters are read here: a pserver has no use for the program.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from psrt.core.errors import DataError, ErrorCode
from psrt.core.specs import DenseTableSpec, SparseTableSpec, from_plain
from psrt.core.types import F32, I64, Array
from psrt.kernels.tables import rows as row_kernels
from psrt.pserver.saved.row_parts import RowPart, SavedRows
from psrt.storage.directory import Directory, contents

MANIFEST, FORMAT, VERSION = "manifest.json", "psrt-model", 1
_PIECE_BYTES = 16 << 20
_HEAD_BYTES = 4096


class ModelFiles:
    """The files of one model; raises `DataError` MODEL_UNREADABLE that names the file."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory
        try:
            plain = json.loads(contents(directory, MANIFEST))
            is_model = plain["format"] == FORMAT and plain["version"] == VERSION
            self.specs = [from_plain(each) for each in plain["tables"]] if is_model else []
            self.dense: Mapping[str, str] = plain["dense"]
            self.sparse: Mapping[str, list[dict[str, Any]]] = plain["sparse"]
            self._sums: Mapping[str, str] = plain["sha256"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise self.unreadable(MANIFEST, f"is no manifest ({error})") from error
        if not is_model:
            raise self.unreadable(MANIFEST, f"is not of format {FORMAT} {VERSION}")

    def unreadable(self, name: str, why: str) -> DataError:
        return DataError(
            f"the saved model cannot be read: {self.directory.location}/{name} {why}.",
            code=ErrorCode.MODEL_UNREADABLE,
            hint="Copy the directory again from where it was saved, or save the model again.",
        )

    def check(self, name: str) -> None:
        """Read a file and compare it with its checksum."""
        found = hashlib.sha256()
        with self.directory.read(name) as file:
            for start in range(0, file.size_bytes, _PIECE_BYTES):
                found.update(file.read(start, min(_PIECE_BYTES, file.size_bytes - start)))
        if found.hexdigest() != self._sums.get(name):
            raise self.unreadable(name, "does not have the checksum of the manifest")

    def array(self, name: str, dtype: type[np.generic]) -> Array:
        """A whole array, verified."""
        with self.directory.read(name) as file:
            data = bytes(file.read(0, file.size_bytes))
        if hashlib.sha256(data).hexdigest() != self._sums.get(name):
            raise self.unreadable(name, "does not have the checksum of the manifest")
        try:
            values: Array = np.load(io.BytesIO(data), allow_pickle=False)
        except Exception as error:  # NumPy raises many kinds for an edited header
            raise self.unreadable(name, f"is not an array file ({error})") from error
        if values.dtype != dtype:
            raise self.unreadable(name, f"holds {values.dtype}, expected {np.dtype(dtype)}")
        return values

    def elements(self, name: str, size: int, first: int, end: int) -> F32:
        """Elements `first` to `end` − 1 (n,) of a float32 file of `size` elements, unverified."""
        with self.directory.read(name) as file:
            head = io.BytesIO(bytes(file.read(0, min(_HEAD_BYTES, file.size_bytes))))
            try:
                np.lib.format.read_magic(head)
                shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(head)
            except ValueError as error:
                raise self.unreadable(name, f"is not an array file ({error})") from error
            if dtype != np.float32 or is_fortran or math.prod(shape) != size:
                raise self.unreadable(name, f"holds {dtype} {shape}, expected {size} of float32")
            data = file.read(head.tell() + 4 * first, 4 * (end - first))
        return np.frombuffer(data, np.float32).copy()


class ModelTable:
    """One sparse table of a saved model: weights by id, without optimizer state."""

    has_state = False

    def __init__(self, files: ModelFiles, spec: SparseTableSpec) -> None:
        self._files, self.spec = files, spec
        self.progress: dict[str, Any] = {}
        self._pages = files.sparse.get(spec.name, [])

    def groups(self, first_shard: int, last_shard: int) -> Iterator[SavedRows]:
        """The rows of some virtual shards, page by page in no order."""
        shards, walked = self.spec.virtual_shards, list[I64]()
        bounds = np.array([0, first_shard, last_shard, shards], np.int64)
        for page in self._pages:
            ids = self._files.array(page["ids"], np.int64)
            rows = self._files.array(page["rows"], np.float32)
            if rows.shape != (len(ids), self.spec.width):
                why = f"is {rows.shape}, expected ({len(ids)}, {self.spec.width})"
                raise self._files.unreadable(page["rows"], why)
            order, counts = row_kernels.partition_ids(ids, bounds, shards)
            mine = order[counts[0] : counts[0] + counts[1]]
            walked.append(ids[mine])
            if len(mine):
                state = np.empty((len(mine), 0), np.float32)
                yield SavedRows(RowPart(ids[mine], rows[mine], state))
        self._check_distinct(walked)

    def _check_distinct(self, walked: list[I64]) -> None:
        """Raise `DataError` if an id came twice: its second row has replaced the first."""
        ids = np.sort(np.concatenate([np.empty(0, np.int64), *walked]))
        twice = ids[1:][ids[1:] == ids[:-1]]
        if len(twice):
            held = [p for p, found in zip(self._pages, walked, strict=True) if twice[0] in found]
            raise self._files.unreadable(held[-1]["ids"], f"has id {twice[0]} a second time")


class ModelDense:
    """One dense parameter of a saved model: values without optimizer state."""

    has_state = False
    version = vectors = 0

    def __init__(self, files: ModelFiles, spec: DenseTableSpec) -> None:
        self._files, self.spec, self._is_checked = files, spec, False

    def values(self, first: int, end: int) -> F32:
        """Elements `first` to `end` − 1 (n,) of the flat parameter."""
        name = self._files.dense.get(self.spec.parameter, "")
        if not name:
            raise self._files.unreadable(MANIFEST, f"has no file of {self.spec.parameter}")
        if not self._is_checked:
            self._files.check(name)
            self._is_checked = True
        return self._files.elements(name, self.spec.size, first, end)

    def state(self, first: int, end: int) -> F32:
        """No vectors (0, n)."""
        return np.empty((0, end - first), np.float32)
