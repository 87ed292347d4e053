"""Fills the schema from flags, environment and TOML, and remembers where each value came from.

Precedence: flag, then `psrt.init`, then `PSRT_<SECTION>_<FIELD>`, then the role variables other
launchers export, then the TOML file, then the default. An empty variable counts as unset, because
launch scripts export empty ones. This is the only module of psrt that reads `os.environ`, or writes
to it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from psrt.config import communication, process, table_sections
from psrt.config.declared import TomlFile, check_variables, read_toml, without_links
from psrt.config.process import Heard, Said
from psrt.config.schema import (
    FREE_TABLES,
    SECTIONS,
    DataConfig,
    JobConfig,
    PartitionConfig,
    TrainerConfig,
)
from psrt.config.settings import Setting, settings_of
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
    """A copy of this process's environment, with what `psrt.init` said in it."""
    return process.TOLD.environment(os.environ)


def export(flags: Mapping[str, Said]) -> None:
    """Make flags, by the variables that say the same, count in this process and its children."""
    process.TOLD.flags = flags
    os.environ.update({name: said.text for name, said in flags.items()})


def load(
    cls: type[T],
    *,
    flags: Mapping[str, Any] | None = None,
    file: str = "",
    environ: Mapping[str, str] | None = None,
) -> Loaded[T]:
    """One section: `load(PserverConfig, flags={"port": 0}, file="job.toml").config`.

    A flag may be text or already have its type; a flag that is None was not given.
    """
    heard = _heard(environ)
    toml = read_toml(file) if file else TomlFile()
    section = next(name for name, known in SECTIONS.items() if known is cls)
    return _fill(cls, settings_of(section, cls), toml, heard, flags or {})


def cpu_num(environ: Mapping[str, str] | None = None) -> int:
    """The replicas of a program where nobody gave a number: CPU_NUM, or 1."""
    settings = settings_of("trainer", TrainerConfig)
    setting = next(setting for setting in settings if setting.name == "cpu_num")
    return int(_choose(setting, TomlFile(), _heard(environ), {})[0])


def load_job(file: str, *, environ: Mapping[str, str] | None = None) -> Loaded[JobConfig]:
    """The job a TOML file describes, with its program file known to exist."""
    heard = _heard(environ)
    toml = read_toml(file)
    job = _fill(JobConfig, settings_of("job", JobConfig), toml, heard, {})
    data = _fill(DataConfig, settings_of("data", DataConfig), toml, heard, {})
    partition = _fill(PartitionConfig, settings_of("partition", PartitionConfig), toml, heard, {})
    mode, wire = _communication(toml, heard), _wire(toml, heard)
    config = JobConfig(
        name=job.config.name or Path(file).stem,
        program=job.config.program,
        seed=job.config.seed,
        **_free_tables(toml, "job"),
        data=dataclasses.replace(data.config, **_free_tables(toml, "data")),
        communication=mode.config,
        wire=wire.config,
        partition=partition.config,
        tables=table_sections.read(file, toml.values(table_sections.SECTION)),
        path=str(Path(file).resolve()),
    )
    _check_program(config, file)
    origins = job.origins | data.origins | partition.origins | mode.origins | wire.origins
    origins |= dict.fromkeys(table_sections.values_of(config.tables), file)
    return Loaded(config, origins)


def _free_tables(toml: TomlFile, section: str) -> dict[str, Any]:
    values = toml.values(section)
    return {name: values.get(name, {}) for name in FREE_TABLES[section]}


def _communication(toml: TomlFile, heard: Heard) -> Loaded[CommunicationMode]:
    """The communication mode; a mode named in the environment drops the file's keys for another."""
    values = toml.values(communication.SECTION)
    mode, origin = _choose(communication.MODE, toml, heard, {})
    if mode != values.get("mode", communication.MODE.default):
        toml = TomlFile(toml.path)
    filled = _fill(MODES[mode], communication.settings_of_mode(mode), toml, heard, {})
    return Loaded(filled.config, {communication.MODE.key: origin} | filled.origins)


def _wire(toml: TomlFile, heard: Heard) -> Loaded[WirePrecision]:
    precision, origin = _choose(communication.WIRE, toml, heard, {})
    tables = toml.values(communication.SECTION).get(communication.WIRE_TABLES, {})
    return Loaded(WirePrecision(precision, tables), {communication.WIRE.key: origin})


def _heard(environ: Mapping[str, str] | None) -> Heard:
    """What variables say: those of `environ`, else those of this process and what it was told."""
    exported = without_links(os.environ if environ is None else environ)
    check_variables(exported)
    if environ is None:
        return process.TOLD.heard(exported)
    return Heard({}, process.variables(exported))


def _fill(
    cls: type[T],
    settings: list[Setting],
    toml: TomlFile,
    heard: Heard,
    flags: Mapping[str, Any],
) -> Loaded[T]:
    chosen = {s.name: _choose(s, toml, heard, flags) for s in settings}
    origins = {s.key: chosen[s.name][1] for s in settings}
    return Loaded(cls(**{name: value for name, (value, _) in chosen.items()}), origins)


def _choose(
    setting: Setting, toml: TomlFile, heard: Heard, flags: Mapping[str, Any]
) -> tuple[Any, str]:
    """The value of highest precedence and its origin."""
    given = flags.get(setting.name)
    if given is not None:
        origin = "argument" if setting.positional else f"flag {setting.flag}"
        accept = setting.parse if isinstance(given, str) else setting.accept
        return accept(given, origin), origin
    if said := heard.first((setting.variable, *setting.role_variables)):
        return setting.parse(said.text, said.origin), said.origin
    values = toml.values(setting.section)
    if setting.name in values:
        return setting.accept(values[setting.name], toml.path), toml.path
    return setting.default, DEFAULT


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
