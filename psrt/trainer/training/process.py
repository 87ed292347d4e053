"""Preparation of a trainer's process: BLAS threads, freed memory and kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from threadpoolctl import threadpool_limits

from psrt.config.sections import TrainerConfig
from psrt.core.allocator import keep_freed_memory
from psrt.core.threads import schedule
from psrt.kernels import jit
from psrt.rpc.access import assume_token_of

Say: TypeAlias = Callable[[str], None]
"""Prints one line for the user."""


@contextmanager
def prepared_process(settings: TrainerConfig, say: Say) -> Iterator[None]:
    """Limit BLAS to its threads, keep freed memory, load kernels: no step waits for a compiler.

    Without the limit the BLAS of every trainer on a host takes all cores, and they compete.
    """
    if settings.cache_dir:
        jit.set_cache_dir(settings.cache_dir)
    compiled: list[str] = []

    def on_compile(name: str) -> None:
        if not compiled:
            say("compiling kernels, once for this host and version of psrt")
        compiled.append(name)

    if settings.token_file:
        assume_token_of(settings.token_file)
    keep_freed_memory()
    schedule(settings.scheduling)
    groups = ("trainer", "data", "pserver") if settings.local else ("trainer", "data")
    jit.on_compile(on_compile)
    with threadpool_limits(settings.cpu_threads, user_api="blas"):
        jit.warm_up(groups)
        yield
