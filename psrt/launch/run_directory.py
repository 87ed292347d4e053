"""The directory of one launch, which no other launch writes to: logs, ready files, reports.

`runs/NAME-TIME` is made for it, with the link `runs/latest`, unless `--log-dir` names another one.
A launch holds a lock on its directory: processes of two launches in one directory would read each
other's ready files, and train into each other.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from datetime import datetime
from itertools import count
from pathlib import Path

from psrt.config.sections import LaunchConfig
from psrt.core.errors import ConfigError
from psrt.launch.outputs import make_directory

LATEST = "latest"


def directory_for(config: LaunchConfig, job: str, now: datetime) -> Path:
    """The directory of a launch that begins `now`; makes nothing."""
    if config.log_dir:
        return Path(config.log_dir)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", job).strip(".") or "job"
    return Path(config.runs) / f"{name}-{now:%Y%m%d-%H%M%S}"


def make(config: LaunchConfig, job: str, now: datetime) -> Path:
    """Make the directory of a launch; a new one has a name that no other has, and is `latest`."""
    wanted = directory_for(config, job, now)
    if config.log_dir:
        make_directory("log_dir", config.log_dir)
        return wanted
    make_directory("runs", config.runs)
    for number in count(1):
        made = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        with contextlib.suppress(FileExistsError):
            made.mkdir()
            _link_latest(made)
            return made
    raise AssertionError("there are infinitely many numbers")


@contextlib.contextmanager
def held(directory: Path) -> Iterator[None]:
    """Keep other launches out of the directory; raises `ConfigError` if one runs in it.

    A file system without locks is used without one.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            _lock(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ConfigError(
            f"another launch runs in {directory} and writes its files there; nothing was started.",
            hint="Leave --log-dir out: each launch then has a directory of its own below runs.",
        ) from error


def _link_latest(directory: Path) -> None:
    """Let `latest` beside the directory lead to it, at any time to a whole one."""
    link = directory.with_name(LATEST)
    new = directory.with_name(f".{LATEST}.{os.getpid()}")
    with contextlib.suppress(OSError):  # a file system without links, or a directory of that name
        new.symlink_to(directory.name)
        new.replace(link)
    new.unlink(missing_ok=True)
