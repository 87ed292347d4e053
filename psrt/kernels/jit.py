"""The one compile policy of psrt: every kernel goes through `@kernel`, every inner loop `@device`.

A kernel has exactly one signature, written down: inputs marked `const` accept read-only arrays
(decoded frames) as well as writable ones, Python scalars are cast, anything else is a TypeError.
Lazily, numba would compile a second version for read-only arrays and a third for Python floats, in
the middle of a push.

Policy, with reasons: `nogil`, so that connections proceed side by side; `error_model="numpy"`,
because Python's zero-division check stops vectorisation (Adagrad rows: 5 instead of 18 M rows/s);
no fastmath, so that results are the same bits however a block was sliced; never `parallel=True`,
which aborts the process when called from several threads; no numba runtime (`_nrt`): a kernel
allocates nothing, outputs and scratch are passed in, and then numba does not count references of
every array at every inner call (text.parse_rows: 520 instead of 55 MB/s).

Any thread may call a kernel; the first caller compiles or loads it while the others wait.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core.typing.typeof import typeof_impl

from psrt.kernels import cache

_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "_nrt": False}
_SCALARS: dict[str, Any] = {
    "f4": types.float32,
    "f8": types.float64,
    "i4": types.int32,
    "i8": types.int64,
    "i1": types.int8,
    "u1": types.uint8,
    "u2": types.uint16,
    "u4": types.uint32,
    "u8": types.uint64,
    "b1": types.boolean,
}
_COMMA = re.compile(r",(?![^\[]*\])")
_TYPE = re.compile(r"(const )?(\w\d)(?:\[(.+)\])?")

_registry: list[Kernel] = []
_loading = threading.RLock()
_listener: Callable[[str], None] | None = None

_F = TypeVar("_F", bound=Callable[..., Any])


class Kernel:
    """A function with one compiled signature, built on first call.

    `_entry is _load_and_call` until the machine code is in place, then it is the numba dispatcher.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: str,
        groups: frozenset[str],
        brief: bool = False,
    ):
        self.python = function
        self.name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        self.signature = signature
        self.groups = groups
        self._options = _OPTIONS | {"nogil": not brief}
        self._entry: Callable[..., Any] = self._load_and_call
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any) -> Any:
        return self._entry(*args)

    @cached_property
    def dispatcher(self) -> Any:
        """numba's function; a process makes those of the kernels that it uses."""
        return numba.njit(**self._options)(self.python)

    def __repr__(self) -> str:
        return f"<kernel {self.name}: {self.signature}>"

    @property
    def ready(self) -> bool:
        return self._entry != self._load_and_call

    def load(self, on_compile: Callable[[str], None] | None = None, compiles: bool = True) -> None:
        """Load machine code from the cache, or compile it unless `compiles` is off; idempotent."""
        with _loading:
            if self.ready:
                return
            if not self._read():
                if not compiles:
                    return
                self._open(on_compile or _listener)
            self.dispatcher.disable_compile()
            self._entry = self.dispatcher

    def _read(self) -> bool:
        """Load machine code, at the same time as other processes; False if there is none."""
        with cache.read(self.dispatcher) as is_cached, suppress(*cache.UNUSABLE):
            if is_cached:
                self.dispatcher.compile(parse_signature(self.signature))
            return is_cached
        return False

    def _open(self, listener: Callable[[str], None] | None) -> None:
        """Compile, unless another process has meanwhile."""
        with cache.opened(self.dispatcher) as is_cached:
            if listener is not None and not is_cached:
                listener(self.name)
            self._compile()

    def _compile(self) -> None:
        parsed = parse_signature(self.signature)
        try:
            self.dispatcher.compile(parsed)
        except cache.UNUSABLE:
            cache.forget(self.dispatcher)
            self.dispatcher.compile(parsed)

    def _load_and_call(self, *args: Any) -> Any:
        self.load()
        return self.dispatcher(*args)


def kernel(
    signature: str, group: str, brief: bool = False
) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel: `@kernel("f4[::1], const f4[::1], f4 -> void", group="pserver trainer")`.

    `group` lists the roles that warm it up, separated by blanks: `pserver`, `trainer`, `data` (the
    readers of a trainer), `convert` (the data tools), `rule` (processes with a table of that
    optimizer: see `psrt.kernels.optimizers.registry`), `table` (a trainer that holds a table, when
    made), `op` (the executor of a program with an op that needs it, when made), `half` (processes
    that store or send numbers of less than 32 bits), `policy` (a pserver with a table of that
    admission or lifecycle, when made), `freeze` (a pserver, at its first freeze or restore). A
    `brief` kernel keeps the interpreter's lock: otherwise another thread could take it, and the
    caller would wait for it, at every call. The body must be a function without closure: numba's
    cache finds it by module, name and line.
    """

    def declare(function: Callable[..., Any]) -> Kernel:
        declared = Kernel(function, signature, frozenset(group.split()), brief)
        _registry.append(declared)
        return declared

    return declare


class Device:
    """A function that kernels inline; only a process that compiles a caller makes its dispatcher.

    A dispatcher takes 0.6 ms to make, and psrt has 200 such functions.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function
        update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        return self.dispatcher(*args)

    @cached_property
    def dispatcher(self) -> Any:
        """numba's function."""
        return numba.njit(forceinline=True, **_OPTIONS)(self.py_func)


@typeof_impl.register(Device)
def _type_of_device(found: Device, context: Any) -> Any:
    return types.Dispatcher(found.dispatcher)


def device(function: _F) -> _F:
    """A function that kernels call: no signature of its own, inlined into each caller."""
    return cast(_F, Device(function))


def kernels(groups: Iterable[str] | None = None) -> list[Kernel]:
    """All kernels declared by the modules imported so far, or those of some groups."""
    wanted = None if groups is None else set(groups)
    return [k for k in _registry if wanted is None or k.groups & wanted]


def warm_up(
    groups: Iterable[str] | None = None, on_compile: Callable[[str], None] | None = None
) -> float:
    """Load all kernels of `groups` and return the seconds it took.

    Daemons call this before they report ready: the first push must not wait for a compiler.
    `on_compile(name)` is called before a kernel that is not in the cache.
    """
    start = time.perf_counter()
    for each in kernels(groups):
        each.load(on_compile)
    return time.perf_counter() - start


def load_cached(groups: Iterable[str]) -> None:
    """Load the kernels of `groups` that are in the cache; compile none."""
    for each in kernels(groups):
        each.load(compiles=False)


def on_compile(listener: Callable[[str], None] | None) -> None:
    """Call `listener` with the name of each kernel that is not in the cache, before it is
    compiled."""
    global _listener
    _listener = listener


def set_cache_dir(path: str | Path) -> None:
    """Keep machine code under `path` from now on; kernels already loaded stay as they are."""
    cache.set_root(Path(path))


def parse_signature(text: str) -> Any:
    """`"const f4[::1], i8 -> void"` as a numba signature."""
    arguments, arrow, result = text.partition("->")
    if not arrow:
        raise ValueError(f"kernel signature without '->': {text!r}")
    returns = types.void if result.strip() == "void" else _parse_type(result)
    return returns(*[_parse_type(part) for part in _COMMA.split(arguments) if part.strip()])


def _parse_type(text: str) -> Any:
    match = _TYPE.fullmatch(text.strip())
    if match is None or match[2] not in _SCALARS:
        raise ValueError(f"kernel signature: cannot read type {text.strip()!r}")
    is_const, scalar, axes = match[1], _SCALARS[match[2]], match[3]
    if axes is None:
        return scalar
    layout: Any = "C" if axes.endswith("::1") else "A"
    return types.Array(scalar, axes.count(",") + 1, layout, readonly=bool(is_const))
