"""Writes a trained model into a directory that is either complete or absent.

How it takes the place of an earlier one, and what follows a kill, is in `replacement`. A failed
save removes what it wrote. A `DIR` that is a link means the directory behind it. Called by trainer
0 once every other trainer has completed; arrays arrive one parameter or one page at a time, so
memory use is that of the largest.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from psrt.core import whole_file
from psrt.core.errors import ConfigError
from psrt.core.types import F32, I64, Array
from psrt.trainer.models.model_dir import MANIFEST, Manifest, Page, dense_file, digest, page_files
from psrt.trainer.models.replacement import (
    check_names,
    claimed,
    finish_earlier,
    replace,
    unfinished,
)

RowPages = Iterable[tuple[I64, F32]]

_FOLDERS = ("dense", "sparse")


def check_target(directory: Path) -> None:
    """Refuse, before any training, a directory that is something other than a saved model, or that
    could not be written; makes its parents."""
    with _refused(directory):
        place = directory.resolve()
        check_names(place)
        finish_earlier(place)
        if place.exists() and not _is_empty_or_model(place):
            raise ConfigError(
                f"{directory} exists and is not a saved model; psrt will not replace it.",
                hint="Name a directory that does not exist, or an earlier saved model.",
            )
        if place.is_mount() or Path.cwd().is_relative_to(place):
            raise ConfigError(
                f"{directory} is a mount point or psrt runs in it, so that a saved model cannot "
                "take its place.",
                hint="Name a directory inside it.",
            )
        _try_to_write(place)


def _is_empty_or_model(place: Path) -> bool:
    return (place / MANIFEST).is_file() or (place.is_dir() and not any(place.iterdir()))


def _try_to_write(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with claimed(unfinished(place)):
        unfinished(place).rmdir()


def save(
    directory: Path,
    manifest: Manifest,
    dense: Mapping[str, F32],
    sparse: Mapping[str, Callable[[], RowPages]],
) -> Manifest:
    """Write everything to `directory.tmp`, then give it its name; returns the full manifest.

    `sparse` gives, per table, a function that starts the iteration over pages of (ids, rows).
    Raises `ConfigError` when the directory cannot be written.
    """
    place = directory.resolve()
    root = unfinished(place)
    with _refused(place):
        check_names(place)
        finish_earlier(place)
    with ExitStack() as claim:
        with _refused(root):
            claim.enter_context(claimed(root))
        with _removed_unless_complete(root):
            writer = _Writer(root, manifest)
            for name, values in dense.items():
                manifest.dense[name] = writer.array(dense_file(name), values)
            for table, pages in sparse.items():
                manifest.sparse[table] = list(_write_pages(writer, table, pages()))
            writer.finish()
        replace(root, place)
    return manifest


@contextmanager
def _removed_unless_complete(root: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Return an error of the operating system at `path` as one for the user."""
    try:
        yield
    except OSError as error:
        # For an array that did not fit, NumPy reports how much was written, and no errno.
        why = error.strerror or str(error)
        raise ConfigError(
            f"The model cannot be saved. {error.filename or path}: {why}.",
            hint="Name a directory that may be written, on a disk with room for the whole model.",
        ) from error


def _write_pages(writer: _Writer, table: str, pages: RowPages) -> Iterator[Page]:
    for number, (ids, rows) in enumerate(page for page in pages if len(page[0])):
        ids_name, rows_name = page_files(table, number)
        writer.array(ids_name, ids)
        writer.array(rows_name, rows)
        yield Page(ids_name, rows_name, len(ids))


class _Writer:
    """Files of one model under a temporary root, each synced and hashed."""

    def __init__(self, root: Path, manifest: Manifest) -> None:
        self.root = root
        self._manifest = manifest
        with _refused(root):
            for folder in _FOLDERS:
                (root / folder).mkdir()

    def array(self, name: str, values: Array) -> str:
        path = self.root / name
        with _refused(path), path.open("wb") as file:
            np.save(file, np.ascontiguousarray(values), allow_pickle=False)
            os.fsync(file.fileno())
        self._manifest.sha256[name] = digest(path)
        return name

    def finish(self) -> None:
        """Put the manifest in place once all files and their names are on the disk."""
        with _refused(self.root):
            for folder in _FOLDERS:
                whole_file.sync_directory(self.root / folder)
            whole_file.write(self.root / MANIFEST, self._manifest.to_json())
