"""Busy waits for a change in memory, or for a message, without the interpreter's lock.

A thread that polls in Python holds the lock half of the time, and puts threads that need it to
sleep: a wait would slow down the work it waits for. Now and then the core is offered to other
threads, which may need it where there are fewer cores than threads.
"""

from __future__ import annotations

import socket
import time
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

from psrt.core.types import I64
from psrt.kernels.jit import kernel

_fields_of: Any = arrayobj.make_array
_declared: Any = cgutils.get_or_insert_function


def _load_now(typing_context: Any, array: Any) -> Any:
    """`load_now(array)`: its first element as it is in memory now, whatever was read before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        fields = _fields_of(signature.args[0])(context, builder, args[0])
        return builder.load_atomic(fields.data, "acquire", 8)

    return types.int64(array), generate


load_now: Any = intrinsic(_load_now)


def _count_up(typing_context: Any, array: Any) -> Any:
    """`count_up(array)`: add one to its first element atomically."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        fields = _fields_of(signature.args[0])(context, builder, args[0])
        builder.atomic_rmw("add", fields.data, ir.Constant(ir.IntType(64), 1), "release")
        return context.get_dummy_value()

    return types.void(array), generate


count_up: Any = intrinsic(_count_up)


def _yield_core(typing_context: Any) -> Any:
    """`yield_core()`: let another thread of this core run, if one is waiting (`sched_yield`)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        function = _declared(builder.module, kind, "sched_yield")
        return builder.call(function, [])

    return types.int32(), generate


yield_core: Any = intrinsic(_yield_core)


_PEEK = int(socket.MSG_PEEK | socket.MSG_DONTWAIT)


def _clock_ns(typing_context: Any, array: Any) -> Any:
    """`clock_ns(array)`: the time of CLOCK_MONOTONIC; `array` is scratch for two numbers."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i32, i64 = ir.IntType(32), ir.IntType(64)
        data = _fields_of(signature.args[0])(context, builder, args[0]).data
        kind = ir.FunctionType(i32, [i32, i64.as_pointer()])
        function = _declared(builder.module, kind, "clock_gettime")
        builder.call(function, [i32(time.CLOCK_MONOTONIC), data])
        seconds, rest = builder.load(data), builder.load(builder.gep(data, [i32(1)]))
        return builder.add(builder.mul(seconds, i64(1_000_000_000)), rest)

    return types.int64(array), generate


clock_ns: Any = intrinsic(_clock_ns)


def _has_input(typing_context: Any, fd: Any, array: Any) -> Any:
    """`has_input(fd, array)`: True if `recv` would not wait; `array` is scratch."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i32, i64, data_type = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
        data = _fields_of(signature.args[1])(context, builder, args[1]).data
        kind = ir.FunctionType(i64, [i32, data_type, i64, i32])
        function = _declared(builder.module, kind, "recv")
        place, flags = builder.bitcast(data, data_type), i32(_PEEK)
        got = builder.call(function, [builder.trunc(args[0], i32), place, i64(1), flags])
        return builder.icmp_signed(">=", got, i64(0))

    return types.boolean(types.int64, array), generate


has_input: Any = intrinsic(_has_input)

_LOADS = 256  # between two offers: about as long as an offer takes
_LINGER = 4096  # loads: 1 µs


@kernel("const i8[::1], i8, i8 -> void", group="op pserver")
def await_change(counter: I64, seen: int, offers: int) -> None:
    """Return once `counter` (1,) is no longer `seen`, or the core was offered so many times.

    One offer is about 1 µs, or a time slice of a thread that took it.
    """
    for _ in range(offers):
        for _ in range(_LOADS):
            if load_now(counter) != seen:
                return
        yield_core()


@kernel("i8[::1] -> void", group="pserver")
def announce(counter: I64) -> None:
    """Count up `counter` (1,) for a thread that waits in `await_change`; returns 1 µs later.

    That thread then has the interpreter's lock: had it found the lock taken by this one it would
    have gone to sleep, and been woken 80 µs later.
    """
    count_up(counter)
    for _ in range(_LINGER):
        load_now(counter)


def await_input(fd: int, patience_ns: int) -> None:
    """Return once socket `fd` has input or was closed at the other end; after `patience_ns` at the
    latest, or when threads that took the core meanwhile leave it."""
    poll_input(fd, patience_ns, np.empty(2, np.int64))


@kernel("i8, i8, i8[::1] -> void", group="pserver trainer")
def poll_input(fd: int, patience_ns: int, scratch: I64) -> None:
    """See `await_input`; `scratch` (2,)."""
    began = clock_ns(scratch)
    while clock_ns(scratch) - began < patience_ns and not has_input(fd, scratch):
        yield_core()
