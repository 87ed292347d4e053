"""The parameters of a cut or of a saved model, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from psrt.core.errors import ConfigError
from psrt.core.specs import DenseTableSpec, SparseTableSpec
from psrt.core.types import F32
from psrt.pserver.checkpoints import SavedCut, StoredPages, find_cut
from psrt.pserver.saved.cut_dense import CutDense
from psrt.pserver.saved.cut_tables import CutTable
from psrt.pserver.saved.model_files import MANIFEST, ModelDense, ModelFiles, ModelTable
from psrt.pserver.saved.row_parts import SavedRows
from psrt.storage.locate import directory_at


class SourceTable(Protocol):
    """A sparse table of a source; `spec` is that of the whole table."""

    spec: SparseTableSpec
    has_state: bool

    @property
    def progress(self) -> dict[str, Any]:
        """Version and time of the latest update, for a table that keeps the optimizer's state."""
        ...

    def groups(self, first_shard: int, last_shard: int) -> Iterator[SavedRows]:
        """The rows of virtual shards `first_shard` to `last_shard` − 1, each id once."""
        ...


class SourceDense(Protocol):
    """A dense parameter of a source; `spec` is that of the whole parameter."""

    spec: DenseTableSpec
    has_state: bool

    @property
    def version(self) -> int:
        """The number of updates."""
        ...

    def values(self, first: int, end: int) -> F32:
        """Elements `first` to `end` − 1 (n,) of the flat parameter."""
        ...

    def state(self, first: int, end: int) -> F32:
        """The optimizer's vectors (vectors, n) for elements `first` to `end` − 1."""
        ...


@dataclass(frozen=True)
class SavedState:
    """All parameters of a source by name; `label` names it in messages."""

    label: str
    dense: dict[str, SourceDense]
    sparse: dict[str, SourceTable]


@dataclass(frozen=True)
class CutState:
    """All parameters of a cut by name."""

    cut: SavedCut
    dense: dict[str, CutDense]
    sparse: dict[str, CutTable]


def cut_state(cut: SavedCut) -> CutState:
    """The parameters of a cut; their values are read when they are asked for."""
    dense: dict[str, list[StoredPages]] = {}
    sparse: dict[str, list[StoredPages]] = {}
    for stored in cut.stored_pages():
        spec = stored.facts["spec"]
        if spec["kind"] == DenseTableSpec.__name__:
            dense.setdefault(spec["parameter"], []).append(stored)
        else:
            sparse.setdefault(spec["name"], []).append(stored)
    return CutState(
        cut,
        {name: CutDense(cut, dense[name]) for name in sorted(dense)},
        {name: CutTable(cut, sparse[name]) for name in sorted(sparse)},
    )


def open_cut_at(source: str) -> SavedCut:
    """The cut that `DIR`, `DIR#ID` or `DIR#latest` names; raises `ConfigError` without one."""
    location, which = split_source(source)
    return find_cut(directory_at(location), which or "latest")


def open_state(source: str) -> SavedState:
    """The parameters that a directory of cuts (`DIR`, `DIR#ID`) or of a saved model has.

    Raises `ConfigError` if it is neither, `DataError` or `StorageError` if a file is damaged.
    """
    location, which = split_source(source)
    directory = directory_at(location)
    if not which and MANIFEST in directory.names(MANIFEST):
        files = ModelFiles(directory)
        dense = [spec for spec in files.specs if isinstance(spec, DenseTableSpec)]
        sparse = [spec for spec in files.specs if isinstance(spec, SparseTableSpec)]
        return SavedState(
            f"model {location}",
            {spec.parameter: ModelDense(files, spec) for spec in dense},
            {spec.name: ModelTable(files, spec) for spec in sparse},
        )
    if not directory.names("cut-"):
        raise ConfigError(
            f"{location} holds neither cuts nor a saved model; nothing was read.",
            hint="Name a directory of --checkpoint-dir, DIR#ID for one of its cuts, or a directory "
            "of --save.",
        )
    state = cut_state(find_cut(directory, which or "latest"))
    return SavedState(
        f"cut {state.cut.number} of {location}", dict(state.dense), dict(state.sparse)
    )


def split_source(source: str) -> tuple[str, str]:
    """Location and cut of `DIR#ID`; no cut for a `DIR`, whose name may have a `#`."""
    location, mark, which = source.rpartition("#")
    if mark and (which.isdecimal() or which == "latest"):
        return location, which
    return source, ""
