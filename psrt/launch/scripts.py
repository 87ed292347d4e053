"""The processes of a script: pservers, and ranks that run the file as `python train.py` does.

Each rank has the variables of torchrun, by which `torch.distributed` meets, and those by which the
front-ends of psrt find pservers and their place. Pservers of a script have no identity of a run: a
script decides what it sends them.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from psrt.config.load import Loaded, job_without_file
from psrt.config.sections import JobConfig, LaunchConfig
from psrt.core.errors import ConfigError
from psrt.core.specs import Collective
from psrt.launch.groups import COLLECTIVE, free_ports
from psrt.launch.plan import PSRT, TRAINER, ChildId, Command, HostOf, Plan, on_loopback

_FOREIGN: tuple[str, ...] = (
    "carrier",
    "cpu_num",
    "trace_every",
    "profile",
    "trainer_args",
    "save",
    "epochs",
)
_FOREIGN += ("warm_start", "warm_start_map", "warm_start_strict")
"""Settings of a launch that only a job has."""

_ENGINES = ("local", "ssh", "mpi", "slurm")
"""Those whose processes get variables of their own."""

_MEETING_PORTS = range(20_000, 30_000)
"""Ports of another host to meet at: below those that systems give to outgoing connections."""


class ScriptPlan(Plan):
    """The commands of a launch of a script with `arguments`.

    Pservers end once all ranks have completed; a script may then evaluate and save for any time.
    """

    outlived_s = math.inf

    def __init__(
        self,
        loaded: Loaded[LaunchConfig],
        environ: Mapping[str, str],
        arguments: Sequence[str] = (),
        program: Sequence[str] = PSRT,
    ) -> None:
        super().__init__(loaded, environ, program)
        self.arguments = arguments

    @property
    def job_name(self) -> str:
        return Path(self.config.job).stem

    def trainers(
        self, endpoints: Sequence[str], trainers: int = 0, host_of: HostOf = on_loopback
    ) -> list[Command]:
        size = trainers or self.config.trainers
        hosts = [host_of(ChildId(TRAINER, index)) for index in range(size)]
        meeting = hosts[0], str(self._meeting_port())
        return [
            self._rank(index, variables_of(index, hosts, endpoints, meeting))
            for index in range(size)
        ]

    def group_flags(self, endpoints: Sequence[str], device: str) -> list[str]:
        return []

    def _job_flags(self) -> list[str]:
        return []

    def _rank(self, index: int, own: Mapping[str, str]) -> Command:
        child = ChildId(TRAINER, index)
        words = (self.config.python or sys.executable, self._job, *self.arguments)
        report, log = self._path(child, ".report.json"), self._path(child, ".log")
        return Command(child, words, {**self._environ, **own}, log, report, own=own)

    def _meeting_port(self) -> int:
        """A port of the host of rank 0: a free one of this host, else MASTER_PORT or any."""
        if self.config.on == "local":
            return free_ports(1)[0]
        return int(self._environ.get("MASTER_PORT", 0)) or secrets.choice(_MEETING_PORTS)


def script_job(config: LaunchConfig) -> JobConfig:
    """The job that a script makes up; raises `ConfigError` for settings that have no effect on it.

    Two of its settings matter to a launch: mode collective needs no pservers, and those of a job
    with durability are started again. Ranks find the latter in their environment, as here.
    """
    if not Path(config.job).is_file():
        raise ConfigError(f"{config.job} is not a file.", hint="Check the path of the script.")
    if config.on not in _ENGINES:
        raise ConfigError(
            f"a script cannot be launched --on {config.on}; nothing was started.",
            hint=f"Launch it --on {', '.join(_ENGINES)}. Or start pservers by `psrt pserver`, and "
            "ranks by any launcher of PyTorch: psrt.torch reads its variables.",
        )
    if config.mode not in ("", COLLECTIVE):
        raise _without_effect("--mode", config)
    for field in dataclasses.fields(LaunchConfig):
        if field.name in _FOREIGN and getattr(config, field.name) != field.default:
            raise _without_effect(f"--{field.name.replace('_', '-')}", config)
    given = job_without_file({})
    job = JobConfig(
        name=Path(config.job).stem,
        durability=given.durability,
        retained_mib=given.retained_mib,
        path=str(Path(config.job).resolve()),
    )
    return replace(job, communication=Collective()) if config.mode else job


def variables_of(
    index: int, hosts: Sequence[str], endpoints: Sequence[str], meeting: tuple[str, str]
) -> dict[str, str]:
    """The variables of one rank; `hosts` are those of all, which meet at an address and port."""
    rank, size, pservers = str(index), str(len(hosts)), ",".join(endpoints)
    here = hosts[index]
    places = {"ENDPOINTS": pservers, "TRAINERS": size, "TRAINER_ID": rank}
    own = {f"PSRT_TRAINER_{name}": value for name, value in places.items() if value}
    paddle = {
        "TRAINING_ROLE": "TRAINER",
        "PADDLE_PSERVERS_IP_PORT_LIST": pservers,
        "PADDLE_TRAINERS_NUM": size,
        "PADDLE_TRAINER_ID": rank,
    }
    torch = {
        "RANK": rank,
        "LOCAL_RANK": str(hosts[:index].count(here)),
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": str(hosts.count(here)),
        "MASTER_ADDR": meeting[0],
        "MASTER_PORT": meeting[1],
    }
    return {**own, **paddle, **torch}


def _without_effect(flag: str, config: LaunchConfig) -> ConfigError:
    return ConfigError(
        f"{flag} has no effect on {config.job}: a script decides that itself; nothing was started.",
        hint=f"Leave out {flag}. It belongs to jobs, which are TOML files.",
    )


__all__ = ["ScriptPlan", "script_job", "variables_of"]
