"""The section `[pserver]`: settings of a pserver process."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.config.sections import fields
from psrt.config.settings import setting


@dataclass(frozen=True)
class PserverConfig:
    """One pserver process."""

    host: str = setting(
        "127.0.0.1", "Interface to listen on; 0.0.0.0 = all.", role_variables=("POD_IP",)
    )
    port: int = setting(
        6170,
        "gRPC port, which is that of the pserver's endpoint; 0 = any free port.",
        minimum=0,
        maximum=65535,
        role_variables=("PADDLE_PORT", "PADDLE_INIT_PORT"),
    )
    ports_num: int = setting(
        1,
        "TCP data ports of the stream carrier; trainers get them from the pserver.",
        minimum=1,
        role_variables=("PADDLE_INIT_PORTS_NUM",),
    )
    ports_num_for_sparse: int = setting(
        0,
        "Further data ports, in addition to ports_num; each carries dense and sparse tensors.",
        minimum=0,
        role_variables=("PADDLE_INIT_PORTS_NUM_FOR_SPARSE",),
    )
    unix_dir: str = setting(
        "", "Directory of the Unix socket for trainers on this host; empty = private, off = none."
    )
    unix_group: str = setting(
        "", "Group whose members may use the Unix socket; empty = this user and root alone."
    )
    shared_mib: int = setting(
        8,
        "Largest payload in memory shared with trainers of this host, in MiB; 0 = none.",
        minimum=0,
    )
    ready_file: str = setting("", "JSON file written once the pserver serves: endpoints and pid.")
    stripes: int = setting(
        0, "Lock groups of a sparse table; 0 = one per core, at most 16.", minimum=0
    )
    wait_timeout_s: float = setting(
        120.0,
        "Longest wait for other trainers, of a round or on a clock, in seconds.",
        minimum=0.001,
    )
    num_gradient_servers: int = setting(
        0,
        "Number of trainers that a job must have; 0 = any.",
        minimum=0,
        role_variables=("PADDLE_INIT_NUM_GRADIENT_SERVERS",),
    )
    run: str = fields.run("trainers of another one are refused")
    max_message_mib: int = setting(
        1024, "Largest message, in MiB; larger ones are refused.", minimum=1
    )
    max_connections: int = setting(
        4096,
        "Most connections of the stream carrier, each with a thread; further ones are refused.",
        minimum=1,
    )
    max_unfinished_mib: int = setting(
        8192,
        "Most bytes of messages that have not arrived as a whole, of all callers, in MiB; further "
        "messages are refused until some have.",
        minimum=1,
    )
    max_host_share: float = setting(
        0.75,
        "Part of max_connections, of max_unfinished_mib and of calls over gRPC that one host may "
        "use.",
        minimum=0.01,
        maximum=1.0,
    )
    max_table_mib: int = setting(
        0,
        "Most memory of all tables, in MiB; tables and new rows that do not fit are refused, rows "
        "that exist are still updated; 0 = no limit.",
        minimum=0,
    )
    token_file: str = fields.token_file(
        "those of all callers, and one of scope admin for calls to other pservers; empty = anyone "
        "may call",
        "psrt.tokens",
    )
    tls_cert: str = fields.tls_cert()
    tls_key: str = fields.tls_key()
    tls_ca: str = fields.tls_ca("callers need one of these; empty = no encryption")
    tls_callers: str = setting(
        "certificate",
        "What callers need to connect: certificate = one of tls_ca, any = none, where tokens admit "
        "them.",
        choices=("certificate", "any"),
    )
    insecure: bool = fields.insecure("this pserver")
    stay: bool = setting(False, "Keep serving after all trainers have completed.")
    stopped_exit_code: int = setting(
        0,
        "Exit code after SIGTERM or SIGINT; Jobs of Kubernetes replace a pserver that was stopped "
        "only if it is not 0.",
        minimum=0,
        maximum=255,
    )
    checkpoint_dir: str = setting(
        "", "Directory or fsspec URL for cuts of the job, the same for all pservers; empty = none."
    )
    checkpoint_every_steps: int = setting(
        0,
        "Rounds in sync, mini-batches of all trainers otherwise, between two cuts; 0 = no limit.",
        minimum=0,
    )
    checkpoint_every_s: float = setting(0.0, "Seconds between two cuts; 0 = no limit.", minimum=0.0)
    checkpoint_full_every: int = setting(
        8,
        "One of so many cuts by the schedule has all rows, the others what changed since the cut "
        "before; 1 = every cut is full.",
        minimum=1,
    )
    checkpoint_keep: int = setting(
        3, "Number of the newest cuts to keep, besides those that they build on.", minimum=1
    )
    checkpoint_keep_every: int = setting(
        0, "Also keep every cut whose number is a multiple of this; 0 = none.", minimum=0
    )
    checkpoint_timeout_s: float = setting(
        600.0, "Time limit of a cut, in seconds; a late one is given up.", minimum=0.001
    )
    checkpoint_mib_per_s: float = setting(
        10.0,
        "Most MiB per second that a pserver writes of a cut while trainers push, so that they "
        "keep their cores; 0 = no limit. More if half of checkpoint_timeout_s would pass, and no "
        "limit at the end of a job or of a process, or if pushes wait for the cut.",
        minimum=0.0,
    )
    checkpoint_at_end: bool = setting(
        True, "Make a cut when all trainers have trained, if there is a checkpoint_dir."
    )
    checkpoint_grace_s: float = setting(
        30.0, "Longest wait of a pserver that ends for a cut, in seconds.", minimum=0.0
    )
    delta_every_s: float = setting(
        5.0,
        "Seconds between two local cuts of a pserver, if durability of [job] is delta.",
        minimum=0.1,
    )
    replica_every_ms: float = setting(
        50.0,
        "Milliseconds between two ticks that a pserver sends to its backup, if durability of [job] "
        "is replica.",
        minimum=1.0,
    )
    recover: bool = setting(
        False,
        "Go on with the running job that a killed pserver of this host and port has served, from "
        "the newest state of it in checkpoint_dir. Without one, begin anew.",
    )
    resume: str = setting(
        "",
        "Begin with this cut of checkpoint_dir: a number, latest, or auto = the latest if there is "
        "one; empty = begin anew.",
    )
    metrics: str = fields.metrics("the page of the job at /, ")
    traces: bool = setting(
        False,
        "Send spans of the calls of traced steps by OpenTelemetry, whose variables name the "
        "collector (OTEL_*).",
    )
    metrics_names: tuple[str, ...] = setting(
        (),
        "Names, besides IP addresses and the host's own name, by which browsers may open the page "
        "of metrics, such as one of a proxy.",
    )
    scheduling: str = fields.scheduling()
    busy_poll_us: int = fields.busy_poll_us()
    cache_dir: str = fields.cache_dir()
    log_level: str = fields.log_level()
    log_format: str = fields.log_format()
