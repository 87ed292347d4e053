"""Writes a trained model into a directory that is either complete or absent.

Owns `DIR.tmp` while it works, under a lock that ends with the process, and removes it on failure;
an earlier model is renamed to `DIR.previous` first. Other files of these names are not touched. A
`DIR` that is a link means the directory behind it. Called by trainer 0 once every other trainer has
completed; arrays arrive one parameter or one page at a time, so memory use is that of the largest.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from psrt.core.errors import ConfigError
from psrt.core.types import F32, I64, Array
from psrt.trainer.models.model_dir import MANIFEST, Manifest, Page, dense_file, digest, page_files

RowPages = Iterable[tuple[I64, F32]]

_PARTS = {MANIFEST, "dense", "sparse"}


def check_target(directory: Path) -> None:
    """Refuse, before any training, a directory that is something other than a saved model, or that
    could not be written; makes its parents."""
    with _refused(directory):
        place = directory.resolve()
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
    _check_is_own(_previous(place))
    with _claimed(_unfinished(place)) as unfinished:
        shutil.rmtree(unfinished)


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
    _check_is_own(_previous(place))
    with _claimed(_unfinished(place)) as root:
        with _removed_unless_complete(root):
            writer = _Writer(root, manifest)
            for name, values in dense.items():
                manifest.dense[name] = writer.array(dense_file(name), values)
            for table, pages in sparse.items():
                manifest.sparse[table] = list(_write_pages(writer, table, pages()))
            writer.finish()
        _replace(root, place)
    return manifest


def _unfinished(place: Path) -> Path:
    return place.with_name(place.name + ".tmp")


def _previous(place: Path) -> Path:
    return place.with_name(place.name + ".previous")


def _check_is_own(leftover: Path) -> None:
    """Raise unless everything in a directory is part of a saved model."""
    is_own = leftover.is_dir() and {each.name for each in leftover.iterdir()} <= _PARTS
    if leftover.is_symlink() or (leftover.exists() and not is_own):
        raise ConfigError(
            f"{leftover} is in the way: psrt keeps a model there while it saves, and what stands "
            "there is none.",
            hint="Move it, or save to another directory.",
        )


@contextmanager
def _claimed(root: Path) -> Iterator[Path]:
    """Make an empty directory that no other save uses; saves of one name wait for each other."""
    with _refused(root):
        _check_is_own(root)
        root.mkdir(exist_ok=True)
        claim = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(claim, root)
        for part in root.iterdir():  # of a save that broke off
            shutil.rmtree(part) if part.is_dir() else part.unlink()
        yield root
    finally:
        os.close(claim)


def _lock(claim: int, root: Path) -> None:
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_there = os.path.samestat(os.fstat(claim), root.stat())
    except (BlockingIOError, FileNotFoundError):
        is_there = False
    if not is_there:  # somebody else's, or it was, and is a model by now
        raise ConfigError(
            f"Another save is under way in {root}; this one did nothing.",
            hint="Save one after the other, or to directories of different names.",
        )


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
            for folder in ("dense", "sparse"):
                (root / folder).mkdir(parents=True)

    def array(self, name: str, values: Array) -> str:
        path = self.root / name
        with _refused(path), path.open("wb") as file:
            np.save(file, np.ascontiguousarray(values), allow_pickle=False)
            os.fsync(file.fileno())
        self._manifest.sha256[name] = digest(path)
        return name

    def finish(self) -> None:
        path = self.root / MANIFEST
        with _refused(path), path.open("w") as file:
            file.write(self._manifest.to_json())
            file.flush()
            os.fsync(file.fileno())


def _replace(written: Path, directory: Path) -> None:
    """Rename into place; an earlier model is moved away first and then removed."""
    previous = _previous(directory)
    shutil.rmtree(previous, ignore_errors=True)
    try:
        if directory.exists():
            directory.rename(previous)
        written.rename(directory)
    except OSError as error:
        raise ConfigError(
            f"The model is complete in {written}, but could not be renamed to {directory} "
            f"({error.strerror}).",
            hint=f"Move what is in its way, then: mv {written} {directory}",
        ) from error
    shutil.rmtree(previous, ignore_errors=True)
