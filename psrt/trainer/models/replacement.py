"""The steps by which a saved model takes the place of an earlier one, safe against crashes.

1. The model is written to `DIR.tmp`, every file synced, its manifest last: a directory that has a
   manifest is a complete model, whatever its name.
2. An earlier model is renamed to `DIR.previous`, then `DIR.tmp` to `DIR`; names are synced.
3. `DIR.previous` is removed, its manifest first.

A save that ends between the two renames leaves no `DIR`. Whoever loads from `DIR` or saves to it
next finishes the second rename (`finish_earlier`). A save holds a lock on `DIR.tmp`, which ends
with its process.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psrt.core.errors import ConfigError, DataError
from psrt.core.whole_file import sync_directory
from psrt.trainer.models.model_dir import MANIFEST, read_manifest

log = logging.getLogger("psrt.trainer")

PATIENCE_S = 5.0
"""Longest wait for another process between its two renames, which takes milliseconds."""

_UNFINISHED, _PREVIOUS = ".tmp", ".previous"
_POLL_S = 0.02
_PARTS = {MANIFEST, "dense", "sparse"}


def unfinished(place: Path) -> Path:
    """Return the directory in which a save to `place` writes."""
    return place.with_name(place.name + _UNFINISHED)


def previous(place: Path) -> Path:
    """Return the directory that holds the earlier model while a new one takes its place."""
    return place.with_name(place.name + _PREVIOUS)


def check_names(place: Path) -> None:
    """Refuse names of psrt's own as a target, and files of others under psrt's names."""
    if place.name.endswith((_UNFINISHED, _PREVIOUS)):
        raise ConfigError(
            f"a model cannot be saved to {place}: psrt keeps unfinished and earlier models under "
            f"names that end with {_UNFINISHED} and {_PREVIOUS}.",
            hint="Choose another name.",
        )
    _check_is_own(previous(place))
    _check_is_own(unfinished(place))


def finish_earlier(place: Path) -> None:
    """Give `place` its name if a save was killed before its last rename; else do nothing.

    Raises `ConfigError` if the rename fails, or if a save is at that point for too long.
    """
    complete = unfinished(place)
    deadline = time.monotonic() + PATIENCE_S
    while _lacks_a_model(place) and _is_complete(complete):
        if _finish_unless_locked(complete, place):
            return
        if time.monotonic() > deadline:
            raise _under_way(complete)
        time.sleep(_POLL_S)


def earlier_model(place: Path) -> Path | None:
    """Return the directory of the earlier model if `place` lacks and it is complete."""
    kept = previous(place)
    return kept if _lacks_a_model(place) and _is_complete(kept) else None


@contextmanager
def claimed(root: Path) -> Iterator[None]:
    """Make an empty directory that no other save uses; a second save of that name is refused."""
    _check_is_own(root)
    root.mkdir(exist_ok=True)
    claim = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not _lock(claim, root):  # somebody else's, or it was, and is a model by now
            raise _under_way(root)
        _empty(root)
        yield
    finally:
        os.close(claim)


def replace(written: Path, place: Path) -> None:
    """Rename a complete model into place; an earlier one is moved away first and then removed."""
    kept = previous(place)
    try:
        if not _lacks_a_model(place):
            discard(kept)
            place.rename(kept)
        _finish(written, place)
    except OSError as error:
        raise _not_renamed(written, place, error) from error
    _discard_if_possible(kept)


def _lacks_a_model(place: Path) -> bool:
    """True if there is nothing, or an empty directory, over which a rename is possible."""
    return not place.exists() or (place.is_dir() and not any(place.iterdir()))


def _is_complete(directory: Path) -> bool:
    if not (directory / MANIFEST).is_file():
        return False
    try:
        read_manifest(directory)
    except DataError:  # of an old version of psrt, which wrote it in place
        return False
    return True


def _finish_unless_locked(complete: Path, place: Path) -> bool:
    """Rename a complete model into place, unless its save is alive; returns whether it was done."""
    try:
        claim = os.open(complete, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return False
    try:
        if not _lock(claim, complete):
            return False
        if _lacks_a_model(place):
            log.warning("%s is complete; its save was killed before it became %s", complete, place)
            _finish(complete, place)
            _discard_if_possible(previous(place))
        return True
    except OSError as error:
        raise _not_renamed(complete, place, error) from error
    finally:
        os.close(claim)


def _finish(complete: Path, place: Path) -> None:
    complete.rename(place)
    sync_directory(place.parent)


def _lock(claim: int, root: Path) -> bool:
    """Lock an open directory; returns False if another process has, or if it is `root` no more."""
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(claim), root.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _check_is_own(leftover: Path) -> None:
    """Raise unless everything in a directory is part of a saved model."""
    is_own = leftover.is_dir() and {_whose(each.name) for each in leftover.iterdir()} <= _PARTS
    if leftover.is_symlink() or (leftover.exists() and not is_own):
        raise ConfigError(
            f"{leftover} is in the way: psrt keeps a model there while it saves, and what stands "
            "there is none.",
            hint="Move it, or save to another directory.",
        )


def _whose(name: str) -> str:
    """The part of a model that a file belongs to: `manifest.json.7.tmp` is one to be."""
    return MANIFEST if name.startswith(f"{MANIFEST}.") and name.endswith(_UNFINISHED) else name


def discard(directory: Path) -> None:
    """Remove a model, its manifest first: what is left of it must not look complete."""
    if directory.exists():
        _empty(directory)
        directory.rmdir()


def _discard_if_possible(directory: Path) -> None:
    try:
        discard(directory)
    except OSError as error:
        log.warning("%s, the earlier model, cannot be removed: %s", directory, error.strerror)


def _empty(directory: Path) -> None:
    (directory / MANIFEST).unlink(missing_ok=True)
    sync_directory(directory)
    for part in directory.iterdir():
        shutil.rmtree(part) if part.is_dir() else part.unlink()


def _under_way(root: Path) -> ConfigError:
    return ConfigError(
        f"Another save is under way in {root}; this one did nothing.",
        hint="Save one after the other, or to directories of different names.",
    )


def _not_renamed(complete: Path, place: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"The model is complete in {complete}, but could not be renamed to {place} "
        f"({error.strerror}).",
        hint=f"Move what is in its way, then: mv {complete} {place}",
    )
