"""Fills the schema from flags, environment and TOML, and records the origin of each value.

Precedence: flag, then `psrt.init`, then `PSRT_<SECTION>_<FIELD>`, then the role variables of other
launchers, then the TOML file, then the files of the host, then a credential of systemd, then the
default. An empty variable counts as unset, because launch scripts export empty ones.
No other module of psrt reads or writes `os.environ`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from psrt.config import overrides
from psrt.config.assignments import PARAMS, params_of
from psrt.config.host_files import host_files
from psrt.config.overrides import GivenValue, Variables
from psrt.config.sections import (
    FREE_TABLES,
    SECTIONS,
    DataConfig,
    JobConfig,
    PartitionConfig,
    TrainerConfig,
    ValidationConfig,
    communication,
    tables,
)
from psrt.config.settings import Setting, settings_of
from psrt.config.validate import TomlFile, check_variables, read_toml, without_service_links
from psrt.core.errors import ConfigError
from psrt.core.precision import WirePrecision
from psrt.core.specs import MODES, CommunicationMode

T = TypeVar("T")
DEFAULT = "default"


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """A section and the origin of each of its values, by `section.field`."""

    config: T
    origins: dict[str, str]


def environment() -> dict[str, str]:
    """Return a copy of this process's environment, with flags and the arguments of `psrt.init`."""
    return overrides.OVERRIDES.environment(os.environ)


DEBUG = "PSRT_DEBUG"


def is_debugging() -> bool:
    """Return True if tracebacks are to have all frames: --debug of a command, or PSRT_DEBUG."""
    return os.environ.get(DEBUG, "0") not in ("", "0")


def debug() -> None:
    """Keep all frames of tracebacks from now on, in this process and its children."""
    os.environ[DEBUG] = "1"


def export(flags: Mapping[str, GivenValue]) -> None:
    """Set flags, by the variables of the same settings, for this process and its children."""
    overrides.OVERRIDES.flags = flags
    os.environ.update({name: value.text for name, value in flags.items()})


@contextlib.contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Set a variable, unless it has a value, for a library that reads it inside the block."""
    has_value = name in os.environ
    os.environ.setdefault(name, value)
    try:
        yield
    finally:
        if not has_value:
            del os.environ[name]


def load(
    cls: type[T],
    *,
    flags: Mapping[str, Any] | None = None,
    file: str = "",
    environ: Mapping[str, str] | None = None,
    with_host: bool = False,
) -> Loaded[T]:
    """Fill one section: `load(PserverConfig, flags={"port": 0}, file="job.toml").config`.

    A flag is text or already has its type; None means not given. `with_host` also reads the files
    of the host. Raises `ConfigError`.
    """
    variables = _variables(environ)
    toml = read_toml(file) if file else TomlFile()
    if with_host:
        below = host_files(os.environ if environ is None else environ)
        toml = dataclasses.replace(toml, below=tuple(below))
    section = next(name for name, known in SECTIONS.items() if known is cls)
    return _fill(cls, settings_of(section, cls), toml, variables, flags or {})


def cpu_num(environ: Mapping[str, str] | None = None) -> int:
    """Return the default number of replicas of a program: CPU_NUM, or 1."""
    return _number_of("cpu_num", environ)


def cpu_threads(environ: Mapping[str, str] | None = None) -> int:
    """Return the number of BLAS threads of a program: PSRT_TRAINER_CPU_THREADS, or 1."""
    return _number_of("cpu_threads", environ)


def _number_of(name: str, environ: Mapping[str, str] | None) -> int:
    """Return a setting of trainers, of a process that has no file of settings."""
    settings = settings_of("trainer", TrainerConfig)
    setting = next(setting for setting in settings if setting.name == name)
    return int(_choose(setting, TomlFile(), _variables(environ), {})[0])


def job_without_file(flags: Mapping[str, Any]) -> JobConfig:
    """The settings of [job] of a process without a job file: `flags`, where those are not None,
    else variables. Raises `ConfigError`."""
    return _fill(
        JobConfig, settings_of("job", JobConfig), TomlFile(), _variables(None), flags
    ).config


def load_job(file: str, *, environ: Mapping[str, str] | None = None) -> Loaded[JobConfig]:
    """Load the job of a TOML file; raises `ConfigError` also if its program file is missing."""
    variables = _variables(environ)
    toml = read_toml(file)
    job = _fill(JobConfig, settings_of("job", JobConfig), toml, variables, {})
    data = _fill(DataConfig, settings_of("data", DataConfig), toml, variables, {})
    partition = _fill(
        PartitionConfig, settings_of("partition", PartitionConfig), toml, variables, {}
    )
    validation = _fill(
        ValidationConfig, settings_of("validation", ValidationConfig), toml, variables, {}
    )
    mode, wire = _communication(toml, variables), _wire(toml, variables)
    config = JobConfig(
        name=job.config.name or Path(file).stem,
        program=job.config.program,
        seed=job.config.seed,
        durability=job.config.durability,
        retained_mib=job.config.retained_mib,
        warm_start=job.config.warm_start,
        warm_start_map=job.config.warm_start_map,
        warm_start_strict=job.config.warm_start_strict,
        params=_params(toml, variables),
        data=dataclasses.replace(data.config, **_free_tables(toml, "data")),
        communication=mode.config,
        wire=wire.config,
        partition=partition.config,
        validation=validation.config,
        tables=tables.read(file, toml.values(tables.SECTION)),
        path=str(Path(file).resolve()),
    )
    _check_program(config, file)
    origins = job.origins | data.origins | partition.origins | mode.origins | wire.origins
    origins |= validation.origins | dict.fromkeys(tables.values_of(config.tables), file)
    return Loaded(config, origins)


def _free_tables(toml: TomlFile, section: str) -> dict[str, Any]:
    values = toml.values(section)
    return {name: values.get(name, {}) for name in FREE_TABLES[section]}


def _params(toml: TomlFile, variables: Variables) -> dict[str, Any]:
    """The keyword arguments of `build()`; those of --set replace those of the file."""
    given: dict[str, Any] = _free_tables(toml, "job")["params"]
    return {**given, **params_of(variables.first([PARAMS]))}


def _communication(toml: TomlFile, variables: Variables) -> Loaded[CommunicationMode]:
    """The communication mode; if the environment names another, the file's keys are dropped."""
    values = toml.values(communication.SECTION)
    mode, origin = _choose(communication.MODE, toml, variables, {})
    if mode != values.get("mode", communication.MODE.default):
        toml = TomlFile(toml.path)
    filled = _fill(MODES[mode], communication.settings_of_mode(mode), toml, variables, {})
    return Loaded(filled.config, {communication.MODE.key: origin} | filled.origins)


def _wire(toml: TomlFile, variables: Variables) -> Loaded[WirePrecision]:
    precision, origin = _choose(communication.WIRE, toml, variables, {})
    by_name = toml.values(communication.SECTION).get(communication.WIRE_TABLES, {})
    return Loaded(WirePrecision(precision, by_name), {communication.WIRE.key: origin})


def _variables(environ: Mapping[str, str] | None) -> Variables:
    """Values by variable: of `environ`, or of this process with its overrides."""
    exported = without_service_links(os.environ if environ is None else environ)
    check_variables(exported)
    if environ is None:
        return overrides.OVERRIDES.variables(exported)
    return Variables({}, overrides.with_origins(exported))


def _fill(
    cls: type[T],
    settings: list[Setting],
    toml: TomlFile,
    variables: Variables,
    flags: Mapping[str, Any],
) -> Loaded[T]:
    chosen = {s.name: _choose(s, toml, variables, flags) for s in settings}
    origins = {s.key: chosen[s.name][1] for s in settings}
    return Loaded(cls(**{name: value for name, (value, _) in chosen.items()}), origins)


def _choose(
    setting: Setting, toml: TomlFile, variables: Variables, flags: Mapping[str, Any]
) -> tuple[Any, str]:
    """The value of highest precedence and its origin."""
    given = flags.get(setting.name)
    if given is not None:
        origin = "argument" if setting.positional else f"flag {setting.flag}"
        accept = setting.parse if isinstance(given, str) else setting.accept
        return accept(given, origin), origin
    if value := variables.first((setting.variable, *setting.role_variables)):
        return setting.parse(value.text, value.origin), value.origin
    for file in (toml, *toml.below):
        values = file.values(setting.section)
        if setting.name in values:
            return setting.accept(values[setting.name], file.path), file.path
    return _credential(setting, variables) or (setting.default, DEFAULT)


def _credential(setting: Setting, variables: Variables) -> tuple[str, str] | None:
    """The path of the credential for a setting, if the service manager has passed one."""
    directory = variables.first(["CREDENTIALS_DIRECTORY"])
    if directory is None or not setting.credential:
        return None
    path = Path(directory.text, setting.credential)
    return (str(path), f"credential {setting.credential}") if path.is_file() else None


def _check_program(job: JobConfig, file: str) -> None:
    if not job.program:
        raise ConfigError(
            f"{file}: the job names no program.",
            hint='Add program = "train.py" to [job]: a Python file with build() -> psrt.Model.',
        )
    if not job.program_path.is_file():
        raise ConfigError(
            f"{file}: job.program is {job.program!r}, but {job.program_path} is not a file.",
            hint="The path is relative to the TOML file.",
        )
