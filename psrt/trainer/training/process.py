"""Preparation of a trainer's process: identity, BLAS threads, freed memory and kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from threadpoolctl import threadpool_limits

from psrt.config.load import environment
from psrt.config.sections import TrainerConfig
from psrt.core.allocator import keep_freed_memory
from psrt.core.threads import schedule
from psrt.kernels import jit
from psrt.rpc.access import (
    Identity,
    assume_certificates,
    assume_insecure,
    assume_token_of,
    identity,
)
from psrt.rpc.tls import TlsSettings

Say: TypeAlias = Callable[[str], None]
"""Prints one line for the user."""

_PREFIX = "PSRT_TRAINER_"


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

    assume_identity(settings)
    keep_freed_memory()
    schedule(settings.scheduling)
    groups = ("trainer", "data", "pserver") if settings.local else ("trainer", "data")
    jit.on_compile(on_compile)
    with threadpool_limits(settings.cpu_threads, user_api="blas"):
        jit.warm_up(groups)
        yield


def assume_identity(settings: TrainerConfig) -> None:
    """Prove the token and use the certificates of `settings`; raises `ConfigError`."""
    if settings.insecure:
        assume_insecure()
    _assume(settings.token_file, settings.tls_cert, settings.tls_key, settings.tls_ca)


def assume_identity_of_variables() -> None:
    """Be what variables such as PSRT_TRAINER_TOKEN_FILE name, unless this process is somebody.

    Raises `ConfigError`.
    """
    if identity() == Identity():
        names = "TOKEN_FILE", "TLS_CERT", "TLS_KEY", "TLS_CA"
        _assume(*(environment().get(_PREFIX + name, "") for name in names))


def _assume(token_file: str, cert: str, key: str, ca: str) -> None:
    if token_file:
        assume_token_of(token_file)
    assume_certificates(TlsSettings(cert, key, ca))
