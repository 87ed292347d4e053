"""The processes of a job without pservers: trainers of this host, each with its endpoint or device.

Every trainer gets the variables by which launchers of PaddlePaddle name a trainer, so scripts and
libraries in it find their places as well.
"""

from __future__ import annotations

import shlex
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from psrt.config.sections import JobConfig, LaunchConfig
from psrt.core.errors import ConfigError
from psrt.launch.plan import LOOPBACK, Command, Plan

COLLECTIVE = "collective"


def is_group(config: LaunchConfig, job: JobConfig) -> bool:
    """Return True for a launch without pservers.

    Raises `ConfigError` for an engine that starts none, and for devices of other modes.
    """
    has_group = (config.mode or job.mode) == COLLECTIVE
    if has_group and config.on != "local":
        raise ConfigError(
            f"a job in mode collective cannot be launched --on {config.on}; nothing was started.",
            hint="Start `psrt trainer` under torchrun, mpirun or srun, which it reads the place of "
            "each trainer from.",
        )
    if config.selected_devices and not has_group:
        raise ConfigError(
            f"--selected-devices {','.join(config.selected_devices)} was given to a job with "
            "pservers; nothing was started.",
            hint='Set mode = "collective" in [communication]: gradients then travel over GPUs.',
        )
    return has_group


def group_commands(plan: Plan, ports: Sequence[int]) -> list[Command]:
    """The commands of all trainers, which meet at the first of `ports` of this host."""
    endpoints = [f"{LOOPBACK}:{port}" for port in ports]
    devices = plan.config.selected_devices or [""] * len(ports)
    named = zip(plan.trainers([], len(ports)), endpoints, devices, strict=True)
    return [_of_group(plan, command, endpoints, own, device) for command, own, device in named]


def group_size(config: LaunchConfig) -> int:
    """The number of trainers: one for each selected device, or as configured."""
    return len(config.selected_devices) or config.trainers


def described(plan: Plan) -> str:
    """The commands of all trainers, for people; ports are chosen at the start."""
    ports = range(group_size(plan.config))
    return "\n".join(shlex.join(each.arguments) for each in group_commands(plan, ports))


def free_ports(count: int) -> list[int]:
    """Ports of this host that nobody listens on at present."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]


def _of_group(
    plan: Plan, command: Command, endpoints: Sequence[str], own: str, device: str
) -> Command:
    *words, job = command.arguments
    words += plan.group_flags(endpoints, device)
    variables = {
        "PADDLE_TRAINER_ID": str(command.child.index),
        "PADDLE_TRAINERS_NUM": str(len(endpoints)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "PADDLE_CURRENT_ENDPOINT": own,
    }
    if device:
        variables["FLAGS_selected_gpus"] = device
    return replace(command, arguments=(*words, job), environ={**command.environ, **variables})


__all__ = ["described", "free_ports", "group_commands", "group_size", "is_group"]
