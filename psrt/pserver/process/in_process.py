"""A pserver in the user's own process, for scripts of which one copy is a pserver.

`serve` blocks like `psrt pserver`, on the port of the part's endpoint. It creates the tables of its
part at the start, with a warm start when trainers register. It may be called on any thread; on the
main thread, signals end it in order.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from psrt.config.load import load
from psrt.config.sections import PserverConfig
from psrt.core.errors import ConfigError, ErrorCode
from psrt.core.hints import did_you_mean
from psrt.core.specs import CommunicationMode, TableSpec
from psrt.pserver.decisions import JobIdentity
from psrt.pserver.process.daemon import serve_until
from psrt.pserver.process.ending import Ending, signals_end
from psrt.rpc.hosts import is_here, split_endpoint


class SharedPlan(Protocol):
    """A plan with a hash that must be equal in every process of a job."""

    @property
    def warm_start(self) -> str: ...

    def whole_specs(self) -> Iterable[TableSpec]: ...
    def hash(self) -> str: ...


class PserverPart(Protocol):
    """The part of a job that one pserver serves, e.g. a `PserverProgram` of the transpiler."""

    @property
    def endpoint(self) -> str: ...
    @property
    def plan(self) -> SharedPlan: ...
    @property
    def specs(self) -> Sequence[TableSpec]: ...
    @property
    def mode(self) -> CommunicationMode: ...
    @property
    def trainers(self) -> int: ...
    @property
    def job_id(self) -> str: ...


def serve(part: PserverPart, warm_start: str = "", **settings: Any) -> None:
    """Serve `part` until all its trainers have completed, or a signal.

    `warm_start`, the canonical JSON of one, is where the tables of this pserver begin; trainers
    need not know of it.

    `settings` are those of `psrt pserver` by name (`ports_num=2`); `host` defaults to that of the
    endpoint. Raises the error that aborted the job, `JobError` if the port is taken, and
    `ConfigError` if the endpoint is not on this host or a setting does not exist.
    """
    host, port = split_endpoint(part.endpoint)
    _check_known(settings)
    if "host" not in settings and not is_here(host):
        raise ConfigError(
            f"this process is to be the pserver at {part.endpoint}, but {host} is no address of "
            "this host.",
            hint="Start it on that host, or correct its endpoint (POD_IP and PADDLE_PORT, or an "
            "argument) and the list of all pservers. Behind translated addresses give "
            'host="0.0.0.0".',
        )
    config = load(PserverConfig, flags={"host": host, "port": port, **settings}).config
    job = JobIdentity(part.job_id, part.plan.hash(), part.trainers, part.mode)
    ending = Ending(config.stay)
    on_main = threading.current_thread() is threading.main_thread()
    with signals_end(ending) if on_main else contextlib.nullcontext():
        begins = (warm_start, list(part.plan.whole_specs())) if warm_start else ("", [])
        specs = () if part.plan.warm_start else part.specs
        serve_until(ending, config, job, specs, begins=begins)


def _check_known(settings: Iterable[str]) -> None:
    known = [field.name for field in dataclasses.fields(PserverConfig)]
    for name in settings:
        if name not in known:
            raise ConfigError(
                f"serve has no setting {name}.",
                code=ErrorCode.CONFIG_UNKNOWN_KEY,
                hint=did_you_mean(name, known, f"It has {', '.join(known)}."),
            )
