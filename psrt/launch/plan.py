"""The processes of a cluster: pure functions from settings to command lines.

The plan is the same for every engine, except for the addresses of pservers. Pservers listen on a
free port and write it to a ready file; trainers are started with the endpoints from these files.
`log_dir` holds all files of one run: a log for each process, ready files of pservers, reports of
trainers.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from psrt.config.load import DEFAULT, Loaded, load, load_job
from psrt.config.sections import JobConfig, LaunchConfig, PserverConfig, TrainerConfig
from psrt.core.errors import ConfigError
from psrt.core.specs import MODES, Geo
from psrt.core.urls import is_url
from psrt.launch.brought import brought_files

PSERVER = "pserver"
TRAINER = "trainer"
SCRIPT = ".py"
"""The suffix of a file that is launched as a script in place of a job."""

PSRT = (sys.executable, "-m", "psrt")
LOOPBACK = "127.0.0.1"
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
_CARRIED = ("CPU_NUM", "PYTHONPATH", "TZ")
_CARRIED_PREFIXES = ("PSRT_", "PADDLE_", "FLAGS_", "OMP_", "OPENBLAS_", "MKL_", "NUMBA_", "GRPC_")


@dataclass(frozen=True, order=True)
class ChildId:
    """One process of the job: `trainer.0`. Pservers sort before trainers."""

    role: str
    index: int

    def __str__(self) -> str:
        return f"{self.role}.{self.index}"


FOLLOWED = ChildId(TRAINER, 0)
"""The process whose progress a launch prints."""


HostOf: TypeAlias = Callable[[ChildId], str]
"""The address of the host of a process."""


@dataclass(frozen=True)
class Command:
    """The command of one process. `result` is the JSON file it writes: ready file or report.

    One that is started again `keeps_log`. `own` are those variables in `environ` that no other
    process has; on another host it gets them in addition to those of the launch.
    """

    child: ChildId
    arguments: tuple[str, ...]
    environ: Mapping[str, str]
    log: Path
    result: Path
    keeps_log: bool = False
    own: Mapping[str, str] = field(default_factory=dict)


def on_loopback(child: ChildId) -> str:
    """The address of every process of a launch on this host."""
    return LOOPBACK


class Plan:
    """The commands of one launch; `program` runs `psrt` (tests pass a fake).

    `variables` are those that the launch sets in the environment of every process; `carried` are
    those of the launcher that processes on other hosts get as well. `files` go to hosts that do not
    share the job's directory, see `brought_files`; none = they do. Processes of another `run` are
    refused by pservers of this one. `cut_s` is the time that
    pservers wait for a cut when they end, 0 = the job makes none. `outlived_s` is the longest time
    that trainers may run on after a pserver has ended.
    """

    outlived_s = 10.0
    arguments: Sequence[str] = ()
    """Those of a script."""

    def __init__(
        self,
        loaded: Loaded[LaunchConfig],
        environ: Mapping[str, str],
        program: Sequence[str] = PSRT,
        run: str = "",
    ) -> None:
        self.config = loaded.config
        self._run = ["--run", run] if run else []
        self._program = _with_python(program, self.config.python)
        self.files = _files(self.config, environ)
        self._trainer = _trainer_settings(loaded, environ)
        self.carried = _carried(environ)
        self.cut_s = _cut_s(self.config, environ)
        self.variables = _variables(self.config, self._trainer.cpu_threads, environ)
        self._environ = {**environ, **self.variables}

    @property
    def job_name(self) -> str:
        return load_job(self.config.job, environ=self._environ).config.name

    @property
    def trainer_cores(self) -> int:
        """The cores that a trainer uses."""
        return self._trainer.cpu_num * self._trainer.cpu_threads

    def pservers(self, host_of: HostOf) -> list[Command]:
        """The commands of all pservers, each with the address that it listens on."""
        children = [ChildId(PSERVER, index) for index in range(self.config.pservers)]
        return [self._pserver(child, host_of(child)) for child in children]

    def trainers(
        self, endpoints: Sequence[str], trainers: int = 0, host_of: HostOf = on_loopback
    ) -> list[Command]:
        """The commands of all trainers of a job that has `trainers`, 0 = as configured."""
        trainers = trainers or self.config.trainers
        return [self._trainer_of(index, trainers, endpoints) for index in range(trainers)]

    def group_flags(self, endpoints: Sequence[str], device: str) -> list[str]:
        """The flags of a trainer without pservers."""
        met = ["--trainer-endpoints", ",".join(endpoints)]
        return [*met, "--device", device] if device else met

    def _job_flags(self) -> list[str]:
        """The flags of a pserver for the settings of the job."""
        return ["--config", self._job]

    def _pserver(self, child: ChildId, host: str) -> Command:
        ready = self._path(child, ".ready.json")
        arguments = [*self._job_flags(), "--host", host, "--port", "0"]
        arguments += ["--num-gradient-servers", str(self.config.trainers)]
        if self.config.checkpoint_dir:
            arguments += ["--checkpoint-dir", self._here(self.config.checkpoint_dir)]
        arguments += ["--resume", self.config.resume] if self.config.resume else []
        arguments += self._metrics_of(child)
        arguments += ["--traces"] if self.config.trace_every else []
        arguments += self._run
        arguments += shlex.split(self.config.pserver_args)
        return self._command(child, [*arguments, "--ready-file", str(ready)], ready)

    def _trainer_of(self, index: int, trainers: int, endpoints: Sequence[str]) -> Command:
        child = ChildId(TRAINER, index)
        report = self._path(child, ".report.json")
        arguments = ["--endpoints", ",".join(endpoints)] if endpoints else []
        arguments += ["--trainers", str(trainers), "--trainer-id", str(index)]
        arguments += ["--carrier", self._trainer.carrier]
        arguments += ["--cpu-threads", str(self._trainer.cpu_threads)]
        arguments += ["--cpu-num", str(self._trainer.cpu_num), "--report", str(report)]
        arguments += ["--save", self._here(self.config.save)] if self.config.save else []
        if self.config.on == "local":
            arguments += ["--curves", str(self._path(child, ".curves.jsonl"))]
        arguments += self._warm_start()
        arguments += ["--profile", self._profile_of(index)] if self._trainer.profile else []
        arguments += self._metrics_of(child)
        every = self.config.trace_every
        arguments += ["--trace-every", str(every)] if every else []
        arguments += self._run
        arguments += shlex.split(self.config.trainer_args)
        return self._command(child, [*arguments, self._job], report)

    def _metrics_of(self, child: ChildId) -> list[str]:
        """The flags of a process for its own port of metrics."""
        if not self.config.metrics:
            return []
        host, _, port = self.config.metrics.rpartition(":")
        before = child.index + (self.config.pservers if child.role == TRAINER else 0)
        return ["--metrics", f"{host}:{int(port) + before if int(port) else 0}"]

    def _warm_start(self) -> list[str]:
        """The flags of trainers for a warm start; relative paths are those of the launcher."""
        config = self.config
        given = {"--warm-start": config.warm_start, "--warm-start-map": config.warm_start_map}
        named = ((flag, self._here(value)) for flag, value in given.items() if value)
        arguments = [word for pair in named for word in pair]
        return [*arguments, "--warm-start-strict"] if config.warm_start_strict else arguments

    def _profile_of(self, index: int) -> str:
        whole = Path(self._trainer.profile)
        return self._here(str(whole.with_name(f"{whole.stem}.trainer-{index}{whole.suffix}")))

    def _command(self, child: ChildId, arguments: list[str], result: Path) -> Command:
        whole = (*self._program, child.role, *arguments)
        return Command(child, whole, self._environ, self._path(child, ".log"), result)

    @property
    def _job(self) -> str:
        """The job file as processes find it: they run in the directory of brought files."""
        return Path(self.config.job).name if self.files else self.config.job

    def _here(self, path: str) -> str:
        """A path of the launcher, for processes that may run in another directory."""
        return str(Path(path).absolute()) if self.files and not is_url(path) else path

    def _path(self, child: ChildId, suffix: str) -> Path:
        return Path(self.config.log_dir) / f"{child}{suffix}"


def check_restarts(config: LaunchConfig, job: JobConfig) -> None:
    """Raise `ConfigError` if trainers of a job cannot go on for killed ones.

    A script decides that itself: its mode is not known here.
    """
    if is_script(config):
        return
    other = MODES[config.mode]() if config.mode and config.mode != job.mode else None
    mode = other or job.communication
    if config.restarts and (isinstance(mode, Geo) or mode.on_trainer_loss == "abort"):
        why = "mode geo" if isinstance(mode, Geo) else 'on_trainer_loss = "abort"'
        raise ConfigError(
            f"--restarts {config.restarts} was given to a job with {why}, in which no new process "
            "goes on for a killed trainer; nothing was started.",
            hint='Set on_trainer_loss = "wait" in [communication], or leave --restarts out.',
        )


def is_script(config: LaunchConfig) -> bool:
    return config.job.endswith(SCRIPT)


def job_file(config: LaunchConfig) -> str:
    """The file with settings of a launch; a script has none."""
    return "" if is_script(config) else config.job


def _trainer_settings(loaded: Loaded[LaunchConfig], environ: Mapping[str, str]) -> TrainerConfig:
    """The trainers' settings: those given to launch, else those of [trainer] in the job."""
    config = loaded.config
    given = {
        name: getattr(config, name)
        for name in ("carrier", "cpu_threads", "cpu_num", "profile")
        if loaded.origins[f"launch.{name}"] != DEFAULT
    }
    flags = {"trainers": config.trainers, "trainer_id": 0, **given}
    return load(TrainerConfig, flags=flags, file=job_file(config), environ=environ).config


def _cut_s(config: LaunchConfig, environ: Mapping[str, str]) -> float:
    settings = load(PserverConfig, flags={}, file=job_file(config), environ=environ).config
    makes_cuts = config.checkpoint_dir or settings.checkpoint_dir
    return settings.checkpoint_grace_s if makes_cuts else 0.0


def _files(config: LaunchConfig, environ: Mapping[str, str]) -> dict[str, bytes]:
    if not config.bring or config.on == "local":
        return {}
    script = JobConfig(path=config.job) if is_script(config) else None
    return brought_files(config, script or load_job(config.job, environ=environ).config)


def _with_python(program: Sequence[str], python: str) -> tuple[str, ...]:
    return (python, *program[1:]) if python and tuple(program) == PSRT else tuple(program)


def _carried(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables for psrt and its libraries that processes on other hosts get from the launcher."""
    return {
        name: value
        for name, value in environ.items()
        if name in _CARRIED or name.startswith(_CARRIED_PREFIXES)
    }


def _variables(
    config: LaunchConfig, cpu_threads: int, environ: Mapping[str, str]
) -> dict[str, str]:
    """Limited BLAS threads, unless `environ` has them, unbuffered output and overrides."""
    threads = {name: environ.get(name, str(cpu_threads)) for name in _THREAD_VARIABLES}
    overrides = {}
    if config.mode:
        overrides["PSRT_COMMUNICATION_MODE"] = config.mode
    if config.epochs:
        overrides["PSRT_DATA_EPOCHS"] = str(config.epochs)
    return {**threads, "PYTHONUNBUFFERED": "1", **overrides}
