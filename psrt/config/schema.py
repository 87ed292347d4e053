"""Every setting psrt has, declared once: name, type, default, one line of help.

Command-line flags, TOML keys, `PSRT_<SECTION>_<FIELD>` variables, `configs/reference.toml` and
`psrt config show` are all derived from these frozen dataclasses, so a setting that is not here does
not exist. Plain data only: `load.py` fills them, nothing here reads a file or the environment.

The sections of a TOML file are the keys of `SECTIONS`, and `[communication]`, whose keys depend on
its mode (`communication.py`), and `[tables.NAME]` for each sparse table (`table_sections.py`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psrt.config.settings import setting
from psrt.config.sizing import SizeConfig
from psrt.config.table_sections import TableConfig
from psrt.core.errors import ConfigError
from psrt.core.log import LEVELS
from psrt.core.precision import WirePrecision
from psrt.core.specs import MODES, CommunicationMode, Sync
from psrt.core.threads import SCHEDULING

BUSY_POLL_US = 700
CARRIERS = ("stream", "grpc")
SHARES = ("modulo", "suffix", "contiguous", "size")
DATA_FORMATS = ("multislot", "libsvm", "csv", "pairs", "criteo", "parquet", "arrow")


def _cache_dir() -> Any:
    return setting("", "Directory of compiled kernels; empty = ~/.cache/psrt/kernels.")


def _log_level() -> Any:
    return setting("info", "Least severe log line that is written.", choices=LEVELS)


def _scheduling() -> Any:
    help = (
        "How the system shares cores: batch = threads that wake wait for their turn, for trainers "
        "and pservers on the same cores in mode async or ssp."
    )
    return setting("normal", help, choices=SCHEDULING)


def _busy_poll_us() -> Any:
    help = (
        "Longest look for a message before sleeping for it, in µs, where messages come that "
        "quickly as a rule (on a core that has no other work); 0 = never."
    )
    return setting(BUSY_POLL_US, help, minimum=0)


def _carrier() -> Any:
    help = "What moves tensors: stream (TCP, or a Unix socket on the same host) or grpc."
    return setting("stream", help, choices=CARRIERS)


def _cpu_num() -> Any:
    help = "Replicas of the program in one trainer, each with a share of every mini-batch."
    return setting(1, help, minimum=1, role_variables=("CPU_NUM", "PADDLE_INIT_TRAINER_COUNT"))


def _cpu_threads() -> Any:
    return setting(1, "BLAS threads of one trainer.", minimum=1)


def _endpoints() -> Any:
    return setting(
        (),
        "Endpoints of all pservers, host:port, in the same order on every trainer.",
        role_variables=("PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_INIT_PSERVERS"),
    )


def _check_endpoints(endpoints: tuple[str, ...]) -> None:
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        if not (host and port.isdecimal()):
            raise ConfigError(
                f"endpoints has {endpoint!r}, which is not host:port.",
                hint="Write --endpoints 10.0.0.1:6170,10.0.0.2:6170.",
            )


@dataclass(frozen=True)
class PserverConfig:
    """One pserver process."""

    host: str = setting(
        "127.0.0.1", "Interface to listen on; 0.0.0.0 = all.", role_variables=("POD_IP",)
    )
    port: int = setting(
        6170,
        "gRPC port, the one in the endpoint trainers are given; 0 = any free port.",
        minimum=0,
        role_variables=("PADDLE_PORT", "PADDLE_INIT_PORT"),
    )
    ports_num: int = setting(
        1,
        "TCP data ports of the stream carrier; trainers learn them from the pserver.",
        minimum=1,
        role_variables=("PADDLE_INIT_PORTS_NUM",),
    )
    ports_num_for_sparse: int = setting(
        0,
        "As many more data ports; each carries dense and sparse tensors, in one message.",
        minimum=0,
        role_variables=("PADDLE_INIT_PORTS_NUM_FOR_SPARSE",),
    )
    unix_dir: str = setting(
        "", "Directory of the Unix socket for trainers on this host; empty = private, off = none."
    )
    shared_mib: int = setting(
        8,
        "Largest payload that trainers of this host are handed in shared memory, in MiB; 0 = none.",
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
        "Number of trainers a job must have; 0 = as many as the job says.",
        minimum=0,
        role_variables=("PADDLE_INIT_NUM_GRADIENT_SERVERS",),
    )
    max_message_mib: int = setting(1024, "Larger messages are refused, in MiB.", minimum=1)
    max_connections: int = setting(
        4096,
        "Connections of the stream carrier, each with a thread; one more is refused.",
        minimum=1,
    )
    stay: bool = setting(False, "Keep serving after all trainers completed.")
    scheduling: str = _scheduling()
    busy_poll_us: int = _busy_poll_us()
    cache_dir: str = _cache_dir()
    log_level: str = _log_level()


@dataclass(frozen=True)
class TrainerConfig:
    """One trainer process."""

    job: str = setting("", "Job file (TOML), or a script.", positional="JOB.toml|train.py")
    endpoints: tuple[str, ...] = _endpoints()
    trainers: int = setting(
        1,
        "Number of trainers of the job.",
        minimum=1,
        role_variables=("PADDLE_TRAINERS_NUM", "PADDLE_INIT_NUM_GRADIENT_SERVERS"),
    )
    trainer_id: int = setting(
        0,
        "Which trainer this is, from 0.",
        minimum=0,
        role_variables=(
            "PADDLE_TRAINER_ID",
            "PADDLE_INIT_TRAINER_ID",
            "OMPI_COMM_WORLD_RANK",
            "SLURM_PROCID",
        ),
    )
    local: bool = setting(False, "Train without pservers: this one trainer holds all parameters.")
    carrier: str = _carrier()
    cpu_threads: int = _cpu_threads()
    cpu_num: int = _cpu_num()
    scheduling: str = _scheduling()
    busy_poll_us: int = _busy_poll_us()
    connect_timeout_s: float = setting(
        120.0, "Longest wait for a pserver that is not up yet, in seconds.", minimum=0.001
    )
    call_timeout_s: float = setting(
        180.0, "Longest wait for the answer to one call, in seconds.", minimum=0.001
    )
    report: str = setting("", "JSON file for the summary of the run.")
    state: str = setting(
        "",
        "JSON file for how far the data is trained on, written after each epoch and at a stop; "
        "of several trainers, run.json gives run.trainer-0.json and so on.",
    )
    resume: str = setting(
        "", "A --state of an earlier process, to go on with the data behind it; named as there."
    )
    profile: str = setting(
        "", "JSON file for a timeline of the training, for Perfetto; also prints what takes time."
    )
    save: str = setting("", "Directory to save the model to (written by trainer 0).")
    evaluate: str = setting("", "Saved model to test instead of training.")
    cache_dir: str = _cache_dir()
    log_level: str = _log_level()
    log_every_s: float = setting(2.0, "Seconds between progress lines.", minimum=0.0)

    def __post_init__(self) -> None:
        if self.trainer_id >= self.trainers:
            raise ConfigError(
                f"trainer_id is {self.trainer_id}, but the job has {self.trainers} trainer(s).",
                hint="Ids count from 0; give every trainer the same --trainers.",
            )
        if self.local and (self.trainers > 1 or self.endpoints):
            raise ConfigError(
                "local is set, but so are other trainers or endpoints of pservers; "
                "a local training has neither.",
                hint="Leave out --local to train in a cluster, --trainers and --endpoints not to.",
            )
        _check_endpoints(self.endpoints)


@dataclass(frozen=True)
class LaunchConfig:
    """A local cluster: pservers and trainers as processes of this host."""

    job: str = setting("", "Job file (TOML).", positional="JOB.toml")
    pservers: int = setting(2, "Number of pservers to start.", minimum=1)
    trainers: int = setting(2, "Number of trainers to start.", minimum=1)
    log_dir: str = setting("logs", "Directory for one log file per process.")
    carrier: str = _carrier()
    cpu_threads: int = _cpu_threads()
    cpu_num: int = _cpu_num()
    report: str = setting("", "JSON file for the merged summary of the run.")
    profile: str = setting(
        "", "JSON file for timelines, one a trainer: out.json gives out.trainer-0.json and so on."
    )
    save: str = setting("", "Directory to save the model to (written by trainer 0).")
    grace_s: float = setting(
        10.0, "Seconds a process gets to end after it was asked to.", minimum=0.0
    )
    ready_timeout_s: float = setting(
        120.0, "Longest wait for all pservers to serve, in seconds.", minimum=0.001
    )
    mode: str = setting(
        "", "Communication mode in place of the job's; empty = the job's.", choices=("", *MODES)
    )
    epochs: int = setting(0, "Epochs in place of the job's; 0 = the job's.", minimum=0)


@dataclass(frozen=True)
class PlanConfig:
    """Where the parameters of a job would lie; nothing is started."""

    job: str = setting("", "Job file (TOML).", positional="JOB.toml")
    endpoints: tuple[str, ...] = _endpoints()
    format: str = setting(
        "text", "How the plan is printed: text for people, json.", choices=("text", "json")
    )
    size: bool = setting(
        False, "Tell memory, requests, network and how many pservers it takes, by [size]."
    )

    def __post_init__(self) -> None:
        _check_endpoints(self.endpoints)


@dataclass(frozen=True)
class PredictConfig:
    """A saved model and the files it is applied to."""

    out: str = setting("", "File to write to, at once when all is done; empty = standard output.")
    format: str = setting(
        "text",
        "What a line holds: text = values, tabs between vars; jsonl = an object by var.",
        choices=("text", "jsonl"),
    )
    batch_size: int = setting(1024, "Examples computed at a time.", minimum=1)
    slots: tuple[str, ...] = setting(
        (), "Slots of a line of the files, in order; empty = those of the training files."
    )
    job: str = setting(
        "", "Job file whose [data] tells the format of the files; empty = MultiSlot text."
    )
    fetch: tuple[str, ...] = setting(
        (), "Vars of the saved program to write; empty = the model's prediction."
    )
    logits: bool = setting(False, "Write a prediction that is a logit as it is, not σ of it.")
    cpu_threads: int = setting(1, "BLAS threads.", minimum=1)
    cache_dir: str = _cache_dir()


@dataclass(frozen=True)
class DataConfig:
    """The files of a job and how they are read. Globs are relative to the TOML file.

    `columns` and `options` are checked by the format: `psrt.data.formats.fields`,
    `psrt.data.formats`.
    """

    train: tuple[str, ...] = setting(
        (), "Globs or URLs of the training files, plain, gzip or zstd."
    )
    test: tuple[str, ...] = setting((), "Globs or URLs of the test files, read after training.")
    format: str = setting("multislot", "What the files are.", choices=DATA_FORMATS)
    shard: str = setting(
        "modulo",
        "Which trainer a file is for: by its number in the list modulo trainers, by the number in "
        "its name, runs of files, or as even in bytes as can be.",
        choices=SHARES,
    )
    shuffle_seed: int = setting(
        -1, "Draws another order of a trainer's files for each epoch; -1 = as listed.", minimum=-1
    )
    batch_size: int = setting(512, "Examples of one mini-batch of one trainer.", minimum=1)
    epochs: int = setting(1, "Passes over the training files.", minimum=1)
    reader_threads: int = setting(1, "Threads that read and parse files.", minimum=1)
    queue_batches: int = setting(8, "Parsed mini-batches that may wait for the trainer.", minimum=1)
    columns: dict[str, Any] = dataclasses.field(default_factory=dict)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class PartitionConfig:
    """How dense parameters are cut and dealt to pservers."""

    slice_var_up: bool = setting(True, "Cut large parameters into blocks.")
    min_block_size: int = setting(8192, "Least elements of a block.", minimum=1)
    max_block_size: int = setting(
        1 << 20,
        "Most elements of a block. Blocks of a pserver that hold twice as many together travel and "
        "are updated beside each other, at least so many elements at a time.",
        minimum=1,
    )
    split_method: str = setting(
        "RoundRobin", "How blocks are dealt to pservers.", choices=("RoundRobin", "HashName")
    )


@dataclass(frozen=True)
class JobConfig:
    """What a job file says: the program, its data, and how gradients travel.

    `path` is the absolute path of the TOML file (empty when built in code); every relative path in
    a job is relative to its directory, see `resolve`. `params` are the keyword arguments of
    `build()`; `tables` is what counts instead of what the program says of sparse tables.
    """

    name: str = setting("", "Name of the job, in logs and in the handshake.")
    program: str = setting("", "Python file with build(), relative to this file.")
    seed: int = setting(0, "Another seed, other initial values and other draws.", minimum=0)
    params: dict[str, Any] = dataclasses.field(default_factory=dict)
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    communication: CommunicationMode = dataclasses.field(default_factory=Sync)
    wire: WirePrecision = dataclasses.field(default_factory=WirePrecision)
    partition: PartitionConfig = dataclasses.field(default_factory=PartitionConfig)
    tables: dict[str, TableConfig] = dataclasses.field(default_factory=dict)
    path: str = ""

    @property
    def mode(self) -> str:
        """The communication mode by its configuration name."""
        return next(name for name, cls in MODES.items() if cls is type(self.communication))

    def resolve(self, relative: str) -> Path:
        """A path or glob of the job as an absolute one."""
        return Path(self.path).parent / relative

    @property
    def program_path(self) -> Path:
        return self.resolve(self.program)


FREE_TABLES = {"job": ("params",), "data": ("columns", "options")}
"""Keys of a section that hold tables, whose keys are not declared here."""

SECTIONS: dict[str, type[Any]] = {
    "job": JobConfig,
    "data": DataConfig,
    "partition": PartitionConfig,
    "pserver": PserverConfig,
    "trainer": TrainerConfig,
    "launch": LaunchConfig,
    "plan": PlanConfig,
    "size": SizeConfig,
    "predict": PredictConfig,
}
