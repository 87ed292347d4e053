"""Writes a trained model into a directory that is either complete or not there.

Owns `DIR.tmp` while it works. Called by trainer 0 once every other trainer has completed; arrays
arrive one parameter or one page at a time, so the memory needed is that of the largest one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from psrt.core.errors import ConfigError
from psrt.core.types import F32, I64, Array
from psrt.trainer.model_dir import MANIFEST, Manifest, Page, dense_file, digest, page_files

RowPages = Iterable[tuple[I64, F32]]


def check_target(directory: Path) -> None:
    """Refuse, before any training, a directory that is something other than a saved model."""
    if directory.is_dir() and not any(directory.iterdir()):
        return
    if directory.exists() and not (directory / MANIFEST).is_file():
        raise ConfigError(
            f"{directory} exists and is not a saved model; psrt will not replace it.",
            hint="Name a directory that does not exist, or an earlier saved model.",
        )


def save(
    directory: Path,
    manifest: Manifest,
    dense: Mapping[str, F32],
    sparse: Mapping[str, Callable[[], RowPages]],
) -> Manifest:
    """Write everything to `directory.tmp`, then give it its name; returns the full manifest.

    `sparse` gives, per table, a function that starts the iteration over pages of (ids, rows).
    """
    writer = _Writer(directory.with_name(directory.name + ".tmp"), manifest)
    for name, values in dense.items():
        manifest.dense[name] = writer.array(dense_file(name), values)
    for table, pages in sparse.items():
        manifest.sparse[table] = list(_write_pages(writer, table, pages()))
    writer.finish()
    _replace(writer.root, directory)
    return manifest


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
        shutil.rmtree(root, ignore_errors=True)
        for folder in ("dense", "sparse"):
            (root / folder).mkdir(parents=True)

    def array(self, name: str, values: Array) -> str:
        path = self.root / name
        with path.open("wb") as file:
            np.save(file, np.ascontiguousarray(values), allow_pickle=False)
            _sync(file.fileno())
        self._manifest.sha256[name] = digest(path)
        return name

    def finish(self) -> None:
        with (self.root / MANIFEST).open("w") as file:
            file.write(self._manifest.to_json())
            file.flush()
            _sync(file.fileno())


def _sync(descriptor: int) -> None:
    os.fsync(descriptor)


def _replace(written: Path, directory: Path) -> None:
    """Rename into place; an earlier model steps aside first and is then removed."""
    previous = directory.with_name(directory.name + ".previous")
    shutil.rmtree(previous, ignore_errors=True)
    if directory.exists():
        directory.rename(previous)
    written.rename(directory)
    shutil.rmtree(previous, ignore_errors=True)
