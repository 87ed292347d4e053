"""Fields that several sections declare, each with one help line."""

from __future__ import annotations

from typing import Any

from psrt.config.settings import setting
from psrt.core.errors import ConfigError
from psrt.core.log import FORMATS, LEVELS
from psrt.core.threads import SCHEDULING

BUSY_POLL_US = 700
CARRIERS = ("stream", "grpc")


def cache_dir() -> Any:
    return setting("", "Directory of compiled kernels; empty = ~/.cache/psrt/kernels.")


def log_level() -> Any:
    return setting("info", "Least severe log line that is written.", choices=LEVELS)


def metrics(more: str = "") -> Any:
    help = (
        f"Interface and port, host:port, of {more}/metrics, /healthz, /readyz and /status.json by "
        "HTTP, which anyone who reaches the port may read; port 0 = any free one, empty = none."
    )
    return setting("", help)


def trace_every() -> Any:
    help = (
        "Trace one step of so many by OpenTelemetry, whose variables name the collector (OTEL_*); "
        "0 = none."
    )
    return setting(0, help, minimum=0)


def log_format() -> Any:
    return setting("text", "Form of log lines: text, or json for collectors.", choices=FORMATS)


def scheduling() -> Any:
    help = (
        "Scheduling of threads by the system: batch = a thread that wakes waits for its turn, for "
        "trainers and pservers on the same cores in mode async or ssp."
    )
    return setting("normal", help, choices=SCHEDULING)


def busy_poll_us() -> Any:
    help = (
        "Longest busy polling for a message before sleeping, in µs, for sockets whose messages "
        "usually come that quickly (on a core that has no other work); 0 = never."
    )
    return setting(BUSY_POLL_US, help, minimum=0)


def carrier() -> Any:
    help = "Transport of tensors: stream (TCP, or a Unix socket on the same host) or grpc."
    return setting("stream", help, choices=CARRIERS)


def cpu_num() -> Any:
    help = "Replicas of the program in one trainer, each with a share of every mini-batch."
    return setting(1, help, minimum=1, role_variables=("CPU_NUM", "PADDLE_INIT_TRAINER_COUNT"))


def cpu_threads() -> Any:
    return setting(1, "BLAS threads of one trainer.", minimum=1)


def endpoints() -> Any:
    return setting(
        (),
        "Endpoints of all pservers, host:port, in the same order on every trainer.",
        role_variables=("PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_INIT_PSERVERS"),
    )


def token_file(whose: str, credential: str) -> Any:
    help = f"TOML file of tokens, as psrt token create writes it: {whose}."
    return setting("", help, credential=credential)


def tls_cert() -> Any:
    return setting("", "PEM file of this process's certificate, followed by its chain.")


def tls_key() -> Any:
    return setting("", "PEM file of the key of tls_cert.")


def tls_ca(rule: str) -> Any:
    return setting("", f"PEM file of the authority of all certificates of the cluster: {rule}.")


def insecure(what: str) -> Any:
    help = f"Let {what} listen beyond this host without encryption, on a network that you trust."
    return setting(False, help)


def run(what: str) -> Any:
    return setting("", f"Identity of one run of a job: {what}; psrt launch sets it.")


def check_endpoints(endpoints: tuple[str, ...]) -> None:
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        if not (host and port.isdecimal()):
            raise ConfigError(
                f"endpoints has {endpoint!r}, which is not host:port.",
                hint="Write --endpoints 10.0.0.1:6170,10.0.0.2:6170.",
            )
