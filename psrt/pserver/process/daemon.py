"""The pserver process: warm up, listen, report ready, serve until the job ends or a signal.

    run ─▶ warm_up ─▶ Server.start ─▶ ready file, "ready on" line ─▶ wait ─▶ stop ─▶ exit code

The calling thread waits; carriers start their own threads. The exit code is 0 when all trainers
have completed (unless `stay`), `stopped_exit_code` after SIGTERM or SIGINT, once accepted calls are
finished, and the code of the error when the job was aborted or the process could not start.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from psrt.config.sections import PserverConfig, stripes_for
from psrt.core import whole_file
from psrt.core.allocator import keep_freed_memory
from psrt.core.errors import ErrorCode, JobError, PsrtError
from psrt.core.log import add_fields
from psrt.core.process import note
from psrt.core.service_manager import ServiceReporter
from psrt.core.specs import TableSpec
from psrt.core.threads import schedule
from psrt.kernels.jit import on_compile, set_cache_dir, warm_up
from psrt.kernels.lowlevel import await_input, denormals_flushed
from psrt.pserver.decisions import JobIdentity
from psrt.pserver.process import beginning
from psrt.pserver.process.abandoned_sockets import remove_abandoned_sockets
from psrt.pserver.process.ending import Ending, signals_end
from psrt.pserver.process.health import check
from psrt.pserver.process.one_run import only_of_run
from psrt.pserver.replicas import PartHost
from psrt.pserver.serving import Beginning, PserverService
from psrt.rpc.access import Gate, TokenFile, assume_certificates, assume_token_of
from psrt.rpc.busy_poll import BusyPoll
from psrt.rpc.hosts import is_loopback, split_endpoint
from psrt.rpc.server import Server
from psrt.rpc.serving import Handler
from psrt.rpc.tls import TlsFiles, TlsSettings

log = logging.getLogger("psrt.pserver")

GRACE_S = 10.0


def run(config: PserverConfig, reporter: ServiceReporter | None = None) -> int:
    """Serve as configured, and report to a service manager; return the exit code of the process."""
    ending = Ending(config.stay)
    keep_freed_memory()
    try:
        with signals_end(ending):
            serve_until(ending, config, reporter=reporter)
    except PsrtError as error:
        print(error.full_text(), file=sys.stderr)
        return error.spec.exit_code
    return config.stopped_exit_code if ending.is_signalled else 0


def serve_until(
    ending: Ending,
    config: PserverConfig,
    job: JobIdentity | None = None,
    tables: Sequence[TableSpec] = (),
    reporter: ServiceReporter | None = None,
    begins: Beginning = ("", ()),
) -> None:
    """Serve until there is a reason to end; raises the error that aborted the job.

    With a `job`, its `tables` exist from the start and trainers of other jobs are refused; they may
    have the values of a warm start that this pserver `begins` with.
    """
    schedule(config.scheduling)
    remove_abandoned_sockets(Path(tempfile.gettempdir()))
    _warm_up(config)
    with denormals_flushed():
        _serve(ending, config, job, tables, reporter or ServiceReporter(), begins)
    if ending.error is not None:
        raise ending.error


def _serve(
    ending: Ending,
    config: PserverConfig,
    job: JobIdentity | None,
    tables: Sequence[TableSpec],
    reporter: ServiceReporter,
    begins: Beginning,
) -> None:
    cuts = beginning.cut_settings(config)
    make = partial(
        PserverService,
        stripes=config.stripes or stripes_for(os.cpu_count() or 1),
        wait_timeout_s=config.wait_timeout_s,
        trainers=config.num_gradient_servers,
        crashes=ending.crashes,
        helper_threads=(os.cpu_count() or 1) - 1,
        on_resized=partial(_report_resized, config),
        table_bytes=config.max_table_mib << 20,
    )
    host = PartHost(
        *(make, ending.job_ended, config.replica_every_ms / 1000, ending.crashes, cuts),
        resumed=beginning.resumed(config, cuts),
        recovered=beginning.recovered(config, cuts),
    )
    if job is not None:
        host.own.expect(job, tables, begins)
    with _observed(config, host, ending) as watched:
        _run(ending, config, host, watched, reporter)


def _run(
    ending: Ending,
    config: PserverConfig,
    host: PartHost,
    watched: Watched,
    reporter: ServiceReporter,
) -> None:
    server = _open(config, host, ending, watched)
    host.own.serves_as(beginning.name_at(split_endpoint(server.endpoint)[1]))
    host.start()
    try:
        _report_ready(config, server, watched)
        reporter.ready(partial(check, host, server))
        log.info("stopping: %s", ending.wait(host.own.moments.on_request))
        reporter.stopping(2 * config.checkpoint_grace_s + GRACE_S)
        if ending.is_signalled:
            host.before_end(ending.is_hurried)
        host.finish(ending.is_hurried)
    finally:
        watched.set_ready(False)
        server.set_serving(False)
        host.stop()
        server.stop(GRACE_S)
        _remove_ready_file(config)


@dataclass(frozen=True)
class Watched:
    """Additions of metrics to a server; by default none."""

    endpoint: str = ""
    meter: Callable[[Handler], Handler] = lambda handler: handler
    set_ready: Callable[[bool], None] = lambda is_ready: None


@contextlib.contextmanager
def _observed(config: PserverConfig, host: PartHost, ending: Ending) -> Iterator[Watched]:
    """Serve metrics, if the configuration asks for them."""
    if not config.metrics:
        yield Watched()
        return
    from psrt.pserver.process.metered_calls import CallMeter
    from psrt.pserver.process.observed import observed

    meter = CallMeter()
    with observed(host, meter, ending.crashes) as pages:
        endpoint = pages.start(config.metrics, config.metrics_names)
        yield Watched(endpoint, meter.wrap, pages.set_ready)


def _warm_up(config: PserverConfig) -> None:
    if config.cache_dir:
        set_cache_dir(config.cache_dir)
    on_compile(_LogOnce("compiling kernels for this host (the first start only)"))
    log.info("kernels ready in %.2f s", warm_up(["pserver"]))
    on_compile(_LogOnce("compiling kernels for a table that is the first of its kind on this host"))


class _LogOnce:
    """Logs one line for all kernels that are not in the cache."""

    def __init__(self, line: str) -> None:
        self._line = line

    def __call__(self, kernel: str) -> None:
        if self._line:
            log.info(self._line)
            self._line = ""


def _open(config: PserverConfig, host: PartHost, ending: Ending, watched: Watched) -> Server:
    server = Server(
        only_of_run(config.run, host.handle),
        config.host,
        config.port,
        ports_num=config.ports_num + config.ports_num_for_sparse,
        unix_dir=config.unix_dir,
        unix_group=config.unix_group,
        shared_bytes=config.shared_mib << 20,
        max_message_bytes=config.max_message_mib << 20,
        max_connections=config.max_connections,
        unfinished_bytes=config.max_unfinished_mib << 20,
        host_share=config.max_host_share,
        crashes=ending.crashes,
        busy_poll=BusyPoll(config.busy_poll_us, await_input),
        gate=_gate(config),
        tls=_tls(config),
        insecure=config.insecure,
        job_id=lambda: host.own.job_id,
        meter=watched.meter,
        on_refused=host.own.meters.refuse,
    )
    try:
        server.start()
    except (OSError, PsrtError) as error:
        raise JobError(
            f"the pserver could not listen on {config.host}:{config.port}: {error}",
            code=ErrorCode.STARTUP_FAILED,
            hint=getattr(error, "hint", "") or "Check host, port and unix_dir of the pserver.",
        ) from error
    return server


def _gate(config: PserverConfig) -> Gate:
    """The gate of this pserver, which calls other pservers by its own token from now on."""
    if not config.token_file:
        return Gate(None)
    assume_token_of(config.token_file)
    return Gate(TokenFile(Path(config.token_file)))


def _tls(config: PserverConfig) -> TlsFiles | None:
    """The certificates of this pserver, by which it also calls other pservers from now on."""
    any_caller = config.tls_callers == "any"
    settings = TlsSettings(config.tls_cert, config.tls_key, config.tls_ca, any_caller)
    if not settings.is_set:
        return None
    settings.check(is_pserver=True)
    assume_certificates(settings)
    return TlsFiles(settings)


def _report_ready(config: PserverConfig, server: Server, watched: Watched) -> None:
    if not config.tls_cert and not is_loopback(config.host):
        log.warning(
            "listening on %s: traffic is not encrypted%s; let only trusted hosts reach this port",
            config.host,
            "" if config.token_file else ", and anyone may call (token_file)",
        )
    server.set_serving(True)
    add_fields(endpoint=server.endpoint)
    watched.set_ready(True)
    if config.ready_file:
        _write_ready_file(Path(config.ready_file), _ready_facts(server, watched.endpoint))
    note(f"psrt pserver ready on {server.endpoint}")


def _report_resized(config: PserverConfig, trainers: int) -> None:
    """Add the number of trainers to the ready file, for a launcher."""
    try:
        if config.ready_file:
            path = Path(config.ready_file)
            facts = json.loads(path.read_text(encoding="utf-8"))
            _write_ready_file(path, json.dumps({**facts, "trainers": trainers}))
    except (OSError, JobError) as error:
        log.warning("a launcher does not learn of the change: %s", error)


def _ready_facts(server: Server, metrics: str) -> str:
    facts = {
        "endpoint": server.endpoint,
        "data_endpoints": server.data_endpoints,
        "unix_path": server.unix_path,
        "pid": os.getpid(),
        "metrics": metrics,
    }
    return json.dumps(facts)


def _write_ready_file(path: Path, text: str) -> None:
    """Write the file as a whole: a reader sees all of it or nothing."""
    try:
        whole_file.write(path, text)
    except OSError as error:
        raise JobError(
            f"the ready file {path} could not be written: {error}.",
            code=ErrorCode.STARTUP_FAILED,
            hint="Choose a path in a directory that exists and is writable.",
        ) from error


def _remove_ready_file(config: PserverConfig) -> None:
    if not config.ready_file:
        return
    try:
        whole_file.remove(Path(config.ready_file))
    except OSError as error:
        log.warning("the ready file %s stays: %s", config.ready_file, error.strerror)
