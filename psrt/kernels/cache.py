"""Where compiled kernels are kept, and how several processes fill one directory at once.

The directory's name holds everything the machine code depends on: numba's version, the CPU and its
features, and a hash of the sources of `psrt.kernels`. The last is needed because numba's own check
looks at a kernel's file only, not at the device functions it calls in other files.

One file lock per directory is held while a kernel is loaded or compiled: numba writes each file
atomically, but not the index and the data file together (numba#4807). The lock goes with its
process; whoever cannot get it in time, or cannot write the directory, compiles without a cache.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import logging
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numba
from llvmlite import binding as llvm
from numba.core.caching import NullCache

log = logging.getLogger(__name__)

UNUSABLE = (EOFError, pickle.UnpicklingError, OSError)
LOCK_TIMEOUT_S = 120.0
_POLL_S = 0.01

_root = Path.home() / ".cache" / "psrt" / "kernels"


def set_root(root: Path) -> None:
    global _root
    _root = root


def directory() -> Path:
    """The cache of this host, numba and source tree; it need not exist."""
    return _root / fingerprint()


@functools.cache
def fingerprint() -> str:
    """Name of the cache directory, such as `numba-0.68.1-icelake-server-0f3a9c41d2e7`."""
    digest = hashlib.sha256(llvm.get_host_cpu_features().flatten().encode())
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    return f"numba-{numba.__version__}-{llvm.get_host_cpu_name()}-{digest.hexdigest()[:12]}"


@contextlib.contextmanager
def opened(dispatcher: Any) -> Iterator[bool]:
    """Attach the cache to one dispatcher, locked; yields whether its code is there already."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_locked(directory()))
            attached = _attach(dispatcher, directory())
        except OSError as error:
            log.warning("kernel cache %s is out of use (%s); compiling anew", directory(), error)
            attached = False
        yield attached


def forget(dispatcher: Any) -> None:
    """Drop the entry of one dispatcher after an UNUSABLE error: the host lost power while the entry
    was written, or the disk is full."""
    log.warning("kernel cache %s holds no usable %s; compiling anew", directory(), dispatcher)
    try:
        dispatcher._cache.flush()
    except OSError:
        dispatcher._cache = NullCache()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.mkdir(parents=True, exist_ok=True)
    with (path / "lock").open("w") as file:
        _lock_exclusively(file, LOCK_TIMEOUT_S)
        yield


def _lock_exclusively(file: IO[str], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_POLL_S)


def _attach(dispatcher: Any, path: Path) -> bool:
    # numba reads its global setting once, when caching is enabled; the caller holds the loading
    # lock, so no other kernel sees it.
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(path)
    try:
        dispatcher.enable_caching()
    finally:
        settings.CACHE_DIR = before
    return Path(dispatcher._cache._cache_file._index_path).exists()
