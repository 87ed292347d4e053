"""The directory of compiled kernels, which several processes may fill at once.

The directory's name holds everything the machine code depends on: numba's version, the CPU and its
features, and a hash of the sources of `psrt.kernels`. It does not hold the path of psrt: checkouts
and virtual environments with equal sources share machine code. numba's own check would not do: it
reads a kernel's file only, not the device functions it calls in other files.

One file lock per directory is held while a kernel is compiled, and shared with other readers while
one is loaded: numba writes each file atomically, but not the index and the data file together
(numba#4807). The lock ends with its process. A process that cannot get it in time compiles without
a cache. So does one that finds a directory into which another user may write: indexes are pickles,
and data files are machine code. A directory that cannot be written, such as that of an image, is
read without a lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import logging
import os
import pickle
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numba
from llvmlite import binding as llvm
from numba.core import caching
from numba.core.runtime.nrt import rtsys

log = logging.getLogger(__name__)

_UNPICKLING = (AttributeError, ImportError, IndexError, KeyError, TypeError, ValueError)
UNUSABLE = (EOFError, pickle.UnpicklingError, OSError, *_UNPICKLING)
"""Errors of an entry that was cut off or overwritten; pickle raises almost any for the latter."""

LOCK_TIMEOUT_S = 120.0
_POLL_S = 0.01

_config: Any = numba.config  # its names are made at run time
_root = Path.home() / ".cache" / "psrt" / "kernels"


def set_root(root: Path) -> None:
    """Keep directories of machine code under `root` from now on."""
    global _root
    _root = root


def directory() -> Path:
    """The cache of this host, numba and source tree; it need not exist."""
    return _root / fingerprint()


@functools.cache
def fingerprint() -> str:
    """Name of the cache directory, such as `numba-0.68.1-icelake-server-0f3a9c41d2e7`."""
    digest = hashlib.sha256(_cpu_features().encode())
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    cpu = _config.CPU_NAME or llvm.get_host_cpu_name()
    return f"numba-{numba.__version__}-{cpu}-{digest.hexdigest()[:12]}"


def _cpu_features() -> str:
    """Those of the variable NUMBA_CPU_FEATURES, for images that fit several CPUs, or the host's."""
    given = _config.CPU_FEATURES
    return llvm.get_host_cpu_features().flatten() if given is None else str(given)


@contextlib.contextmanager
def read(dispatcher: Any) -> Iterator[bool]:
    """Attach the cache to one dispatcher, to load from; yields whether its code is there.

    Loading raises one of `UNUSABLE` if it is not there after all. Other processes load meanwhile.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_locked(directory(), fcntl.LOCK_SH))
            attached = _attach(dispatcher, _ReadCache)
        except OSError:
            attached = False  # `opened` reports it
        yield attached


@contextlib.contextmanager
def opened(dispatcher: Any) -> Iterator[bool]:
    """Attach the cache to one dispatcher, locked; yields whether its code is already there."""
    with contextlib.ExitStack() as stack:
        try:
            is_writable = stack.enter_context(_locked(directory(), fcntl.LOCK_EX))
            attached = _attach(dispatcher, _KernelCache)
            if not (attached or is_writable):
                dispatcher._cache = caching.NullCache()  # its code could not be stored
        except OSError as error:
            log.warning("kernel cache %s is out of use (%s); compiling anew", directory(), error)
            attached = False
        yield attached


def forget(dispatcher: Any) -> None:
    """Drop the entry of one dispatcher after an UNUSABLE error: the host lost power during a write,
    or the disk is full."""
    log.warning("kernel cache %s holds no usable %s; compiling anew", directory(), dispatcher)
    try:
        dispatcher._cache.flush()
    except OSError:
        dispatcher._cache = caching.NullCache()


@contextlib.contextmanager
def _locked(path: Path, kind: int) -> Iterator[bool]:
    """Lock a directory; yields whether it can be written."""
    path.mkdir(mode=0o755, parents=True, exist_ok=True)
    for each in (_root, path):
        _check_owner(each)
    if not os.access(path, os.W_OK):
        yield False
        return
    with (path / "lock").open("w") as file:
        _lock(file, kind, LOCK_TIMEOUT_S)
        yield True


def _check_owner(path: Path) -> None:
    """Raise `PermissionError` for a directory of another user, or one that all may write to.

    A group may: it is the user's own on many hosts. A directory of root's is trusted.
    """
    found = path.stat()
    if found.st_uid not in (0, os.getuid()) or found.st_mode & stat.S_IWOTH:
        who = f"user {found.st_uid} owns it, its mode is {stat.S_IMODE(found.st_mode):o}"
        raise PermissionError(f"other users may write to {path}: {who}")


def directory_problem(directory: str = "") -> str:
    """The reason not to keep compiled kernels in `directory`, or the usual one; "" = none."""
    path = Path(directory) if directory else _root
    try:
        path.mkdir(parents=True, exist_ok=True)
        _check_owner(path)
        if not os.access(path, os.W_OK):
            raise PermissionError(f"{path} cannot be written")
    except OSError as error:
        return str(error)
    return ""


def _lock(file: IO[str], kind: int, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_POLL_S)


def _attach(dispatcher: Any, kind: type[_KernelCache]) -> bool:
    dispatcher._cache = cached = kind(dispatcher.py_func)
    return Path(cached._cache_file._index_path).exists()


class _Locator(caching._CacheLocator):
    """A folder per module: numba's locators name it by the path and time of the source file."""

    def __init__(self, function: Any, source: str) -> None:
        self._py_file = source  # numba names it in warnings
        self._folder = directory() / function.__module__
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return fingerprint()

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        """Make the folder; unlike numba's, it may be one that can only be read."""
        if not Path(self._folder).is_dir():
            super().ensure_cache_path()  # type: ignore[no-untyped-call]

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:
        locator = cls(py_func, py_file)
        locator.ensure_cache_path()
        return locator


class _KernelCacheImpl(caching.CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [_Locator]  # noqa: RUF012


class _KernelCache(caching.FunctionCache):
    _impl_class = _KernelCacheImpl


class _ReadCache(_KernelCache):
    """Reads entries, and compiles nothing.

    Without an entry numba would compile one and write it, which needs the whole lock. Before each
    entry it would refresh its tables for compiling, with 70 modules of its own: half the time
    that the kernels of a process take to load.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # kernels may allocate
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None:
            raise KeyError(sig)
        return found
